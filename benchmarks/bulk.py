"""Check that bulk translation gives the same bytes with one process, several processes and Ray, despite kills.

    python -m benchmarks.bulk RUN [--lines 2000000] [--kills 30] [--processes 4] [--ray]

RUN is a run or an export, such as the demo's run exported to CTranslate2. The file has ordinary and nasty lines. Every
part is translated by greedy search.

1. `translate FILE` and `bulk FILE` translate the first lines in turns: the ratio of their times is the overhead of the
   parts. `--lines 0` leaves out the steps after this one.
2. One process translates all parts; then several processes translate shares of the parts at the same time
   (`--part I/N`).
3. The same processes are killed (SIGKILL) at random moments, and started again.
4. With --ray, a command on two local nodes is started; actors, a node's raylet and the command itself are killed.

All outputs must equal the output of `translate FILE`, byte for byte. Parts that were complete before a kill must not be
written again. `--finish` must accept each folder. If not, an assertion fails. Writes results/bulk.json.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psutil

from benchmarks.command import as_command
from benchmarks.processes import rotated
from benchmarks.ray_nodes import SETTINGS
from benchmarks.results import machine, spread, table, write

__all__ = [
    "ENVIRONMENT",
    "actors",
    "complete",
    "contents",
    "main",
    "nasty_lines",
    "outputs",
    "ray_nodes",
    "write_nasty",
]

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = os.environ | SETTINGS | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
WORDS = [
    "the",
    "a",
    "black",
    "white",
    "big",
    "small",
    "tired",
    "cat",
    "dog",
    "animal",
    "bird",
    "horse",
    "sat",
    "slept",
    "crossed",
    "on",
    "in",
    "under",
    "couch",
    "park",
    "street",
]
NASTY = (
    b"",
    b"   ",
    b"\xe3\x80\x80",
    b"caf\xc3",
    b"\xff\xfe the cat",
    "the\u2028cat\u0085sat\x0con the couch".encode(),
    b"the cat\rsat",
    "the 日本 zebra 🦓".encode(),
    b"\x00\x01 the cat",
    b"\xef\xbb\xbfthe cat",
)
"""Lines that are blank or not UTF-8, or that contain other line ends than a line feed, or unknown characters."""


def nasty_lines(count: int, seed: int = 1, words: "list[str]" = WORDS) -> Iterator[bytes]:
    """Yield sentences, nasty lines and over-long lines, each with its line end; the last line has no line end."""
    chance = random.Random(seed)
    for number in range(1, count + 1):
        kind = chance.random()
        if kind < 0.001:
            line = b"the cat " * chance.randint(600, 3000)  # exceeds the maximum number of source tokens
        elif kind < 0.05:
            line = chance.choice(NASTY)
        else:
            line = " ".join(chance.choices(words, k=chance.randint(1, 9))).encode()
        yield line + (b"" if number == count else b"\r\n" if chance.random() < 0.1 else b"\n")


def write_nasty(path: Path, count: int, seed: int = 1, words: "list[str]" = WORDS) -> None:
    """Write nasty lines into a file that does not end with a line end."""
    with path.open("wb") as file:
        file.writelines(nasty_lines(count, seed, words))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of the parts' files by name, without temporary files."""
    return {path.name: path.read_bytes() for path in (folder / "parts").iterdir() if not path.name.startswith(".")}


def outputs(folder: Path) -> bytes:
    """Return the outputs of all parts, one after the other."""
    return b"".join(path.read_bytes() for path in sorted((folder / "parts").glob("*.txt")))


class Bench:
    """The commands of the benchmark, on one file."""

    def __init__(self, run: str, file: Path, part_bytes: int) -> None:
        self.run, self.file, self.part_bytes = run, file, part_bytes

    def start(self, name: str, *options: object, out: int | IO[bytes] = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """Start a command of glassformer."""
        words = [sys.executable, "-m", "glassformer", name, self.run, self.file, "--beam-size", 1, *options]
        return subprocess.Popen(list(map(str, words)), env=ENVIRONMENT, stdout=out, stderr=subprocess.DEVNULL)

    def bulk(self, folder: Path, *options: object) -> subprocess.Popen[bytes]:
        """Start `bulk` with its output in a folder."""
        return self.start("bulk", "--output", folder, "--part-bytes", self.part_bytes, *options)

    def check(self, folder: Path, expected: Path) -> None:
        """Assert that the parts are complete, and that their outputs together equal the file `expected`."""
        assert self.bulk(folder, "--finish").wait() == 0, f"{folder}: --finish found a fault"
        assert outputs(folder) == expected.read_bytes(), f"{folder}: the bytes differ from translate's"


def timed(processes: Sequence[subprocess.Popen[bytes]]) -> float:
    """Return the seconds until all processes have ended; fail if a process ended with an error."""
    begun = time.perf_counter()
    assert [process.wait() for process in processes] == [0] * len(processes)
    return time.perf_counter() - begun


@contextmanager
def measured() -> Iterator[list[float]]:
    """Yield a list that holds, after the context, the context's seconds and the CPU seconds of its child processes."""
    found, begun, before = list[float](), time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    yield found
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found += [time.perf_counter() - begun, used]


def complete(folder: Path) -> dict[str, int]:
    """Return, for each complete part by name, the time at which its record was written."""
    return {path.stem: path.stat().st_mtime_ns for path in folder.glob("parts/*[0-9].json")}


def kill_and_restart(bench: Bench, folder: Path, processes: int, kills: int, seconds: float) -> int:
    """Translate the shares while processes are killed; return the number of complete parts that were written again.

    The kills are spread over about `seconds`.
    """
    chance, seen = random.Random(1), dict[str, int]()
    shares = [f"{number}/{processes}" for number in range(1, processes + 1)]
    running = {share: bench.bulk(folder, "--part", share) for share in shares}
    for _ in range(kills):
        time.sleep(chance.uniform(0, 2 * seconds / kills))
        share = chance.choice(shares)
        running[share].kill()
        running[share].wait()
        seen |= {name: when for name, when in complete(folder).items() if name not in seen}
        running[share] = bench.bulk(folder, "--part", share)
    timed(list(running.values()))
    after = complete(folder)
    return sum(after[name] != when for name, when in seen.items())


@contextmanager
def ray_nodes() -> Iterator[subprocess.Popen[str]]:
    """Start the program that runs two Ray nodes (`benchmarks.ray_nodes`); yield its process."""
    words = [sys.executable, "-m", "benchmarks.ray_nodes"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    nodes = subprocess.Popen(words, env=ENVIRONMENT, cwd=ROOT, text=True, **pipes)
    try:
        yield nodes
    finally:
        assert nodes.stdin
        assert nodes.stdout
        nodes.stdin.close()
        nodes.wait(timeout=60)
        nodes.stdout.close()


def kill_on_ray(bench: Bench, folder: Path, kills: int, seconds: float) -> tuple[int, dict[str, int]]:
    """Translate on Ray while actors, nodes and the command are killed.

    Returns the number of complete parts that were written again, and the kills by kind.
    """
    chance, seen, done = random.Random(2), dict[str, int](), dict.fromkeys(("actor", "node", "driver"), 0)
    with ray_nodes() as nodes:
        assert nodes.stdin
        assert nodes.stdout
        address = nodes.stdout.readline().strip()
        driver = bench.bulk(folder, "--ray", address)
        for number in range(kills):
            time.sleep(chance.uniform(0, 2 * seconds / kills))
            kind = ("actor", "actor", "driver", "actor", "node")[number % 5]
            if kind == "actor":
                for process in actors(nodes)[:1]:
                    process.kill()
            elif kind == "node":
                nodes.stdin.write("replace\n")
                nodes.stdin.flush()
                nodes.stdout.readline()
            else:
                driver.kill()
                driver.wait()
            done[kind] += 1
            seen |= {name: when for name, when in complete(folder).items() if name not in seen}
            if driver.poll() is not None:
                driver = bench.bulk(folder, "--ray", address)
        timed([driver])
    after = complete(folder)
    return sum(after[name] != when for name, when in seen.items()), done


def actors(nodes: subprocess.Popen[str], doing: str = "_Actor.ask") -> list[psutil.Process]:
    """Return the nodes' processes that are executing this method of an actor."""
    found = []
    for process in psutil.Process(nodes.pid).children(recursive=True):
        with suppress(psutil.Error):
            if doing in " ".join(process.cmdline()):
                found.append(process)
    return found


def overhead(bench: Bench, work: Path, rounds: int) -> dict[str, list[float]]:
    """Return the wall-clock seconds and the CPU seconds of both commands, by round."""
    found = {f"{name} {what}": list[float]() for name in ("translate", "bulk") for what in ("seconds", "work")}
    for number in range(rounds):
        folder, whole = work / f"round-{number}", work / "round.txt"
        for name in rotated(["translate", "bulk"], number):
            with whole.open("wb") as out, measured() as times:
                timed([bench.start("translate", out=out) if name == "translate" else bench.bulk(folder)])
            found[f"{name} seconds"].append(times[0])
            found[f"{name} work"].append(times[1])
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return found


def peak_bytes(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process to end without an error; return its peak resident memory."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * 1024


def compared(bench: Bench, work: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Translate the whole file with one process, with several processes and with Ray; return the figures."""
    expected = work / "whole.txt"
    with expected.open("wb") as out:
        timed([bench.start("translate", out=out)])
    folder = work / "one"
    begun = time.perf_counter()
    found: dict[str, Any] = {"peak_bytes": peak_bytes(bench.bulk(folder)), "seconds": time.perf_counter() - begun}
    bench.check(folder, expected)
    found["parts"] = len(complete(folder))
    print("one process: equal bytes", file=sys.stderr)
    shares = [f"{number}/{given.processes}" for number in range(1, given.processes + 1)]
    found["several_seconds"] = timed([bench.bulk(work / "several", "--part", share) for share in shares])
    bench.check(work / "several", expected)
    print("several processes: equal bytes", file=sys.stderr)
    again = kill_and_restart(bench, work / "killed", given.processes, given.kills, found["several_seconds"])
    bench.check(work / "killed", expected)
    found["killed"] = {"kills": given.kills, "written_again": again}
    print(f"kills: equal bytes, {again} complete parts written again", file=sys.stderr)
    if given.ray:
        again, done = kill_on_ray(bench, work / "ray", given.kills, found["several_seconds"])
        bench.check(work / "ray", expected)
        found["ray"] = {"kills": done, "written_again": again}
        print(f"Ray: equal bytes, {again} complete parts written again", file=sys.stderr)
    return found


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown tables."""
    times, rows = figures["overhead"], []
    for what in ("seconds", "work"):
        pairs = [one / other - 1 for one, other in zip(times[f"bulk {what}"], times[f"translate {what}"], strict=True)]
        shares = [spread([100 * value for value in pairs]).text(1)]
        rows.append([{"seconds": "time", "work": "processors' time"}[what], *shares])
    head = [f"{figures['first_lines']:,} lines, {len(pairs)} rounds", "overhead over `translate`, %"]
    text = table(head, rows)
    if whole := figures.get("whole"):
        size, parts = f"{figures['lines']:,}", whole["parts"]
        lines = [
            ["one process", f"{whole['seconds'] / 60:.1f}", ""],
            [f"{figures['processes']} processes", f"{whole['several_seconds'] / 60:.1f}", ""],
            [
                f"{figures['processes']} processes, {whole['killed']['kills']} kills",
                "",
                str(whole["killed"]["written_again"]),
            ],
        ]
        if "ray" in whole:
            kills = ", ".join(f"{kind}: {count}" for kind, count in whole["ray"]["kills"].items())
            lines.append([f"Ray on two nodes, kills ({kills})", "", str(whole["ray"]["written_again"])])
        text += (
            f"\n{size} lines in {parts} parts; each output equals the output of `translate`, byte for byte. One "
            f"process takes {whole['peak_bytes'] / 2**20:.0f} MiB at most.\n\n"
            + table(["", "minutes", "complete parts written again"], lines)
        )
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run")
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--first-lines", type=int, default=200_000, help="lines of the timed rounds")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds of translate and bulk")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--part-bytes", type=int, default=1_000_000)
    parser.add_argument("--ray", action="store_true")
    given = parser.parse_args()
    of, figures = machine(), vars(given)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        write_nasty(work / "first.txt", given.first_lines)
        figures["overhead"] = overhead(Bench(given.run, work / "first.txt", given.part_bytes), work, given.rounds)
        write("bulk", figures, of)
        print(markdown(figures))
        if given.lines:
            write_nasty(work / "nasty.txt", given.lines)
            figures["whole"] = compared(Bench(given.run, work / "nasty.txt", given.part_bytes), work, given)
            write("bulk", figures, of)
            print(markdown(figures))


if __name__ == "__main__":
    as_command(main)
