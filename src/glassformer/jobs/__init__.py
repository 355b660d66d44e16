"""Whole jobs, composed from the parts: read the corpus, train with validation, average, evaluate, distil.

Importing this package does not import torch: each public name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glassformer.jobs.averaging import average
    from glassformer.jobs.distillation import DistilledCorpus, TeacherSearch, distil, prepare_student
    from glassformer.jobs.diversification import DiversifiedCorpus, diversify
    from glassformer.jobs.evaluation import SplitResult, evaluate, evaluate_splits
    from glassformer.jobs.log import METRICS_FILE, read_log
    from glassformer.jobs.run_reports import (
        AlignmentReport,
        AverageReport,
        CalibrationReport,
        PreparedReport,
        RunReport,
        Summary,
    )
    from glassformer.jobs.training_run import train, training_run
    from glassformer.training.snapshots import SNAPSHOTS

__all__ = [
    "METRICS_FILE",
    "SNAPSHOTS",
    "AlignmentReport",
    "AverageReport",
    "CalibrationReport",
    "DistilledCorpus",
    "DiversifiedCorpus",
    "PreparedReport",
    "RunReport",
    "SplitResult",
    "Summary",
    "TeacherSearch",
    "average",
    "distil",
    "diversify",
    "evaluate",
    "evaluate_splits",
    "prepare_student",
    "read_log",
    "train",
    "training_run",
]

_MODULES = {
    "jobs.averaging": ("average",),
    "jobs.distillation": ("DistilledCorpus", "TeacherSearch", "distil", "prepare_student"),
    "jobs.diversification": ("DiversifiedCorpus", "diversify"),
    "jobs.evaluation": ("SplitResult", "evaluate", "evaluate_splits"),
    "jobs.log": ("METRICS_FILE", "read_log"),
    "jobs.run_reports": (
        "AlignmentReport",
        "AverageReport",
        "CalibrationReport",
        "PreparedReport",
        "RunReport",
        "Summary",
    ),
    "jobs.training_run": ("train", "training_run"),
    "training.snapshots": ("SNAPSHOTS",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a public name, importing its module now."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"glassformer.{_HOME[name]}"), name)
