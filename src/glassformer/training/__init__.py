"""Training: objective, schedule, optimiser, checkpoints, and the loop, `steps`, which yields a report of each event.

Importing this package does not import torch: the loop, which needs it, is imported on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glassformer.training.loop import steps

__all__ = ["steps"]


def __getattr__(name: str) -> Any:
    """Return the loop, importing its module now."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from glassformer.training.loop import steps

    return steps
