"""The precision of matrix products in training, as configured or chosen by measuring the speed of the device."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from glassformer.errors import ConfigError
from glassformer.model.fast.linear import linear
from glassformer.recipes.configuration import Precision, TrainingConfig
from glassformer.system.machine import using_threads

__all__ = ["decided", "matrix_speed", "rounding"]

MATRIX_SECONDS, TRYING = 0.5, 0.1
"""Seconds for which a device's speed is measured, and seconds per precision if two precisions are compared."""


def decided(config: TrainingConfig, device: torch.device) -> TrainingConfig:
    """Return the configuration with precision "auto" replaced by "bf16" or "fp32", whichever is faster on this device.

    The speed is measured, because no device property states it reliably: processors that emulate bf16 take up to three
    times as long in bf16 as in float32, and processors with native bf16 take half as long.
    """
    if config.precision != "auto":
        return config
    faster = matrix_speed(TRYING, "bf16", device=device) > matrix_speed(TRYING, "fp32", device=device)
    return replace(config, precision="bf16" if faster else "fp32")


def rounding(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Return the context for the forward pass; in it, the factors of matrix products are rounded to this precision.

    Raises:
        ConfigError: the precision is "auto".
    """
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, _dtype(precision))


def matrix_speed(
    seconds: float = MATRIX_SECONDS,
    precision: Precision = "fp32",
    threads: int | None = None,
    device: torch.device | None = None,
) -> float:
    """Return the best floating-point operations per second of a large matrix product, measured for some seconds.

    In float32, both PyTorch's product and the model's own (`model/fast/linear.py`) are measured; the faster product
    counts.

    Raises:
        ConfigError: the precision is "auto".
    """
    dtype = _dtype(precision)
    # The matrices are not random, because measuring before training must not change the random numbers that training
    # draws.
    left, weight = (torch.ones(2048, 1024, dtype=dtype, device=device) for _ in range(2))
    flops = 2.0 * left.shape[0] * weight.shape[0] * weight.shape[1]
    with torch.no_grad(), using_threads(threads or torch.get_num_threads()):
        products: list[Callable[[], Tensor]] = [lambda: _ready(F.linear(left, weight))]
        if precision == "fp32":
            products.append(lambda: _ready(linear(left, weight)))
        shortest = min(_shortest(product, seconds / len(products)) for product in products)
    return flops / shortest


def _dtype(precision: Precision) -> torch.dtype:
    match precision:
        case "fp32":
            return torch.float32
        case "bf16":
            return torch.bfloat16
        case "fp16":
            return torch.float16
        case "auto":
            raise ConfigError(
                'training.precision: expected fp32, bf16 or fp16, got "auto"; set it, or let '
                "glassformer.training.precision.decided choose it"
            )


def _ready(x: Tensor) -> Tensor:
    """Wait until a result is computed, and return it; a GPU's operations return before they have finished."""
    if x.device.type == "cuda":
        torch.cuda.synchronize(x.device)
    return x


def _shortest(work: Callable[[], object], seconds: float) -> float:
    """Call `work` for some seconds, and return the time of the fastest call; the first call does not count."""
    work()
    times, ends = list[float](), time.perf_counter() + seconds
    while not times or time.perf_counter() < ends:
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)
