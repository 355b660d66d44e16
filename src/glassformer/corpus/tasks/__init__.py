"""The built-in corpora: plain data and rules, no download, reproducible from a seed.

>>> sorted(TASKS)
['copy', 'english-french']
"""

from collections.abc import Callable

from glassformer.corpus.tasks.copy import copy_pairs, copy_task
from glassformer.corpus.tasks.example import Example, Task
from glassformer.corpus.tasks.world.classic import CLASSIC
from glassformer.corpus.tasks.world.splits import english_french

__all__ = ["CLASSIC", "TASKS", "Example", "Task", "copy_pairs", "copy_task", "english_french"]

TASKS: dict[str, Callable[..., Task]] = {"copy": copy_task, "english-french": english_french}
"""For each built-in corpus, the function that builds it from a seed, by the corpus's name in a configuration. The
argument `train` is the number of training pairs. The other splits do not depend on `train`, so `train=0` builds these
splits quickly."""
