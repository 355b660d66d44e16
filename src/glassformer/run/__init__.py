"""Whole jobs, composed from the parts: read the corpus, train with validation, average, evaluate, distil."""

from glassformer.run.averaging import average
from glassformer.run.distillation import DistilledCorpus, Search, distil, prepare_student
from glassformer.run.evaluation import SplitResult, evaluate, evaluate_splits
from glassformer.run.log import METRICS, read_log
from glassformer.run.reports import AverageReport, PreparedReport, RunReport, Summary
from glassformer.run.training import train, training_run
from glassformer.training.snapshots import SNAPSHOTS

__all__ = [
    "METRICS",
    "SNAPSHOTS",
    "AverageReport",
    "DistilledCorpus",
    "PreparedReport",
    "RunReport",
    "Search",
    "SplitResult",
    "Summary",
    "average",
    "distil",
    "evaluate",
    "evaluate_splits",
    "prepare_student",
    "read_log",
    "train",
    "training_run",
]
