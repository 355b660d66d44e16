"""Whole jobs, composed from the parts: read the corpus, train with validation, average, evaluate, distil."""

from glassformer.jobs.averaging import average
from glassformer.jobs.distillation import DistilledCorpus, TeacherSearch, distil, prepare_student
from glassformer.jobs.evaluation import SplitResult, evaluate, evaluate_splits
from glassformer.jobs.log import METRICS_FILE, read_log
from glassformer.jobs.run_reports import AverageReport, PreparedReport, RunReport, Summary
from glassformer.jobs.training import train, training_run
from glassformer.training.snapshots import SNAPSHOTS

__all__ = [
    "METRICS_FILE",
    "SNAPSHOTS",
    "AverageReport",
    "DistilledCorpus",
    "PreparedReport",
    "RunReport",
    "SplitResult",
    "Summary",
    "TeacherSearch",
    "average",
    "distil",
    "evaluate",
    "evaluate_splits",
    "prepare_student",
    "read_log",
    "train",
    "training_run",
]
