"""The exponential moving average of the weights, which is often better than the weights of a single step."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from glassformer.errors import CheckpointError

__all__ = ["MovingAverage"]


class MovingAverage:
    """The exponential moving average of a model's weights, in their own precision.

    After step t, the average is m = d·m + (1 − d)·weights with d = min(decay, (1 + t) / (10 + t)). In this way, the
    average forgets the random initial weights quickly; later, it spans about 1 / (1 − decay) steps.

    Differs: the paper averages the last checkpoints (§6.1); see `training.average`.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: weight.detach().clone() for name, weight in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Update the average with the model's weights after this step."""
        decay = min(self.decay, (1 + step) / (10 + step))
        current = [weight.detach() for weight in model.parameters()]
        torch._foreach_lerp_(list(self.weights.values()), current, 1 - decay)

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """Give the model the averaged weights within a `with` block."""
        self._swap(model)
        try:
            yield
        finally:
            self._swap(model)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Restore a saved average.

        Raises:
            CheckpointError: the average belongs to a different model.
        """
        if {name: weight.shape for name, weight in weights.items()} != {
            name: weight.shape for name, weight in self.weights.items()
        }:
            raise CheckpointError("the saved moving average belongs to a different model: delete the checkpoint")
        for name, weight in weights.items():
            self.weights[name].copy_(weight)

    def _swap(self, model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            parameter.data, self.weights[name] = self.weights[name], parameter.data
