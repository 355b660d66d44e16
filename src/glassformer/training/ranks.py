"""The ranks of a training run as seen from one rank: who decides, who computes what, and when the ranks wait.

A rank is one of the processes that train a model together. `ALONE` is a process without torchrun, which may start local
ranks; `distributed.py` has the ranks that torchrun has started.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import torch
import xxhash
from torch import nn
from torch.optim import Optimizer

from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training.gradients import AddGradients
from glassformer.training.local_ranks import local_ranks

__all__ = ["ALONE", "Ranks", "hash_of_weights"]

T = TypeVar("T")


class Ranks:
    """The ranks of a process without torchrun. This process decides alone, because its local ranks only compute."""

    number = 0
    """The number of this rank, from 0."""
    count = 1
    """The number of ranks that torchrun has started."""

    @property
    def leads(self) -> bool:
        """Whether this is rank 0, the only rank that writes files."""
        return self.number == 0

    def place(self, device: torch.device) -> torch.device:
        """Return the device of this rank; if the machine has several GPUs, each of its ranks has its own GPU.

        Raises:
            ConfigError: this machine has fewer GPUs than processes.
        """
        return device

    def sharing(
        self, model: Transformer, config: TrainingConfig, optimiser: Optimizer
    ) -> AbstractContextManager[AddGradients]:
        """Return a context with a function like `add_gradients` whose work all ranks share.

        Each rank calls the function with all batches of an update.

        Raises:
            ConfigError: several local ranks are configured, but the model is not on the CPU.
        """
        return local_ranks(model, config, optimiser)

    def agree(self, seconds: float, stop: bool) -> tuple[float, bool]:
        """Return the `seconds` of rank 0, and whether any rank has passed a true `stop`."""
        return seconds, stop

    def decide(self, work: Callable[[], T]) -> T:
        """Return, in all ranks, the result of `work`, which only rank 0 calls and which may take any time."""
        return work()

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Let rank 0 finish the block, which may take any time, before the other ranks begin it."""
        yield

    def check_same(self, what: str, hash_of_own: Callable[[], str]) -> None:
        """Check that all ranks have the same hash.

        Raises:
            RankError: the hash of a rank differs from the hash of rank 0; the message contains the rank and `what`.
        """


ALONE = Ranks()
"""The process of a training run without torchrun."""


def hash_of_weights(model: nn.Module) -> str:
    """Return the xxh3 hash (128 bits) of all weights, as hexadecimal digits."""
    digest = xxhash.xxh3_128()
    for weight in model.parameters():
        digest.update(weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
