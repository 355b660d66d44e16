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
"""Functions that build each corpus from a seed, by its name in a configuration. Each takes `train`, the number of
training pairs; the other splits do not depend on it, so `train=0` builds them quickly."""
