"""Training: objective, schedule, optimiser, loop and checkpoints. `steps` yields a report for all that happens."""

from glassformer.training.loop import steps

__all__ = ["steps"]
