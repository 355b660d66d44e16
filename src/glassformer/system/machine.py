"""The machine as seen by a process: its processor and cores, its memory, and torch's devices and threads.

torch and ctypes are imported lazily; translating with CTranslate2 loads neither.
"""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from glassformer.errors import ConfigError, quoted

if TYPE_CHECKING:
    import torch

__all__ = [
    "LOOPBACK",
    "MEMORY",
    "cores",
    "device_of",
    "is_first_process",
    "is_intel",
    "keep_memory",
    "using_threads",
]

LOOPBACK = "127.0.0.1"
"""The loopback address. Pages are served on this address because no other machine can reach it."""
MEMORY = "/dev/shm"
"""A folder whose files Linux keeps in memory."""
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
CPUINFO = Path("/proc/cpuinfo")
"""The file in which Linux describes the processor."""
_CACHES = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_first_process() -> bool:
    """Return whether this process is rank 0 of the processes that torchrun started, or was not started by torchrun."""
    return os.environ.get("RANK", "0") == "0"


def device_of(name: str, setting: str = "device") -> "torch.device":
    """Return the device with this name; "auto" means a GPU if PyTorch can use one, and the CPU otherwise.

    Error messages begin with `setting`, the name of the setting that names the device.

    Raises:
        ConfigError: the device is not available.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (AssertionError, RuntimeError) as error:  # if PyTorch was built without CUDA, an assertion fails
        reason = str(error).partition("\n")[0].partition(". ")[0]
        raise ConfigError(
            f'{setting}: expected "auto", "cpu", "cuda" or another device of the installed PyTorch, got {quoted(name)} '
            f"({reason})"
        ) from error
    return device


@cache
def is_intel() -> bool:
    """Return whether the processor is made by Intel; MKL runs at full speed only on such processors."""
    return "GenuineIntel" in (CPUINFO.read_text() if CPUINFO.exists() else platform.processor())


def keep_memory(products: int = 32) -> bool:
    """Make glibc keep freed memory instead of returning the memory to the kernel; return whether this is possible.

    Training on CPUs becomes a quarter faster. Each training step frees and allocates the same large blocks. By default,
    the kernel allocates every block again and must clear it page by page.

    This function also limits the caches of oneDNN and of PyTorch's interface to oneDNN. Each matrix product of a new
    shape is compiled, which takes 0.3 to 2 ms. oneDNN then keeps the last `products` compiled products (about 0.4 MB
    each), and PyTorch's interface keeps the last 16. By default, both keep 1 024 compiled products. The limits are
    environment variables, which this process and its child processes read once, before the first product. Values set by
    the user are kept.

    All changes apply to the whole process.
    """
    import ctypes

    for name, count in zip(_CACHES, (products, 16), strict=True):
        os.environ.setdefault(name, str(count))
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
    """Make PyTorch use `count` threads within the context, in the whole process."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
