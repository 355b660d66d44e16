"""Kill ranks of a training run, and measure its losses and its speed: `python -m benchmarks.ranks`.

Kills: torchrun trains a small model with two ranks, and restarts them after each kill. A random rank is killed by
SIGKILL, at a random step or (every second kill) while a checkpoint is written. The result must be bit-identical to the
result of a run without kills.

Losses: training with dropout on 1, 2 and 4 ranks, with several seeds each. Each rank drops different values, so the
validation losses differ, but they must not differ more than between seeds.

Speed: the demo's training, as one process with and without torchrun, and as two single-threaded processes that
`training.workers` or torchrun starts. The variants take turns, so noise of the machine affects all variants equally. A
ratio compares two variants in the same round. A speed is computed from the median duration of an update.

Writes results/ranks-kills.json, ranks-losses.json and ranks-speed.json.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import psutil

from benchmarks.command import as_command
from benchmarks.processes import rotated
from benchmarks.results import described, machine, read, spread, table, write
from benchmarks.resume import difference_between_runs
from glassformer.jobs import METRICS_FILE, read_log

KILLS, SEEDS, ROUNDS = 100, 3, 7
COUNTS = (1, 2, 4)
"""Numbers of ranks whose losses are compared."""
LEARNING = 600
"""Number of updates of a run whose loss is compared."""
APART = 40
"""Maximum number of steps between two kills."""
EVERY = 10
"""Number of steps between two checkpoints, in the run that is killed."""
UPDATES, WARM = 60, 10
"""Number of timed updates, and number of updates before the timed updates."""
SMALL = ("model.d_model=16", "model.d_ff=24", "model.heads=2", "model.dropout=0.1", "training.batch_tokens=400")
RATIOS = {
    "one process under torchrun, against none": ("one rank", "one process"),
    "two ranks, against training.workers = 2": ("two ranks", "two workers"),
}


def settings(folder: Path, name: str, steps: int, *others: str) -> list[str]:
    """Return the arguments of a training run of the demo."""
    common = ("training.validate_every=0", "training.snapshots=0", "training.metric=none", "training.log_every=1")
    own = (f"run.directory={json.dumps(str(folder / name))}", f"data.prepared={json.dumps(str(folder / 'prepared'))}")
    chosen = [f"training.steps={steps}", *common, *own, *others]
    return ["train", "demo", *(part for setting in chosen for part in ("--set", setting))]


def start(arguments: Sequence[str], ranks: int = 0, *options: str) -> "subprocess.Popen[bytes]":
    """Start a glassformer command with one thread per process; torchrun starts it if `ranks` is not 0."""
    many = ["torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *options, "-m"] if ranks else []
    command = [sys.executable, "-m", *many, "glassformer", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def finish(process: "subprocess.Popen[bytes]") -> None:
    """Wait for a process.

    Raises:
        CalledProcessError: the process failed.
    """
    if process.wait():
        raise subprocess.CalledProcessError(process.returncode, process.args)


# Kills


def killed(folder: Path, kills: int) -> dict[str, Any]:
    """Return the numbers of all kills and of kills during a checkpoint's write, and the runs' first difference."""
    steps, begun = APART * kills, time.perf_counter()
    often = (f"training.checkpoint_every={EVERY}", *SMALL)
    finish(start(settings(folder, "whole", steps, *often), 2))
    run, done, inside = folder / "broken", 0, 0
    process = start(settings(folder, "broken", steps, *often), 2, f"--max-restarts={kills}")
    for number in range(kills):
        goal = last_step(run) + random.randint(1, APART)
        reached = _wait(process, lambda goal=goal: last_step(run) >= goal)
        if number % 2 and reached:
            reached = _wait(process, lambda: any(run.glob("checkpoints/.step-*.tmp")))
        if not reached:
            break
        time.sleep(random.uniform(0, 0.01))
        ranks = [child for child in psutil.Process(process.pid).children() if "glassformer" in child.cmdline()]
        victim = random.choice(ranks)
        inside += any(run.glob("checkpoints/.step-*.tmp"))
        victim.kill()
        done += 1
        _wait(process, lambda ranks=ranks: not any(rank.is_running() for rank in ranks))
        print(f"kill {done} of {kills} after step {last_step(run)} of {steps}", file=sys.stderr)
    finish(process)
    difference = difference_between_runs(folder / "whole", run)
    return {
        "kills": done,
        "while a checkpoint was written": inside,
        "steps": steps,
        "difference": difference,
        "minutes": (time.perf_counter() - begun) / 60,
    }


def last_step(run: Path) -> int:
    """Return the last step in a run's log, or 0 if the log has no step yet."""
    path = run / METRICS_FILE
    return max((line["step"] for line in read_log(path)), default=0) if path.exists() else 0


def _wait(process: "subprocess.Popen[bytes]", seen: Any) -> bool:
    """Wait until `seen()` is true and return True; return False if the process ends first."""
    while process.poll() is None:
        if seen():
            return True
        time.sleep(0.002)
    return False


# Losses


def losses(folder: Path, seeds: int) -> dict[str, list[float]]:
    """Return the validation losses after training, one per seed, by number of ranks."""
    found: dict[str, list[float]] = {f"{count}": [] for count in COUNTS}
    for seed in range(1, seeds + 1):
        for count in COUNTS:
            run = f"ranks-{count}-seed-{seed}"
            prepared = folder / f"prepared-{seed}"  # the seed also chooses the validation pairs
            own = (f"run.seed={seed}", f"data.prepared={json.dumps(str(prepared))}")
            finish(start(settings(folder, run, LEARNING, *SMALL, *own), count))
            log = read_log(folder / run / METRICS_FILE)
            found[f"{count}"] += [line["loss"] for line in log if line["type"] == "validation"]
        print(f"seed {seed} of {seeds}", file=sys.stderr)
    return found


# Speed


def speeds(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Return the updates per second of each entry, by round."""
    entries = {"one process": (0, 1), "one rank": (1, 1), "two workers": (0, 2), "two ranks": (2, 1)}
    found: dict[str, list[float]] = {name: [] for name in entries}
    for number in range(rounds):
        for name in rotated(list(entries), number):
            ranks, workers = entries[name]
            run = f"{name.replace(' ', '-')}-{number}"
            others = (f"training.workers={workers}", "training.checkpoint_every=100000")
            finish(start(settings(folder, run, UPDATES + WARM, *others), ranks))
            found[name].append(1 / seconds_of_step(folder / run))
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return found


def seconds_of_step(run: Path) -> float:
    """Return the median duration of a run's updates after the first WARM updates; noise hardly affects the median."""
    log = read_log(run / METRICS_FILE)
    times = [line["seconds"] for line in log if line["type"] == "step"][WARM:]
    return float(median(after - before for before, after in pairwise(times)))


def kills_text(kills: dict[str, Any]) -> str:
    end = "bit-identical to a run left alone" if kills["difference"] is None else f"NOT exact: {kills['difference']}"
    return (
        f"{kills['kills']} kills of a random rank of two, {kills['while a checkpoint was written']} of them while a "
        f"checkpoint was written, in {kills['steps']} steps ({kills['minutes']:.0f} minutes): {end}.\n"
    )


def losses_text(found: dict[str, list[float]]) -> str:
    """Return a Markdown table. Losses are also compared seed by seed, because a seed decides the validation pairs."""
    rows = []
    for count, values in found.items():
        apart = ", ".join(f"{value - one:+.4f}" for value, one in zip(values, found["1"], strict=True))
        rows.append([count, f"{mean(values):.4f}", f"{stdev(values):.4f}", apart])
    return table(["ranks", "validation loss", "standard deviation over seeds", "difference from 1 rank, by seed"], rows)


def speed_text(found: dict[str, list[float]]) -> str:
    rows = [[name, spread(values).text(2)] for name, values in found.items()]
    for name, (one, other) in RATIOS.items():
        pairs = [left / right for left, right in zip(found[one], found[other], strict=True)]
        rows.append([name, spread(pairs).text(3)])
    rounds = f"{len(found['one process'])} rounds of {UPDATES} updates.\n"
    return f"{table(['', 'updates/s, or their ratio: median (quartiles)'], rows)}\n{rounds}"


PARTS: dict[str, tuple[Callable[[Path, int], dict[str, Any]], Callable[[dict[str, Any]], str]]] = {
    "kills": (killed, kills_text),
    "losses": (losses, losses_text),
    "speed": (speeds, speed_text),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=KILLS, help="number of kills; 0 = none")
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, help="number of seeds whose losses are compared, from 2; 0 = none"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of the speed; 0 = none")
    given = parser.parse_args()
    of = machine()
    with tempfile.TemporaryDirectory(prefix="glassformer-ranks-") as temporary:
        for (name, (measure, text_of)), number in zip(
            PARTS.items(), (given.kills, given.seeds, given.rounds), strict=True
        ):
            if number:
                write(f"ranks-{name}", {name: measure(Path(temporary), number)}, of)
                figures = read(f"ranks-{name}")
                print(f"`{figures['command']}`, {figures['day']}:\n\n{text_of(figures[name])}")
                print(f"{described(figures['machine'])}.\n")


if __name__ == "__main__":
    as_command(main)
