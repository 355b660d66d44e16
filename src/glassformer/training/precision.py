"""In which precision a training multiplies matrices: decided by what the device is fast in, or as it is told."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from glassformer.machine import using_threads
from glassformer.model.linear import linear
from glassformer.recipes.configuration import Precision, TrainingConfig

__all__ = ["decided", "matrix_speed", "rounding"]

MATRIX_SECONDS, TRYING = 0.5, 0.1
"""How long a device's speed is measured, and how long where it is only asked which of two is the larger."""


def decided(config: TrainingConfig, device: torch.device) -> TrainingConfig:
    """Return the configuration with a precision of "auto" decided: bf16 where this device multiplies faster in it.

    That is measured, for nothing says it of every kind of device: processors that have to emulate bf16 take up to three
    times as long in it as in fp32, those that have it half as long.
    """
    if config.precision != "auto":
        return config
    faster = matrix_speed(TRYING, "bf16", device=device) > matrix_speed(TRYING, "fp32", device=device)
    return replace(config, precision="bf16" if faster else "fp32")


def rounding(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Return the context in which the forward pass runs: in it the factors of matrix products are rounded."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16 if precision == "bf16" else torch.float16)


def matrix_speed(
    seconds: float = MATRIX_SECONDS,
    precision: Precision = "fp32",
    threads: int | None = None,
    device: torch.device | None = None,
) -> float:
    """Return this machine's floating-point operations per second in a large matrix product: the best it did in so long.

    Of those who multiply here (PyTorch's own choice, and in float32 the model's, see `model.linear`) the faster counts;
    the precision is a decided one, not "auto".
    """
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    # Nothing is drawn: whoever measures before a training leaves its random numbers alone.
    left, weight = (torch.ones(2048, 1024, dtype=dtype, device=device) for _ in range(2))
    flops = 2.0 * left.shape[0] * weight.shape[0] * weight.shape[1]
    with torch.no_grad(), using_threads(threads or torch.get_num_threads()):
        products: list[Callable[[], Tensor]] = [lambda: _ready(F.linear(left, weight))]
        if precision == "fp32":
            products.append(lambda: _ready(linear(left, weight)))
        shortest = min(_shortest(product, seconds / len(products)) for product in products)
    return flops / shortest


def _ready(x: Tensor) -> Tensor:
    """Return what a device has worked out, once it has: a GPU says that it is done before it is."""
    if x.device.type == "cuda":
        torch.cuda.synchronize(x.device)
    return x


def _shortest(work: Callable[[], object], seconds: float) -> float:
    """Return the shortest time that some work took, of as many as there was time for; the first does not count."""
    work()
    times, ends = list[float](), time.perf_counter() + seconds
    while not times or time.perf_counter() < ends:
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)
