"""Measure the machine's ceiling: the speed of matrix products of the model's shapes, in every way that PyTorch offers.

`python -m benchmarks.gemm` prints GFLOP/s. The ceiling of a precision is the highest speed over all shapes and ways; no
model can be faster on this machine. Benchmarks measure the ceiling in the same run as the speeds to be compared.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.command import as_command
from glassformer.system.machine import cores

SHAPES = {
    "256 → 256": (4096, 256, 256),
    "256 → 768": (4096, 256, 768),
    "256 → 1024": (4096, 256, 1024),
    "1024 → 256": (4096, 1024, 256),
    "256 → 8000": (4096, 256, 8000),
    "gradient of 8000 × 256": (8000, 4096, 256),
    "square": (2048, 2048, 2048),
}
"""Shapes of matrix products, by name: (rows, inner width, columns)."""
REPETITIONS = 5


def measure(seconds: float = 0.05, shapes: Mapping[str, tuple[int, int, int]] = SHAPES) -> dict[str, dict[str, float]]:
    """Return the GFLOP/s of each way and shape: the median of measurements of at least `seconds` seconds each.

    The ways to multiply take turns.
    """
    import torch

    found: dict[str, dict[str, float]] = {}
    for shape, (rows, inner, columns) in shapes.items():
        ways = _ways(torch, rows, inner, columns)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for name, way in [*ways.items()] * REPETITIONS:
            times[name].append(_seconds(way, seconds))
        for name, some in times.items():
            found.setdefault(name, {})[shape] = 2e-9 * rows * inner * columns / median(some)
    return found


def ceilings(measured: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the ceiling of each precision in GFLOP/s."""
    return {
        precision: max(
            speed for name, shapes in measured.items() if name.startswith(precision) for speed in shapes.values()
        )
        for precision in ("fp32", "bf16")
    }


def ceilings_apart(threads: int) -> dict[str, float]:
    """Return the ceilings, measured in a new process with this number of threads."""
    command = [sys.executable, "-m", "benchmarks.gemm", "--json", "--threads", str(threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    return ceilings(json.loads(done.stdout))


def _ways(torch: Any, rows: int, inner: int, columns: int) -> dict[str, Callable[[], object]]:
    """Return every way to multiply (rows, inner) by the transpose of (columns, inner), by precision and name."""
    x, weight = torch.randn(rows, inner), torch.randn(columns, inner)
    linear, low, low_weight = torch.nn.functional.linear, x.bfloat16(), weight.bfloat16()
    ways = {"fp32 linear": lambda: linear(x, weight), "bf16 linear": lambda: linear(low, low_weight)}
    if torch.backends.mkldnn.is_available():
        reorder, pointwise = torch.ops.mkldnn._reorder_linear_weight, torch.ops.mkldnn._linear_pointwise
        packed = reorder(weight, rows)
        ways["fp32 oneDNN"] = lambda: pointwise(x, weight, None, "none", [], "")
        ways["fp32 oneDNN, packed"] = lambda: pointwise(x, packed, None, "none", [], "")
        if torch.ops.mkldnn._is_mkldnn_bf16_supported():
            low_packed = reorder(low_weight, rows)
            ways["bf16 oneDNN, packed"] = lambda: pointwise(low, low_packed, None, "none", [], "")
    return ways


def _seconds(way: Callable[[], object], least: float) -> float:
    """Return the mean seconds of a call, over enough calls to take at least `least` seconds together."""
    way()
    begun, count = time.perf_counter(), 0
    while (taken := time.perf_counter() - begun) < least or not count:
        way()
        count += 1
    return taken / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=cores())
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    import torch

    torch.set_num_threads(given.threads)
    measured = measure()
    if given.json:
        print(json.dumps(measured))
        return
    print(f"GFLOP/s, {given.threads} threads, median of {REPETITIONS}")
    for shape in SHAPES:
        print(f"{shape:<24}" + "  ".join(f"{name} {shapes[shape]:.0f}" for name, shapes in measured.items()))
    print("ceilings: " + ", ".join(f"{precision} {speed:.0f}" for precision, speed in ceilings(measured).items()))


if __name__ == "__main__":
    as_command(main)
