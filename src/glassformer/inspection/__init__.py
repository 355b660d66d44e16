"""Looking into a model: what changes do to it, which head matters, where information is, and whether it is right.

`changed`, and the edits that `combine` joins, change a forward pass; `plant` plants a classic mistake. `log_prob`,
`compare` and `decoding` put a changed model to work. `head_study` and `patching_study` try out one change after the
other. `glassformer.check` is the self-test, `glassformer.run.study_heads` a study of the heads on a whole split.
"""

from glassformer.inspection.changes import Changes, Patch, changed
from glassformer.inspection.edits import (
    combine,
    heads_of,
    patched,
    with_mask,
    with_rows,
    without_heads,
    without_positions,
)
from glassformer.inspection.forced import RecomputingStep, compare, decoding, first_difference, log_prob, outputs
from glassformer.inspection.mistakes import MISTAKES, plant

__all__ = [
    "MISTAKES",
    "Changes",
    "Patch",
    "RecomputingStep",
    "changed",
    "combine",
    "compare",
    "decoding",
    "first_difference",
    "heads_of",
    "log_prob",
    "outputs",
    "patched",
    "plant",
    "with_mask",
    "with_rows",
    "without_heads",
    "without_positions",
]
