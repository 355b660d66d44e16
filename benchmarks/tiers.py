"""Run make targets one after another, and write a table of what took how long: `python -m benchmarks.tiers TARGET …`.

    python -m benchmarks.tiers check test witness site-ci     what .ci/run runs
    python -m benchmarks.tiers quick --output quick.md

The table has the wall time and processor time of each target, and the seconds of each test file, fixture and slow test,
added up over the processes that run tests. The load of the machine before the start stands above the table: on a
machine that does other work, no figure says anything about a limit.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import psutil

from benchmarks.command import as_command
from benchmarks.results import described, machine, table
from benchmarks.timing import VARIABLE

ROOT = Path(__file__).resolve().parents[1]
IDLE = 0.2
"""The highest load of an idle machine: processes that ran or waited, averaged over the last minute."""
PHASES = ("import", "setup", "call", "teardown")
SLOWEST = 40
"""Number of rows in the tables of fixtures and of tests."""


@dataclass(frozen=True)
class Target:
    """How a make target went."""

    name: str
    wall: float
    """Seconds."""
    processor: float
    """Seconds of all processes that it started and waited for."""
    status: int


def run(name: str, folder: Path) -> Target:
    """Make a target, whose tests write their times into a folder."""
    options = f"{os.environ.get('PYTEST_ADDOPTS', '')} -p benchmarks.timing".strip()
    before, begun = _processor(), perf_counter()
    done = subprocess.run(["make", name], cwd=ROOT, env=os.environ | {"PYTEST_ADDOPTS": options, VARIABLE: str(folder)})
    return Target(name, perf_counter() - begun, _processor() - before, done.returncode)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of all processes."""
    for path in sorted(folder.glob("*.jsonl")):
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def seconds_of(found: Iterable[Mapping[str, Any]], of: Callable[[str], str]) -> dict[str, dict[str, float]]:
    """Return the seconds of each phase, added up by what `of` returns for the name of a test; the slowest first."""
    added: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(PHASES, 0.0))
    for one in found:
        if one["kind"] in PHASES:
            added[of(one["name"])][one["kind"]] += one["seconds"]
    return dict(sorted(added.items(), key=lambda item: -sum(item[1].values())))


def rows_of_files(
    found: Sequence[Mapping[str, Any]], of: Callable[[str], str] = lambda name: name.partition("::")[0]
) -> list[list[str]]:
    """Return a row for each test file, the slowest first: its tests and the seconds of each phase."""
    tests = Counter(of(name) for name in {one["name"] for one in found if one["kind"] in PHASES[1:]})
    return [
        [file, str(tests[file]), *(f"{seconds:.1f}" for seconds in (*times.values(), sum(times.values())))]
        for file, times in seconds_of(found, of).items()
    ]


def rows_of_fixtures(found: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return a row for each fixture of a file, the slowest first: how often it was set up, and its seconds."""
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in found:
        if one["kind"] == "fixture":
            file = one["test"].partition("::")[0] if one["scope"] != "session" else "(session)"
            seconds[one["name"], file].append(one["seconds"])
    ordered = sorted(seconds.items(), key=lambda item: -sum(item[1]))
    return [[name, file, str(len(times)), f"{sum(times):.1f}"] for (name, file), times in ordered]


def rows_of_tests(found: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return a row for each test, the slowest first: seconds of its set-up, of the test, and of what follows."""
    of_tests = (one for one in found if one["kind"] != "import")
    rows = seconds_of(of_tests, lambda name: f"`{name}`")
    return [[name, *(f"{times[phase]:.1f}" for phase in PHASES[1:])] for name, times in rows.items()]


def markdown(targets: Sequence[Target], load: float, found: Sequence[Mapping[str, Any]]) -> str:
    """Return the tables."""
    busy = "" if load <= IDLE else f" (**not idle**: more than {IDLE})"
    each = [[one.name, _minutes(one.wall), _minutes(one.processor), str(one.status)] for one in targets]
    whole = ["all", _minutes(sum(one.wall for one in targets)), _minutes(sum(one.processor for one in targets)), ""]
    files = [*rows_of_files(found), *rows_of_files(found, lambda _: "all")]
    return "\n\n".join(
        [
            f"{date.today()}, {described(machine())}. Load before the start: {load:.2f}{busy}.",
            table(["target", "wall (min:s)", "processor (min:s)", "exit status"], [*each, whole]),
            table(["file", "tests", *(f"{phase} (s)" for phase in PHASES), "sum (s)"], files),
            table(["fixture", "file", "times", "seconds"], rows_of_fixtures(found)[:SLOWEST]),
            table(["test", *(f"{phase} (s)" for phase in PHASES[1:])], rows_of_tests(found)[:SLOWEST]),
        ]
    )


def _minutes(seconds: float) -> str:
    return f"{int(seconds // 60)}:{seconds % 60:04.1f}"


def main() -> int:
    """Make the targets, print the tables, and return 1 if a target failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("targets", nargs="+", metavar="TARGET", help="a target of the Makefile")
    parser.add_argument("--output", type=Path, help="write the tables to this file instead of printing them")
    parser.add_argument("--records", type=Path, help="keep the records of single tests in this folder")
    given = parser.parse_args()
    load = psutil.getloadavg()[0]
    with TemporaryDirectory() as temporary:
        folder = given.records or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        targets = [run(name, folder.resolve()) for name in given.targets]
        text = markdown(targets, load, list(records(folder)))
    if given.output:
        given.output.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)
    return int(any(one.status for one in targets))


if __name__ == "__main__":
    as_command(lambda: sys.exit(main()))
