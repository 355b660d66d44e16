"""Compute the gradient of an update, in this process or in several that share its batches.

On a CPU, two single-threaded processes are faster than one process with two threads, in which all threads wait for each
other after every product, however small.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from glassformer.corpus.batching import Batch, Examples
from glassformer.errors import ConfigError
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig
from glassformer.system.machine import MEMORY, cores, device_of, keep_memory, using_threads
from glassformer.system.processes import Worker
from glassformer.training.objective import Loss, smoothed_cross_entropy
from glassformer.training.optimiser import Muon, turned
from glassformer.training.precision import rounding

__all__ = ["AddGradients", "add_gradients", "adding_gradients", "batch_loss", "processes", "products_to_keep"]

SHARE = 1024
"""Fewest tokens per process: with fewer, distributing them costs more than it gains."""
EXAMINED, SHORT_TARGET = 1000, 12
"""The number of targets whose mean length is examined, and the number of tokens below which it is short."""

AddGradients = Callable[[Sequence[Batch], float], float]
"""Given batches and a divisor, adds the gradient of loss / divisor to the model's gradients; returns loss / divisor.
The divisor is the number of the batches' target tokens; in fp16, that number divided by the loss scale."""


@contextmanager
def adding_gradients(
    model: Transformer, config: TrainingConfig, optimiser: Optimizer | None = None
) -> Iterator[AddGradients]:
    """Yield a function like `add_gradients` that uses `config.workers` processes.

    If the optimiser is Muon, these processes also share its products.

    Raises:
        ConfigError: several processes are configured, and the model is not on the CPU.
    """
    device = model.output.weight.device
    count = processes(config, device)
    if count == 1:
        yield partial(add_gradients, model, config)
        return
    if device.type != "cpu":
        raise ConfigError(
            f"training.workers: expected 1 on {device}, got {config.workers}; only the CPU can use several"
        )
    with _Helpers(model, config, count) as team, team.turning(optimiser):
        yield team.add_gradients


def processes(config: TrainingConfig, device: torch.device | None = None) -> int:
    """Return the number of processes that share an update, including this one; with `workers = 0`, 1 on a GPU.

    `device` is the model's; by default, the configured one.
    """
    if config.workers == 0 and (device or device_of(config.device, "training.device")).type != "cpu":
        return 1
    ranks, here = (int(os.environ.get(name, "1")) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))  # set by torchrun
    return config.workers or max(1, min(cores() // here, config.batch_tokens * config.accumulate // ranks // SHARE))


def products_to_keep(examples: Examples) -> int:
    """Return how many compiled matrix products training on these pairs had best keep (see `keep_memory`).

    Batches of short sequences, such as words, have so few shapes that they return soon. With 1,024 products in place of
    32, an update of the CMUdict recipe takes a tenth less time, and 350 MB more memory in each process. Batches of
    sentences nearly always bring new shapes.
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
    """Return the loss of a batch, summed over its real target tokens; with `r_drop`, from two passes."""
    device = model.output.weight.device
    source, target_input, target_output = (
        _placed(ids, device) for ids in (batch.source, batch.target_input, batch.target_output)
    )
    real = target_output != model.config.pad_id
    if r_drop:  # both passes in one batch of twice the rows, since dropout draws for each row
        source, target_input = source.repeat(2, 1), target_input.repeat(2, 1)
    output = model.decoder_output(target_input, model.encode(source), source)
    positions = real.repeat(2, 1) if r_drop else real
    weight, bias = model.output.weight, model.output.bias
    return smoothed_cross_entropy(output[positions], weight, target_output[real], smoothing, r_drop, bias)


def _placed(array: Shaped[np.ndarray, "*N"], device: torch.device) -> Shaped[Tensor, "*N"]:
    """Return an array on the device; a GPU copies it asynchronously, after its current work."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


# Several processes


class _Helpers:
    """This process and its helpers, with one thread each; all share the weights, and each has its own gradient.

    Weights and gradients lie in memory-mapped files, which are deleted once every process has mapped them.
    """

    def __init__(self, model: Transformer, config: TrainingConfig, count: int) -> None:
        self.model, self.config, self.count = model, config, count

    def __enter__(self) -> "_Helpers":
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="glassformer-", dir=MEMORY if Path(MEMORY).is_dir() else None))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            parameters = list(self.model.parameters())
            stack.callback(_take_back, parameters)
            _use(parameters, _mapped(folder / "weights", parameters))
            self._steps = _flat(folder / "steps", parameters)
            replicas = [self._replica(folder / f"gradient-{number}") for number in range(1, self.count)]
            self._gradients = [_mapped(replica.gradient, parameters) for replica in replicas]
            doing, without = "computes a part of each update", "training.workers = 1"
            self._workers = [stack.enter_context(Worker(replica, doing, without)) for replica in replicas]
            self._pool = stack.enter_context(ThreadPoolExecutor(self.count))
            for ready in [self._pool.submit(worker.ask, "add", [], 1, 0) for worker in self._workers]:
                ready.result()
            shutil.rmtree(folder, ignore_errors=True)  # the mappings outlive the files
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add_gradients(self, batches: Sequence[Batch], tokens: float) -> float:
        """Do the same as the function `add_gradients`, with each process computing its share of each batch."""
        shares = [
            [batch.share(number, self.count) for batch in batches if len(batch.rows) > number]
            for number in range(self.count)
        ]
        # Seeds are drawn in this process, so that a resumed training run draws the same ones.
        seeds = torch.randint(2**62, (len(self._workers),)).tolist()
        asked = [
            self._pool.submit(worker.ask, "add", share, tokens, seed)
            for worker, share, seed in zip(self._workers, shares[1:], seeds, strict=True)
        ]
        with using_threads(1):
            loss = add_gradients(self.model, self.config, shares[0], tokens)
        for answer, gradient in zip(asked, self._gradients, strict=True):
            loss += answer.result()
            pairs = zip(self.model.parameters(), gradient, strict=True)
            grads, parts = zip(*((weight.grad, part) for weight, part in pairs if weight.grad is not None), strict=True)
            torch._foreach_add_(grads, parts)
        return loss

    @contextmanager
    def turning(self, optimiser: Optimizer | None) -> Iterator[None]:
        """Let this process and its helpers share the products of Muon within a `with` block."""
        if not isinstance(optimiser, Muon):
            yield
            return
        alone, optimiser.turn = optimiser.turn, self.turned
        try:
            yield
        finally:
            optimiser.turn = alone

    def turned(self, matrices: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
        """Do the same as the function `turned`; the results stay until the next call."""
        shapes = [matrix.shape for matrix in matrices]
        slots = _slots(self._steps, shapes)
        for slot, matrix in zip(slots, matrices, strict=True):
            slot.copy_(matrix)
        alike = sorted(range(len(shapes)), key=lambda place: sorted(shapes[place]))
        shares = [alike[number :: self.count] for number in range(self.count)]
        asked = [
            self._pool.submit(worker.ask, "turn", shapes, share, dtype)
            for worker, share in zip(self._workers, shares[1:], strict=True)
        ]
        with using_threads(1):
            _turn(slots, shares[0], dtype)
        for answer in asked:
            answer.result()
        return slots

    def _replica(self, gradient: Path) -> "_Replica":
        weight = self.model.output.weight
        trainable = tuple(parameter.requires_grad for parameter in self.model.parameters())
        return _Replica(
            self.model.config, self.config, gradient.with_name("weights"), gradient, weight.dtype, trainable
        )


@dataclass(slots=True)
class _Replica:
    """A helper process's work: it reads the shared weights and Muon's matrices, and writes its results beside them."""

    model_config: ModelConfig
    config: TrainingConfig
    weights: Path
    gradient: Path
    dtype: torch.dtype
    trainable: tuple[bool, ...]
    _model: Transformer | None = field(default=None, init=False)
    _steps: Tensor = field(init=False)

    def __call__(self, work: Literal["add", "turn"], *given: Any) -> Any:
        """Return the result of this method."""
        return getattr(self, work)(*given)

    def turn(self, shapes: Sequence[torch.Size], share: Sequence[int], dtype: torch.dtype) -> None:
        """Replace a share of Muon's matrices by `turned` ones."""
        _turn(_slots(self._steps, shapes), share, dtype)

    def add(self, batches: Sequence[Batch], tokens: float, seed: int) -> float:
        """Write the gradient of these batches into shared memory, and return their loss."""
        self._model = model = self._model or self._made()
        torch.manual_seed(seed)
        torch._foreach_zero_([parameter.grad for parameter in model.parameters() if parameter.grad is not None])
        return add_gradients(model, self.config, batches, tokens)

    def _made(self) -> Transformer:
        keep_memory()
        torch.set_num_threads(1)
        torch.set_default_dtype(self.dtype)
        model = Transformer(self.model_config).train()
        parameters = list(model.parameters())
        _use(parameters, _mapped(self.weights, parameters), copy=False)
        self._steps = _flat(self.gradient.with_name("steps"), parameters)
        for parameter, part, trainable in zip(
            parameters, _mapped(self.gradient, parameters), self.trainable, strict=True
        ):
            parameter.requires_grad_(trainable)
            parameter.grad = part if trainable else None
        return model


def _mapped(path: Path, parameters: Sequence[Parameter]) -> list[Tensor]:
    """Return a tensor per parameter, in memory shared by all processes that map the same file."""
    return _slots(_flat(path, parameters), [parameter.shape for parameter in parameters])


def _flat(path: Path, parameters: Sequence[Parameter]) -> Float[Tensor, "N"]:
    """Return a number per weight, in memory shared by all processes that map the same file."""
    size = sum(parameter.numel() for parameter in parameters)
    return torch.from_file(os.fspath(path), shared=True, size=size, dtype=parameters[0].dtype)


def _slots(flat: Float[Tensor, "N"], shapes: Sequence[torch.Size]) -> list[Tensor]:
    """Return tensors of these shapes, one after another in the memory of `flat`."""
    sizes = [shape.numel() for shape in shapes]
    return [part.view(shape) for part, shape in zip(flat[: sum(sizes)].split(sizes), shapes, strict=True)]


def _turn(slots: Sequence[Tensor], share: Sequence[int], dtype: torch.dtype) -> None:
    """Replace these matrices by `turned` ones."""
    for place, change in zip(share, turned([slots[place] for place in share], dtype), strict=True):
        slots[place].copy_(change)


def _use(parameters: Sequence[Parameter], parts: Sequence[Tensor], *, copy: bool = True) -> None:
    """Let the parameters share these tensors' memory; with `copy`, the tensors first get the parameters' values."""
    for parameter, part in zip(parameters, parts, strict=True):
        if copy:
            part.copy_(parameter.detach())
        parameter.data = part


def _take_back(parameters: Sequence[Parameter]) -> None:
    """Move the parameters back into private memory."""
    for parameter in parameters:
        parameter.data = parameter.detach().clone()
