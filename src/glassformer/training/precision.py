"""In which precision a training multiplies matrices: decided by what the device is fast in, or as it is told."""

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch

from glassformer.recipes.configuration import Precision, TrainingConfig

__all__ = ["decided", "rounding"]

SIDE, TIMES = 1024, 5
"""Of the matrices by which devices are tried, and how often; all of it takes a CPU a tenth of a second."""


def decided(config: TrainingConfig, device: torch.device) -> TrainingConfig:
    """Return the configuration with a precision of "auto" decided: bf16 where this device multiplies faster in it.

    That is measured, for nothing says it of every kind of device: processors that have to emulate bf16 take up to three
    times as long in it as in fp32, those that have it half as long.
    """
    if config.precision != "auto":
        return config
    faster = _seconds(torch.bfloat16, device) < _seconds(torch.float32, device)
    return replace(config, precision="bf16" if faster else "fp32")


def rounding(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Return the context in which the forward pass runs: in it the factors of matrix products are rounded."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16 if precision == "bf16" else torch.float16)


def _seconds(dtype: torch.dtype, device: torch.device) -> float:
    """Return the least time of a product in this arithmetic; the first, for which all is made ready, does not count."""
    x = torch.ones(SIDE, SIDE, dtype=dtype, device=device)
    times = []
    for _ in range(1 + TIMES):
        begun = time.perf_counter()
        (x @ x)[0, 0].item()  # which waits for a GPU
        times.append(time.perf_counter() - begun)
    return min(times[1:])
