"""The page "Write it yourself": a reader's Transformer, checked step by step against the reference (`check_file`).

`exercises.py` lists the steps. `checking.py` starts a process with limits. In this process, `worker.py` loads the
reader's file (`reading.py`), copies its weights into the reference and compares the numbers (`comparison.py`,
`attempts.py`). `verdict` checks answers to the exercises of the other chapters.
"""

from glassformer.watch.capstone.answers import verdict
from glassformer.watch.capstone.checking import FileCheck, check_file
from glassformer.watch.capstone.exercises import EXERCISES, Exercise

__all__ = ["EXERCISES", "Exercise", "FileCheck", "check_file", "verdict"]
