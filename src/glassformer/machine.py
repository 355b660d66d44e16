"""How a process uses the machine: its processor and cores, its memory, and torch's devices and threads.

torch and ctypes are imported by what needs them, when it is called: who translates without them starts without them.
"""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from glassformer.errors import ConfigError

if TYPE_CHECKING:
    import torch

__all__ = ["cores", "device_of", "is_intel", "keep_memory", "using_threads"]

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
CPUINFO = Path("/proc/cpuinfo")
"""Where Linux says what the processor is."""
_CACHES = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def device_of(name: str) -> "torch.device":
    """Return the device of this name; "auto" is a GPU where PyTorch can use one, and the CPU elsewhere.

    Raises:
        ConfigError: it is not here.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (AssertionError, RuntimeError) as error:  # PyTorch asserts that it was built with CUDA
        reason = str(error).partition("\n")[0].partition(". ")[0]
        raise ConfigError(
            f'training.device = {name!r} cannot be used here ({reason}): expected "auto", "cpu", "cuda" or another '
            "that the installed PyTorch has"
        ) from error
    return device


@cache
def is_intel() -> bool:
    """Return whether the processor is Intel's, to which MKL gives all that it can do."""
    return "GenuineIntel" in (CPUINFO.read_text() if CPUINFO.exists() else platform.processor())


def keep_memory() -> bool:
    """Tell glibc to keep freed memory instead of handing it back to the kernel; return whether that was possible.

    Training on CPUs gets a quarter faster by it. A training step frees and takes the same large blocks again and again.
    By default each comes fresh from the kernel, which then has to clear it page by page.

    Also let oneDNN, which multiplies, and torch's way to it keep what they made for 16 shapes of matrices each. By
    default both keep 1 024, up to megabytes each, and nearly each batch brings new shapes. With 64 training is no
    faster than with 16, and takes 200 MB more; with none it is 3 % slower. They read that once, before the first
    product; what the user has set stays.

    Both hold for the whole process.
    """
    import ctypes

    for name in _CACHES:
        os.environ.setdefault(name, "16")
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    settings = {_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: 2**31 - 1, _M_TOP_PAD: 64 << 20}
    return all(mallopt(name, value) for name, value in settings.items())


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Let torch have so many threads for a while, in the whole process."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
