"""Train with several processes on this machine: this process is rank 0, and starts the other ranks.

On a CPU, two single-threaded processes are faster than one process with two threads, because threads wait for each
other after every matrix product, however small. Unlike the ranks of torchrun, local ranks need no network. Local ranks
use the same weights in shared memory, and rank 0 sends each rank its share of an update through a pipe.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from glassformer.corpus.batching import Batch
from glassformer.errors import ConfigError
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig
from glassformer.system.machine import cores, device_of, keep_memory, using_threads
from glassformer.system.processes import Worker
from glassformer.training.gradients import AddGradients, Share, add_gradients, next_seed, share_of
from glassformer.training.optimiser import Muon, turned
from glassformer.training.sums import file_in_memory, mapped

__all__ = ["count_of_ranks", "local_ranks"]

SHARE = 1024
"""Minimum number of tokens per rank; distributing fewer tokens costs more time than it saves."""

_Work = Literal["join", "add", "turn"]


def count_of_ranks(config: TrainingConfig, device: torch.device | None = None) -> int:
    """Return the number of local ranks: `config.workers`, or, if that is 0, one rank per core (a single rank on a GPU).

    With `config.workers` = 0, there are fewer ranks than cores if an update has too few tokens. `device` is the device
    of the model; by default, the configured device.
    """
    if config.workers:
        return config.workers
    if (device or device_of(config.device, "training.device")).type != "cpu":
        return 1
    return max(1, min(cores(), config.batch_tokens * config.accumulate // SHARE))


@contextmanager
def local_ranks(
    model: Transformer, config: TrainingConfig, optimiser: Optimizer | None = None
) -> Iterator[AddGradients]:
    """Yield a function like `add_gradients` whose work the local ranks share; they also share Muon's products.

    Raises:
        ConfigError: several ranks are configured, but the model is not on the CPU.
    """
    device = model.output.weight.device
    count = count_of_ranks(config, device)
    if count == 1:
        yield partial(add_gradients, model, config)
        return
    if device.type != "cpu":
        raise ConfigError(
            f"training.workers: expected 1 on {device}, got {config.workers}; only the CPU can use several"
        )
    muon = optimiser if isinstance(optimiser, Muon) else None
    with _LocalRanks(model, config, count, shares_muon=muon is not None) as ranks:
        if muon:
            muon.turn = ranks.turned
        try:
            yield ranks.add_gradients
        finally:
            if muon:
                muon.turn = turned


class _LocalRanks:
    """Rank 0 and the processes of the other ranks, with one thread each.

    One file holds all shared numbers: the weights, each rank's gradient and loss, and the matrices of Muon. Every
    process maps the file into its memory; then the file is deleted.
    """

    def __init__(self, model: Transformer, config: TrainingConfig, count: int, *, shares_muon: bool) -> None:
        self._model, self._config, self._count = model, config, count
        self._share = Share(model, config, 0)
        self._rows = 1 + count + shares_muon

    def __enter__(self) -> "_LocalRanks":
        with ExitStack() as stack:
            parameters = list(self._model.parameters())
            dtype = parameters[0].dtype
            path = _file(self._rows * _length(parameters) * dtype.itemsize)
            stack.callback(path.unlink, missing_ok=True)
            weights, *gradients = mapped(path, self._rows, dtype)
            self._gradients = [gradient[: self._share.size] for gradient in gradients[: self._count]]
            self._matrices = gradients[-1]
            _use(parameters, weights, copy=True)
            stack.callback(_take_back, parameters)
            trained = tuple(parameter.requires_grad for parameter in parameters)
            others = [
                _Rank(self._model.config, self._config, number, self._rows, path, dtype, trained)
                for number in range(1, self._count)
            ]
            doing, without = "computes a part of each update", "training.workers = 1"
            self._workers = [stack.enter_context(Worker(rank, doing, without)) for rank in others]
            self._threads = stack.enter_context(ThreadPoolExecutor(self._count))
            for joined in self._ask("join", [()] * len(others)):
                joined.result()
            path.unlink()  # the processes can still use their mappings of the deleted file
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add_gradients(self, batches: Sequence[Batch], tokens: float) -> float:
        """Do the same as the function `add_gradients`; each rank computes its share."""
        seed = next_seed()
        own, *others = [share_of(batches, number, self._count, self._config) for number in range(self._count)]
        asked = self._ask("add", [(share, tokens, seed) for share in others])
        total, *rows = self._gradients
        with using_threads(1):
            self._share.add_gradients(total.zero_(), own, tokens, seed)
        for answer, row in zip(asked, rows, strict=True):
            answer.result()
            total.add_(row)
        return float(self._share.use(total))

    def turned(self, matrices: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
        """Do the same as the function `turned`; the next call overwrites the results."""
        shapes = [matrix.shape for matrix in matrices]
        slots = _slots(self._matrices, shapes)
        for slot, matrix in zip(slots, matrices, strict=True):
            slot.copy_(matrix)
        alike = sorted(range(len(shapes)), key=lambda place: sorted(shapes[place]))
        own, *others = [alike[number :: self._count] for number in range(self._count)]
        asked = self._ask("turn", [(shapes, share, dtype) for share in others])
        with using_threads(1):
            _turn(slots, own, dtype)
        for answer in asked:
            answer.result()
        return slots

    def _ask(self, work: _Work, given: Sequence[tuple[Any, ...]]) -> list[Future[Any]]:
        """Ask each other rank to do its part of some work, all ranks at the same time."""
        return [self._threads.submit(worker.ask, work, *own) for worker, own in zip(self._workers, given, strict=True)]


@dataclass(slots=True)
class _Rank:
    """The work of a rank other than 0, which reads its inputs from shared memory and writes its results there."""

    model_config: ModelConfig
    config: TrainingConfig
    number: int
    rows: int
    path: Path
    dtype: torch.dtype
    trained: tuple[bool, ...]
    _share: Share = field(init=False)
    _gradient: Tensor = field(init=False)
    _matrices: Tensor = field(init=False)

    def __call__(self, work: _Work, *given: Any) -> None:
        """Call the method with the name `work`."""
        getattr(self, work)(*given)

    def join(self) -> None:
        """Create the model with the shared weights."""
        keep_memory()
        torch.set_num_threads(1)
        torch.set_default_dtype(self.dtype)
        model = Transformer(self.model_config).train()
        for parameter, trained in zip(model.parameters(), self.trained, strict=True):
            parameter.requires_grad_(trained)
        numbers = mapped(self.path, self.rows, self.dtype)
        _use(list(model.parameters()), numbers[0], copy=False)
        self._share = Share(model, self.config, self.number)
        self._gradient = numbers[1 + self.number, : self._share.size]
        self._matrices = numbers[-1]

    def add(self, batches: Sequence[Batch], tokens: float, seed: int) -> None:
        """Overwrite this rank's row with the gradient and the loss of these batches."""
        self._share.add_gradients(self._gradient.zero_(), batches, tokens, seed)

    def turn(self, shapes: Sequence[torch.Size], share: Sequence[int], dtype: torch.dtype) -> None:
        """Replace this rank's share of Muon's matrices by the results of `turned`."""
        _turn(_slots(self._matrices, shapes), share, dtype)


def _file(size: int) -> Path:
    """Return a new file of this size: in memory if there is room, otherwise on the disk, where writing takes longer."""
    if path := file_in_memory(size):
        return path
    file, name = tempfile.mkstemp(prefix="glassformer-")
    os.truncate(file, size)
    os.close(file)
    return Path(name)


def _length(parameters: Sequence[Parameter]) -> int:
    """Return the length of a row: one number for each weight, and one number for a loss."""
    return sum(parameter.numel() for parameter in parameters) + 1


def _slots(row: Float[Tensor, "N"], shapes: Sequence[torch.Size]) -> list[Tensor]:
    """Return tensors of these shapes that lie one after another in the memory of a row."""
    sizes = [shape.numel() for shape in shapes]
    return [part.view(shape) for part, shape in zip(row[: sum(sizes)].split(sizes), shapes, strict=True)]


def _turn(slots: Sequence[Tensor], share: Sequence[int], dtype: torch.dtype) -> None:
    """Replace the matrices at these places by the results of `turned`. `share`: the places of this rank's matrices."""
    for place, change in zip(share, turned([slots[place] for place in share], dtype), strict=True):
        slots[place].copy_(change)


def _use(parameters: Sequence[Parameter], row: Float[Tensor, "N"], *, copy: bool) -> None:
    """Let the parameters use a row's memory; with `copy`, first copy their values into the row."""
    for parameter, slot in zip(parameters, _slots(row, [parameter.shape for parameter in parameters]), strict=True):
        if copy:
            slot.copy_(parameter.detach())
        parameter.data = slot


def _take_back(parameters: Sequence[Parameter]) -> None:
    """Move the parameters back into private memory."""
    for parameter in parameters:
        parameter.data = parameter.detach().clone()
