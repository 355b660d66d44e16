"""Kill ranks of a training run, and measure what training by ranks costs: `python -m benchmarks.ranks`.

Kills: torchrun trains two ranks of a small model and restarts them after each kill. A random rank is killed by SIGKILL,
at a random step, or while a checkpoint is written (every second kill). The run must end bit-identical to a run that was
left alone.

Speed: the demo's training, as one process with and without torchrun, and as two single-threaded processes, which
`training.workers` or torchrun starts. The processes take turns, so noise of the machine affects all alike; a ratio
compares two processes of the same round.

Writes results/ranks.json.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks.command import as_command
from benchmarks.processes import rotated
from benchmarks.results import described, machine, read, spread, table, write
from glassformer.jobs import METRICS_FILE, read_log
from glassformer.jobs.verify_resume import difference_between_runs

NAME = "ranks"
KILLS, ROUNDS = 100, 7
APART = 40
"""Maximum number of steps from one kill to the next."""
EVERY = 10
"""Steps from one checkpoint to the next, in the run that is killed."""
UPDATES, WARM = 60, 10
"""Number of timed updates, and of updates before them."""
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
    """Start a command of glassformer, with one thread a process, by torchrun if it has ranks."""
    many = ["torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *options, "-m"] if ranks else []
    command = [sys.executable, "-m", *many, "glassformer", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def finish(process: "subprocess.Popen[bytes]") -> None:
    """Wait for a process.

    Raises:
        CalledProcessError: it failed.
    """
    if process.wait():
        raise subprocess.CalledProcessError(process.returncode, process.args)


# Kills


def killed(folder: Path, kills: int) -> dict[str, Any]:
    """Return the number of kills, of kills while a checkpoint was written, and the first difference of the runs."""
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
    """Return the last step in a run's log; 0 before the first."""
    path = run / METRICS_FILE
    return max((line["step"] for line in read_log(path)), default=0) if path.exists() else 0


def _wait(process: "subprocess.Popen[bytes]", seen: Any) -> bool:
    """Return True once `seen()` is true, and False if the process ends first."""
    while process.poll() is None:
        if seen():
            return True
        time.sleep(0.002)
    return False


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
            log = read_log(folder / run / METRICS_FILE)
            seconds = {line["step"]: line["seconds"] for line in log if line["type"] == "step"}
            found[name].append(UPDATES / (seconds[UPDATES + WARM] - seconds[WARM]))
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return found


def markdown(figures: dict[str, Any]) -> str:
    """Return the section."""
    kills, found = figures["kills"], figures["updates_per_second"]
    parts = []
    if kills:
        end = (
            "bit-identical to a run left alone" if kills["difference"] is None else f"NOT exact: {kills['difference']}"
        )
        parts.append(
            f"{kills['kills']} kills of a random rank of two, {kills['while a checkpoint was written']} of them while "
            f"a checkpoint was written, in {kills['steps']} steps ({kills['minutes']:.0f} minutes): {end}.\n"
        )
    if found:
        rows = [[name, spread(values).text(2)] for name, values in found.items()]
        for name, (one, other) in RATIOS.items():
            pairs = [left / right for left, right in zip(found[one], found[other], strict=True)]
            rows.append([name, spread(pairs).text(3)])
        parts.append(table(["", "updates/s, or their ratio: median (quartiles)"], rows))
        parts.append(f"{len(found['one process'])} rounds of {UPDATES} updates.\n")
    what = "\n".join(parts)
    return f"## Ranks\n\n`{figures['command']}`, {figures['day']}:\n\n{what}\n{described(figures['machine'])}.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=KILLS, help="number of kills; 0 = measure only the speed")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of the speed; 0 = only kill")
    given = parser.parse_args()
    of = machine()
    with tempfile.TemporaryDirectory(prefix="glassformer-ranks-") as temporary:
        folder = Path(temporary)
        kills = killed(folder, given.kills) if given.kills else {}
        write(NAME, {"kills": kills, "updates_per_second": speeds(folder, given.rounds)}, of)
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
