"""Notices that a training goes wrong: the loss climbs back towards where it started, and stays there."""

from dataclasses import dataclass

__all__ = ["LossWatch"]

SMOOTHING = 0.98
"""Of the moving average that is watched: it spans about 50 steps."""
PATIENCE = 200
"""Steps that the loss may stay high: spikes after which training recovers are shorter."""
LEARNED = 1.0
"""Nats by which the loss has to have fallen, before a rise means anything."""


@dataclass(slots=True, kw_only=True)
class LossWatch:
    """What is remembered of a training's losses."""

    first: float | None = None
    """The loss of the first step."""
    smoothed: float = 0.0
    """The moving average of the loss."""
    lowest: float = 0.0
    """Its lowest value so far."""
    high: int = 0
    """Steps for which it has been high without a break."""

    def see(self, loss: float) -> None:
        """Take in the loss of a step."""
        if self.first is None:
            self.first = self.smoothed = self.lowest = loss
        self.smoothed += (1 - SMOOTHING) * (loss - self.smoothed)
        self.lowest = min(self.lowest, self.smoothed)
        self.high = self.high + 1 if self._is_high() else 0

    @property
    def suspicious(self) -> bool:
        """Whether the loss is high now: what is learned in such a moment is not worth keeping."""
        return self.high > 0

    @property
    def diverged(self) -> bool:
        """Whether it has been high for so long that it will not come back by itself."""
        return self.high >= PATIENCE

    def _is_high(self) -> bool:
        """Return whether more than half of what was learned, in nats, is lost again."""
        assert self.first is not None
        learned = self.first - self.lowest
        return learned > LEARNED and self.smoothed > self.lowest + learned / 2
