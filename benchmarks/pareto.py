"""Quality against speed: which of several trained runs, and ways to decode them, nobody beats in both.

python -m benchmarks.pareto LIST.json --output FOLDER     LIST.json → FOLDER/pareto.json, pareto.md, pareto.svg

LIST.json says what is translated, by what, and what others have reached:

    {"source": "test.de", "reference": "test.en", "metric": "bleu",
     "runs": [{"name": "3+3", "run": "runs/multi30k", "beam_size": 5, "options": {}, "one_by_one": false}, …],
     "peers": [{"name": "Hugging Face", "quality": 37.9, "sentences_per_second": 49, "from": "where it stands"}, …]}

`options` go to `Translator.load` (its engine, say). The runs take turns, each time in a process of its own; the median
of the rounds counts. Loading is not timed.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import results

ROUNDS = 5
WARM_UP = 64
"""Lines that are translated before the clock starts."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A way to translate, and what it reaches."""

    name: str
    quality: float
    sentences_per_second: float
    slowest: float
    """Sentences a second in its slowest round."""
    fastest: float
    ours: bool
    source: str = ""
    """Where a peer's figures are from."""


def read_list(path: Path) -> dict[str, Any]:
    """Return the list, its fields checked; its files are relative to where the command is run."""
    wanted: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for name in ("source", "reference", "metric", "runs"):
        if name not in wanted:
            raise SystemExit(f"{path}: {name!r} is missing")
    for run in wanted["runs"]:
        unknown = run.keys() - {"name", "run", "beam_size", "options", "one_by_one"}
        if unknown or not {"name", "run"} <= run.keys():
            raise SystemExit(f"{path}: a run has name, run, beam_size, options, one_by_one; got {sorted(run)}")
    names = [one["name"] for one in (*wanted["runs"], *wanted.get("peers", ()))]
    if len(set(names)) < len(names):
        raise SystemExit(f"{path}: two have the same name: {sorted(names)}")
    return wanted


def measure(wanted: dict[str, Any], run: dict[str, Any]) -> dict[str, float]:
    """Return quality, and sentences a second, of one run: all that this process does."""
    from glassformer.evaluation.metrics import evaluate
    from glassformer.text.corpus import read_lines
    from glassformer.translator import Translator

    sources, references = read_lines(wanted["source"]), read_lines(wanted["reference"])
    translator = Translator.load(run["run"], **run.get("options", {}))
    calls = [[line] for line in sources] if run.get("one_by_one") else [sources]
    translator.translate(sources[:WARM_UP], beam_size=run.get("beam_size"))
    begun = time.perf_counter()
    results = [one for texts in calls for one in translator.translate(texts, beam_size=run.get("beam_size"))]
    seconds = time.perf_counter() - begun
    [score] = evaluate([one.text for one in results], references, metrics=[wanted["metric"]])
    return {"quality": score.value, "sentences_per_second": len(sources) / seconds}


def measured(wanted: dict[str, Any], rounds: int) -> list[Point]:
    """Return the points of all runs, measured in turns."""
    found: dict[str, list[dict[str, float]]] = {run["name"]: [] for run in wanted["runs"]}
    for number in range(rounds):
        for run in wanted["runs"]:
            print(f"round {number + 1} of {rounds}: {run['name']}", file=sys.stderr)
            found[run["name"]].append(_in_a_process(wanted, run))
    return [_point(name, results) for name, results in found.items()]


def _in_a_process(wanted: dict[str, Any], run: dict[str, Any]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.pareto", "--measure", json.dumps([wanted, run])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{run['name']}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    return dict(json.loads(done.stdout))


def _point(name: str, results: Sequence[dict[str, float]]) -> Point:
    speeds = [one["sentences_per_second"] for one in results]
    return Point(
        name=name,
        quality=median(one["quality"] for one in results),
        sentences_per_second=median(speeds),
        slowest=min(speeds),
        fastest=max(speeds),
        ours=True,
    )


def peers(wanted: dict[str, Any]) -> list[Point]:
    """Return the points that others have reached, as the list says."""
    return [
        Point(
            name=one["name"],
            quality=one["quality"],
            sentences_per_second=one["sentences_per_second"],
            slowest=one["sentences_per_second"],
            fastest=one["sentences_per_second"],
            ours=False,
            source=one.get("from", ""),
        )
        for one in wanted.get("peers", ())
    ]


def front(points: Sequence[Point], *, higher_is_better: bool) -> list[Point]:
    """Return the points that no other beats in one and equals in the other, the fastest first."""
    best: list[Point] = []
    sign = 1 if higher_is_better else -1
    for point in sorted(points, key=lambda one: (-one.sentences_per_second, -sign * one.quality)):
        if not best or sign * point.quality > sign * best[-1].quality:
            best.append(point)
    return best


def table(points: Sequence[Point], best: Sequence[Point], metric: str) -> str:
    """Return the points as Markdown, the fastest first; those of the front are bold."""
    rows = []
    for point in sorted(points, key=lambda one: -one.sentences_per_second):
        name = f"**{point.name}**" if point in best else point.name
        spread = f"{point.slowest:,.0f}–{point.fastest:,.0f}" if point.ours else point.source
        rows.append((name, f"{point.quality:.2f}", f"{point.sentences_per_second:,.0f}", spread))
    return results.table(("", metric, "sentences/s", "slowest–fastest round"), rows)


def plot(points: Sequence[Point], best: Sequence[Point], metric: str, path: Path) -> None:
    """Draw quality over speed, with a line along the front."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    for ours, marker, colour, label in ((True, "o", "#2f81c7", "glassformer"), (False, "s", "#808080", "peers")):
        some = [point for point in points if point.ours == ours]
        if some:
            speeds, qualities = zip(*((one.sentences_per_second, one.quality) for one in some), strict=True)
            axes.plot(speeds, qualities, marker, color=colour, label=label)
    axes.step(
        [one.sentences_per_second for one in best], [one.quality for one in best], "--", color="#cf6a1b", where="post"
    )
    for point in points:
        axes.annotate(
            point.name,
            (point.sentences_per_second, point.quality),
            (4, 4),
            textcoords="offset points",
            fontsize=8,
        )
    axes.set_xscale("log")
    axes.set(xlabel="sentences per second", ylabel=metric)
    axes.margins(0.15)
    axes.legend(loc="lower left")
    figure.savefig(path, metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what a list names, and write it down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("list", type=Path, nargs="?", help="a JSON file with what to measure")
    parser.add_argument("--output", type=Path, default=Path(), help="folder for pareto.json, pareto.md and pareto.svg")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each run is measured")
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # what a process of its own is given
    given = parser.parse_args(arguments)
    if given.measure:
        print(json.dumps(measure(*json.loads(given.measure))))
        return
    if given.list is None or given.rounds < 1:
        parser.error("give a list of what to measure, and at least one round")
    from glassformer.evaluation.metrics import chosen

    wanted = read_list(given.list)
    [metric] = chosen([wanted["metric"]])
    before = results.machine()
    points = [*measured(wanted, given.rounds), *peers(wanted)]
    best = front(points, higher_is_better=metric.higher_is_better)
    given.output.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(point), "front": point in best} for point in points]
    everything = {"metric": metric.name, "rounds": given.rounds, "machine": before, "points": rows}
    (given.output / "pareto.json").write_text(json.dumps(everything, indent=1, ensure_ascii=False), encoding="utf-8")
    text = table(points, best, metric.name)
    (given.output / "pareto.md").write_text(text, encoding="utf-8")
    plot(points, best, metric.name, given.output / "pareto.svg")
    print(text, end="")


if __name__ == "__main__":
    main()
