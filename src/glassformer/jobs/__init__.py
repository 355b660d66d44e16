"""Whole jobs, composed from the parts: read the corpus, train with validation, average, evaluate, distil.

Importing this package does not import torch: each public name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from glassformer.system.lazy import lazy_names

if TYPE_CHECKING:
    from glassformer.jobs.averaging import average
    from glassformer.jobs.distillation import DistilledCorpus, distil
    from glassformer.jobs.diversification import DiversifiedCorpus, diversify
    from glassformer.jobs.evaluation import SplitResult, evaluate, evaluate_splits
    from glassformer.jobs.log import METRICS_FILE, read_log
    from glassformer.jobs.run import train
    from glassformer.jobs.run_reports import (
        AlignmentReport,
        AverageReport,
        CalibrationReport,
        PreparedReport,
        RunReport,
        Summary,
    )
    from glassformer.jobs.student import prepare_student
    from glassformer.jobs.student_corpus import TeacherSearch
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
]

_MODULES = {
    "glassformer.jobs.averaging": ("average",),
    "glassformer.jobs.distillation": ("DistilledCorpus", "distil"),
    "glassformer.jobs.diversification": ("DiversifiedCorpus", "diversify"),
    "glassformer.jobs.evaluation": ("SplitResult", "evaluate", "evaluate_splits"),
    "glassformer.jobs.log": ("METRICS_FILE", "read_log"),
    "glassformer.jobs.run_reports": (
        "AlignmentReport",
        "AverageReport",
        "CalibrationReport",
        "PreparedReport",
        "RunReport",
        "Summary",
    ),
    "glassformer.jobs.run": ("train",),
    "glassformer.jobs.student": ("prepare_student",),
    "glassformer.jobs.student_corpus": ("TeacherSearch",),
    "glassformer.training.snapshots": ("SNAPSHOTS",),
}

__getattr__ = lazy_names(__name__, _MODULES)
