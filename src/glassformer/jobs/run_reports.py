"""The reports of a training run: progress, events and the final summary."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from glassformer.corpus.doctor.examination import Findings
from glassformer.evaluation.guards import Guards
from glassformer.model.alignment import Alignment
from glassformer.training.reports import Ending, Measured, TrainingReport

if TYPE_CHECKING:
    from glassformer.corpus.readers import Corpus

__all__ = [
    "AlignmentReport",
    "AverageReport",
    "CalibrationReport",
    "ExaminedReport",
    "OnProgress",
    "PreparedReport",
    "ProgressReport",
    "RunReport",
    "Summary",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressReport:
    """Progress of work before or after training, such as preparing the corpus or translating it with a teacher."""

    stage: str
    """The current step, in words."""
    done: int = 0
    """Units done so far."""
    total: int = 0
    """Total number of units; 0 = unknown."""
    unit: str = ""
    """The unit: "bytes", "pairs", "sentences" or "parts"; "" if nothing is counted."""
    seconds_left: float = 0.0
    """Estimated time left, in seconds; 0 = unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedReport:
    """The corpus doctor's findings in the training files."""

    findings: Findings
    corpus: "Corpus"


OnProgress = Callable[[ProgressReport | ExaminedReport], object]
"""A function that receives the reports while a corpus is prepared or translated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedReport:
    """The corpus, the tokenizers and the model are ready, and training begins."""

    folder: Path
    train_pairs: int
    valid_pairs: int
    dropped: dict[str, int]
    """Number of pairs left out, by reason."""
    source_vocabulary: int
    target_vocabulary: int
    parameters: int
    warmup: int
    """Number of warm-up steps; a time limit may shorten the warm-up."""
    chosen: str
    """The settings that were left open and the values chosen for the corpus, in words; "" if none was open."""
    resumed_step: int
    """The step from which a resumed run continues; 0 = a new run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageReport:
    """The validation result of the mean of the last checkpoints; the mean is kept if it beats the best weights."""

    checkpoints: int
    loss: float
    metric: Measured | None
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentReport:
    """The attention heads that align words were chosen on the validation pairs."""

    alignment: Alignment


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """The guards were calibrated on the validation pairs."""

    guards: Guards | None
    """The guards; None if too few texts can be translated."""
    texts: int
    """Number of validation pairs that `glassformer calibrate` would use; a short training uses fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The result of a training run."""

    folder: Path
    steps: int
    seconds: float
    reason: Ending
    valid_loss: float | None
    """Validation loss of the kept weights: −log p per target token, in nats."""
    metric: Measured | None


RunReport = (
    ProgressReport
    | ExaminedReport
    | PreparedReport
    | TrainingReport
    | AverageReport
    | AlignmentReport
    | CalibrationReport
)
"""Any report of a run."""
