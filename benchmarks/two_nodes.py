"""Observe a bulk translation on two local Ray nodes whose actors and nodes are killed at random moments.

    python -m benchmarks.two_nodes RUN --calibrate
    python -m benchmarks.two_nodes RUN --seed 1

RUN is a run or an export, such as the demo's run exported to CTranslate2. The times of a seed's kills are drawn before
the translation starts, exponentially distributed with a rate per node. `--calibrate` translates different lines with
three kills; the simulation takes its times from this translation. Both results are added to `results/two-nodes.json`.
`benchmarks.simulation` counts as valid if it predicts the durations of the seeds' translations from the calibration.
"""

import argparse
import random
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks import results
from benchmarks.bulk import Bench, actors, ray_nodes, write_nasty
from benchmarks.command import as_command

__all__ = ["NAME", "kills_of", "main", "observe"]

NAME = "two-nodes"
NODES = 2
POLL = 0.02
"""Seconds between two inspections of the folder."""
NODE_SHARE = 0.25
"""Share of the kills that kill a node; the other kills kill an actor."""
CALIBRATION = [(5.0, "actor"), (10.0, "actor"), (15.0, "node")]
"""The kills of the calibration, after these numbers of completed parts."""
_TEMPORARY = re.compile(r"\.(?P<part>.*)\.txt\.[0-9a-f]{32}\.tmp")
"""The file of an attempt to translate a part; the actor creates this file when it begins."""


def kills_of(seed: int, mtbf: float, until: float) -> list[tuple[float, str]]:
    """Return the time, in seconds from the start, and the kind of each kill in a run on two nodes."""
    chance, moment, found = random.Random(seed), 0.0, list[tuple[float, str]]()
    while (moment := moment + chance.expovariate(NODES / mtbf)) < until:
        found.append((moment, "node" if chance.random() < NODE_SHARE else "actor"))
    return found


def observe(
    bench: Bench, folder: Path, kills: Sequence[tuple[float, str]], *, by_parts: bool = False
) -> dict[str, Any]:
    """Translate on two new nodes while actors and nodes are killed; return the events, in seconds from the start.

    With `by_parts`, the time of a kill is given as a number of completed parts. A kill is left out if no actor is at
    work. In the result, `attempts` lists the part, the begin and (if the part was completed) the end of each attempt;
    `driver` is the command's CPU time per part.
    """
    waiting, hits, begins, ends = list(kills), list[tuple[float, str]](), dict[str, float](), dict[str, float]()
    chance, before, used = random.Random(0), 0.0, 0.0
    with ray_nodes() as nodes:
        assert nodes.stdin
        assert nodes.stdout
        address = nodes.stdout.readline().strip()
        begun, driver = time.perf_counter(), bench.bulk(folder, "--ray", address)
        while driver.poll() is None:
            time.sleep(POLL)
            _look(folder, time.perf_counter() - begun, begins, ends)
            with suppress(psutil.Error):
                used = sum(psutil.Process(driver.pid).cpu_times()[:2])
            before = before if begins else used
            due = waiting and (len(ends) if by_parts else time.perf_counter() - begun) >= waiting[0][0]
            if due and _kill(nodes, kind := waiting.pop(0)[1], chance):
                hits.append((time.perf_counter() - begun, kind))
        makespan = time.perf_counter() - begun
    assert driver.returncode == 0, "the command failed"
    attempts = [
        (found["part"], begin, ends.get(name)) for name, begin in begins.items() if (found := _TEMPORARY.match(name))
    ]
    return {"makespan": makespan, "driver": (used - before) / len(ends), "kills": hits, "attempts": attempts}


def _look(folder: Path, now: float, begins: dict[str, float], ends: dict[str, float]) -> None:
    """Record the attempts that have begun, and the attempts whose parts are complete."""
    names = {path.name for path in folder.glob("parts/*")}
    for name in names - begins.keys():
        if _TEMPORARY.fullmatch(name):
            begins[name] = now
    for name in begins.keys() - ends.keys() - names:  # parts were renamed, and a killed actor leaves its file behind
        ends[name] = now


def _kill(nodes: "subprocess.Popen[str]", kind: str, chance: random.Random) -> bool:
    """Kill a random actor that translates, or replace the second node; return whether an actor was killed."""
    working = actors(nodes)
    if not working:
        return False
    if kind == "actor":
        chance.choice(working).kill()
    else:
        assert nodes.stdin
        nodes.stdin.write("replace\n")
        nodes.stdin.flush()
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run")
    parser.add_argument("--lines", type=int, default=90_000)
    parser.add_argument("--part-bytes", type=int, default=75_000)
    parser.add_argument("--mtbf", type=float, default=60.0, help="mean seconds between two kills of a node")
    parser.add_argument("--seed", type=int, default=1, help="of the lines and of the kills")
    parser.add_argument("--calibrate", action="store_true", help="kill after fixed numbers of parts")
    given = parser.parse_args()
    machine, figures = results.machine(), results.read(NAME)
    kills = CALIBRATION if given.calibrate else kills_of(given.seed, given.mtbf, until=600)
    with tempfile.TemporaryDirectory() as work:
        file = Path(work, "nasty.txt")
        write_nasty(file, given.lines, seed=given.seed)
        bench = Bench(given.run, file, given.part_bytes)
        seen = observe(bench, Path(work, "translated"), kills, by_parts=given.calibrate)
    how = {"lines": given.lines, "part_bytes": given.part_bytes, "seed": given.seed}
    if given.calibrate:
        found: dict[str, Any] = {"calibration": how | seen, "runs": figures.get("runs", [])}
    else:
        runs = [*figures.get("runs", []), how | {"mtbf": given.mtbf} | seen]
        found = {"calibration": figures.get("calibration", {}), "runs": runs}
    print(f"{seen['makespan']:.1f} s, {len(seen['attempts'])} attempts, {len(seen['kills'])} kills")
    results.write(NAME, found, machine)


if __name__ == "__main__":
    as_command(main)
