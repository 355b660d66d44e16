"""Training: objective, schedule, optimiser, checkpoints, and the loop `steps`, which yields a report for each event.

Importing this package does not import torch. The loop, which needs torch, is imported on first use.
"""

from typing import TYPE_CHECKING

from glassformer.system.lazy import lazy_names

if TYPE_CHECKING:
    from glassformer.training.loop import steps

__all__ = ["steps"]

__getattr__ = lazy_names(__name__, {"glassformer.training.loop": __all__})
