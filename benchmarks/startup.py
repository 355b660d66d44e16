"""How long a command takes before it does anything: run it as `python benchmarks/startup.py`.

Each line is a fresh process; they take turns, so that the machine's noise hits all alike. Prints medians.
"""

import subprocess
import sys
import time
from statistics import median

ROUNDS = 15
COMMANDS = {
    "empty interpreter": ["-c", "pass"],
    "import glassformer": ["-c", "import glassformer"],
    "glassformer --help": ["-m", "glassformer", "--help"],
    "glassformer translate --help": ["-m", "glassformer", "translate", "--help"],
    "import torch": ["-c", "import torch"],
    "import glassformer.model.transformer": ["-c", "import glassformer.model.transformer"],
}


def seconds(arguments: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def main() -> None:
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, arguments in COMMANDS.items():
            taken[name].append(seconds(arguments))
    empty = median(taken["empty interpreter"])
    for name, times in taken.items():
        print(f"{name:<38} {median(times) * 1000:7.0f} ms   {(median(times) - empty) * 1000:+7.0f} ms")


if __name__ == "__main__":
    main()
