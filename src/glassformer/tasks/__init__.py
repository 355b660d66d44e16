"""The built-in corpora: plain data and rules, no download, reproducible from a seed.

>>> sorted(TASKS)
['copy', 'english-french']
"""

from collections.abc import Callable

from glassformer.tasks.classic import CLASSIC
from glassformer.tasks.copy import copy_pairs, copy_task
from glassformer.tasks.example import Example, Task
from glassformer.tasks.splits import english_french

__all__ = ["CLASSIC", "TASKS", "Example", "Task", "copy_pairs", "copy_task", "english_french"]

TASKS: dict[str, Callable[..., Task]] = {"copy": copy_task, "english-french": english_french}
"""What builds each corpus from a seed, by the name that a configuration gives it. All of them take `train`, how many
training pairs there shall be: the other splits stay the same, so that 0 of them make those quickly."""
