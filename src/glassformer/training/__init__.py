"""Training: objective, schedule, optimiser, checkpoints, and the loop, `steps`, which yields a report of each event."""

from glassformer.training.loop import steps

__all__ = ["steps"]
