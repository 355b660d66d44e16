"""Detect divergence: the training loss climbs back towards its first value and stays high."""

from dataclasses import dataclass

__all__ = ["LossWatch"]

SMOOTHING = 0.98
"""Decay of the watched moving average, which spans about 50 steps."""
PATIENCE = 200
"""Number of consecutive steps with a high loss that count as divergence. Shorter spikes are ignored, because training
recovers from them."""
LEARNED = 1.0
"""Number of nats by which the loss must have fallen before a later rise counts as high."""


@dataclass(slots=True, kw_only=True)
class LossWatch:
    """The history of the losses of a training run."""

    first: float | None = None
    """The loss of the first step."""
    smoothed: float = 0.0
    """The moving average of the loss."""
    lowest: float = 0.0
    """The lowest value of the moving average so far."""
    high: int = 0
    """Number of consecutive steps with a high loss."""

    def see(self, loss: float) -> None:
        """Add the loss of a step."""
        if self.first is None:
            self.first = self.smoothed = self.lowest = loss
        self.smoothed += (1 - SMOOTHING) * (loss - self.smoothed)
        self.lowest = min(self.lowest, self.smoothed)
        self.high = self.high + 1 if self._is_high() else 0

    @property
    def suspicious(self) -> bool:
        """Whether the loss is high now, so that the present weights are not worth saving."""
        return self.high > 0

    @property
    def diverged(self) -> bool:
        """Whether the loss has been high for so long that training will not recover."""
        return self.high >= PATIENCE

    def _is_high(self) -> bool:
        """Return whether the loss has risen by more than half of its earlier fall, in nats."""
        assert self.first is not None
        learned = self.first - self.lowest
        return learned > LEARNED and self.smoothed > self.lowest + learned / 2
