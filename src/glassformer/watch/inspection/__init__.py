"""Inspection of models: change a forward pass, measure which heads and positions matter, and check correctness.

Two functions change a forward pass: `changed`, and `glassformer.intervene` with edits, which `combine` joins.
`plant` plants a classic implementation mistake. `log_prob`, `compare` and `decoding` run a changed model. `head_study`
and `patching_study` measure one change after another; `study_heads` measures every head on a split of a built-in task.
`glassformer.check` is the self-test. `diagnose` finds the mistake with which a model was trained.
"""

from glassformer.watch.inspection.changes import Changes, Patch, changed
from glassformer.watch.inspection.diagnosis import Diagnosis, MistakeLoss, diagnose
from glassformer.watch.inspection.edits import (
    combine,
    heads_of,
    patched,
    with_mask,
    with_rows,
    without_heads,
    without_positions,
)
from glassformer.watch.inspection.forced import RecomputingStep, compare, decoding, first_difference, log_prob, outputs
from glassformer.watch.inspection.mistakes import MISTAKES, plant
from glassformer.watch.inspection.split_study import study_heads
from glassformer.watch.inspection.studies import grid, head_study, patching_study, write_rows

__all__ = [
    "MISTAKES",
    "Changes",
    "Diagnosis",
    "MistakeLoss",
    "Patch",
    "RecomputingStep",
    "changed",
    "combine",
    "compare",
    "decoding",
    "diagnose",
    "first_difference",
    "grid",
    "head_study",
    "heads_of",
    "log_prob",
    "outputs",
    "patched",
    "patching_study",
    "plant",
    "study_heads",
    "with_mask",
    "with_rows",
    "without_heads",
    "without_positions",
    "write_rows",
]
