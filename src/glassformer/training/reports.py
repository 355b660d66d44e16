"""The reports of a training loop. Importing this module does not import torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

__all__ = [
    "CheckpointReport",
    "EndReport",
    "Ending",
    "Measured",
    "StepReport",
    "TrainingReport",
    "ValidationReport",
]

Ending = Literal["steps", "minutes", "patience", "stopped"]
"""Why a training run ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One update of the weights."""

    step: int
    epoch: int
    """Number of the current pass over the data, from 1."""
    loss: float
    """The loss that training minimises: smoothed cross-entropy per target token, in nats."""
    learning_rate: float
    gradient_norm: float
    """Norm of the gradient before clipping."""
    target_tokens: int
    """Number of target tokens of the update, without padding."""
    tokens_per_second: float
    """Target tokens per second of this update."""
    waited: float
    """Seconds of this update spent on building its batches."""
    padding: float
    """Share of padding in the batches (source and target together), in [0, 1)."""
    seconds: float
    """Training time so far in seconds, summed over all starts of the run."""
    seconds_left: float
    """Estimated time left, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """One validation."""

    step: int
    loss: float
    """−log p per target token, in nats, without smoothing."""
    perplexity: float
    metric: "Measured | None"
    best: bool
    """Whether these weights are the best so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointReport:
    """A checkpoint of step `step` is on the disk; training may already have passed this step."""

    step: int
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReport:
    """Training has ended: at a limit of steps or minutes, for lack of improvement, or because the caller stopped it."""

    step: int
    reason: Ending
    seconds: float


class Measured(NamedTuple):
    """The score of a model's greedy translations of validation sentences, in one metric."""

    name: str
    value: float
    higher_is_better: bool

    def __str__(self) -> str:
        """Return the metric as training prints it.

        >>> str(Measured("BLEU", 35.41, higher_is_better=True))
        'greedy BLEU 35.4'
        """
        return f"greedy {self.name} {self.value:.1f}"


TrainingReport = StepReport | ValidationReport | CheckpointReport | EndReport
"""All reports of a training loop."""
