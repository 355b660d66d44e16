"""What a training run reports while it goes on, and what it came to."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from glassformer.text.corpus import Corpus
from glassformer.text.examination import CorpusReport
from glassformer.training.loop import Measured, Report

__all__ = ["AverageReport", "ExaminedReport", "PreparedReport", "ProgressReport", "RunReport", "Summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressReport:
    """How far what comes before training has come: preparing the corpus, or a teacher's translating it."""

    stage: str
    """What is being done, in words."""
    done: int
    """How much of it is done."""
    total: int
    """Of how much; 0 = unknown."""
    unit: str
    """Of what: "bytes", "pairs" or "sentences"."""
    seconds_left: float = 0.0
    """Estimate of the time until all is done; 0 = unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedReport:
    """The corpus doctor has looked at the training files."""

    report: CorpusReport
    corpus: Corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedReport:
    """The corpus is read, the tokenizers are there, the model is made: training begins."""

    folder: Path
    train_pairs: int
    valid_pairs: int
    dropped: dict[str, int]
    """Pairs that are left out, counted by reason."""
    source_vocabulary: int
    target_vocabulary: int
    parameters: int
    chosen: str
    """What the configuration left open and the corpus decided, in words; "" if it left nothing open."""
    resumed_step: int
    """The step from which an earlier start of this run goes on; 0 = a new run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageReport:
    """The mean of the last checkpoints was validated, and is kept if it is better than the best so far."""

    checkpoints: int
    loss: float
    metric: Measured | None
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a training came to."""

    folder: Path
    steps: int
    seconds: float
    reason: Literal["steps", "minutes", "patience", "stopped"]
    valid_loss: float | None
    """−log p per target token of the weights that are kept, in nats."""
    metric: Measured | None


RunReport = ProgressReport | ExaminedReport | PreparedReport | Report | AverageReport
"""All that can happen in a run."""
