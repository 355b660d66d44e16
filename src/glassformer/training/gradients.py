"""Compute the gradient of an update, or one rank's share of it.

A rank is one of the processes that train a model together: a local rank, which `training.workers` starts, or a rank
that torchrun has started on one of several machines. If a single process trains the model, it is the only rank.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from glassformer.corpus.batching import Batch, Examples
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training.objective import Loss, smoothed_cross_entropy
from glassformer.training.precision import rounding

__all__ = [
    "AddGradients",
    "Share",
    "add_gradients",
    "batch_loss",
    "next_seed",
    "products_to_keep",
    "share_of",
]

EXAMINED, SHORT_TARGET = 1000, 12
"""The number of targets whose mean length is computed, and the mean length in tokens below which targets are short."""

AddGradients = Callable[[Sequence[Batch], float], float]
"""A function (batches, divisor) → loss / divisor. The function also computes the gradient of loss / divisor for the
model, which has no gradients before the call. The divisor is the number of target tokens of the batches; in fp16, this
number is divided by the loss scale.
"""


def products_to_keep(examples: Examples) -> int:
    """Return how many compiled matrix products to keep for training on these pairs (see `keep_memory`).

    Batches of short sequences, such as words, have so few shapes that each shape soon occurs again. With 1,024 products
    in place of 32, an update of the CMUdict recipe takes a tenth less time, and each process needs 350 MB more memory.
    Batches of sentences nearly always have new shapes.
    """
    first = examples.target[:EXAMINED]
    return 1024 if sum(map(len, first)) < SHORT_TARGET * len(first) else 32


def add_gradients(model: Transformer, config: TrainingConfig, batches: Sequence[Batch], tokens: float) -> float:
    """Add the gradient of the batches' loss / `tokens` to the model's gradients; return loss / `tokens`."""
    assert config.r_drop != "auto", "`glassformer.recipes.defaults.fit` chooses it"
    loss = 0.0
    for batch in batches:
        with rounding(config.precision, model.output.weight.device):
            mean = batch_loss(model, batch, config.label_smoothing, config.r_drop).smoothed / tokens
        mean.backward()
        loss += float(mean.detach())
    return loss


def batch_loss(model: Transformer, batch: Batch, smoothing: float, r_drop: float = 0.0) -> Loss:
    """Return the loss of a batch, summed over its target tokens without padding; with `r_drop`, from two passes."""
    device = model.output.weight.device
    source, target_input, target_output = (
        _placed(ids, device) for ids in (batch.source, batch.target_input, batch.target_output)
    )
    real = target_output != model.config.pad_id
    if r_drop:  # both passes in one batch, which has every row twice; dropout differs between rows
        source, target_input = source.repeat(2, 1), target_input.repeat(2, 1)
    output = model.decoder_output(target_input, model.encode(source), source)
    positions = real.repeat(2, 1) if r_drop else real
    weight, bias = model.output.weight, model.output.bias
    return smoothed_cross_entropy(output[positions], weight, target_output[real], smoothing, r_drop, bias)


def _placed(array: Shaped[np.ndarray, "*N"], device: torch.device) -> Shaped[Tensor, "*N"]:
    """Return an array as a tensor on the device; copying to a GPU is asynchronous."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


# The share of one rank


class Share:
    """One rank's share of each update: a row of numbers with a gradient and a loss. The ranks add up their rows."""

    def __init__(self, model: Transformer, config: TrainingConfig, number: int) -> None:
        """`number` is the number of the rank, from 0."""
        self._model, self._config, self._number = model, config, number
        self._weights = [weight for weight in model.parameters() if weight.requires_grad]
        self._sizes = [*(weight.numel() for weight in self._weights), 1]
        self.size = sum(self._sizes)
        """The length of a row: one number for each trained weight, and one number for the loss."""

    def add_gradients(self, row: Float[Tensor, "N"], batches: Sequence[Batch], tokens: float, seed: int) -> None:
        """Add the gradient of loss / `tokens`, and loss / `tokens` itself, to a row of zeros.

        `seed` is the same in all ranks and differs between updates. The random state is restored afterwards.
        """
        loss = self.use(row)
        with torch.random.fork_rng([row.device] if row.device.type == "cuda" else []):
            torch.manual_seed(seed + self._number)
            loss.fill_(add_gradients(self._model, self._config, batches, tokens))

    def use(self, row: Float[Tensor, "N"]) -> Float[Tensor, "1"]:
        """Use the numbers of a row as the gradients of the weights; return the row's loss."""
        parts: Sequence[Tensor] = row.split(self._sizes)
        for weight, gradient in zip(self._weights, parts[:-1], strict=True):
            weight.grad = gradient.view_as(weight)
        return parts[-1]


def share_of(batches: Sequence[Batch], number: int, count: int, config: TrainingConfig) -> list[Batch]:
    """Return a rank's share of an update: every `count`-th batch, or every `count`-th row of each batch."""
    if config.accumulate % count == 0:
        return list(batches[number::count])
    return [batch.share(number, count) for batch in batches if len(batch.rows) > number]


def next_seed() -> int:
    """Return a random seed for an update. All ranks draw the seed, so that their random states stay equal."""
    return int(torch.randint(2**62, ()))
