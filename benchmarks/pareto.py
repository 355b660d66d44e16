"""Quality against speed: which of several models, and ways to decode them, nobody beats in both.

python -m benchmarks.pareto LIST --data DIR     LIST.json → results/pareto-LIST.json, pareto-LIST.png

A list is a file, or the name of one in `lists/`. It says how models are made, what is translated, by what, and what
others have reached:

    {"models": {"3+3": "train multi30k-en-de --data {data} --set run.directory={work}/3+3", …},
     "source": "{data}/test.en", "reference": "{data}/test.de", "metric": "bleu",
     "runs": [{"name": "3+3", "run": "{work}/3+3", "beam_size": 5, "options": {}, "one_by_one": false}, …],
     "peers": [{"name": "Hugging Face", "quality": 37.9, "sentences_per_second": 49, "from": "where it stands"}, …]}

A peer of which only the quality is known has no `sentences_per_second`, and is a line in the picture.

Models are made by `glassformer`, one after another, unless they are there; {data} is DIR, {work} the folder in which
they are kept. Without a reference the source holds both sides (TSV), and a word is right if it is any of its
references. A run may have an `ensemble`, further runs. `options` go to `Translator.load` (its engine, say). The runs
take turns, each time in a process of its own; the median of the rounds counts. Loading is not timed.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.command import as_command, make
from benchmarks.results import OURS, THEIRS, described, figure, machine, read, save, write
from benchmarks.results import table as as_table
from benchmarks.work import WORK
from glassformer.evaluation.items import read_items
from glassformer.evaluation.metrics import chosen, evaluate
from glassformer.run.evaluation import corpus_of
from glassformer.translator import Translator

NAME = "pareto"
ROUNDS = 5
LISTS = Path(__file__).parent / "lists"
FIELDS = ("name", "run", "ensemble", "beam_size", "options", "one_by_one")
"""What a list says of a run."""
WARM_UP = 64
"""Lines that are translated before the clock starts."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A way to translate, and what it reaches."""

    name: str
    quality: float
    sentences_per_second: float | None
    """None: nobody has measured it."""
    ours: bool
    slowest: float | None = None
    """Sentences a second in its slowest round."""
    fastest: float | None = None
    source: str = ""
    """Where a peer's figures are from."""


def read_list(path: Path, data: str = "", work: str = "") -> dict[str, Any]:
    """Return the list, its fields checked, its folders filled in."""
    wanted: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    wanted["models"] = {name: shlex.split(command) for name, command in wanted.get("models", {}).items()}
    wanted = _filled(wanted, {"{data}": data, "{work}": work})
    for name in ("source", "metric", "runs"):
        if name not in wanted:
            raise SystemExit(f"{path}: {name!r} is missing")
    for run in wanted["runs"]:
        if run.keys() - FIELDS or not {"name", "run"} <= run.keys():
            raise SystemExit(f"{path}: a run has {', '.join(FIELDS)}; got {sorted(run)}")
    names = [one["name"] for one in (*wanted["runs"], *wanted.get("peers", ()))]
    if len(set(names)) < len(names):
        raise SystemExit(f"{path}: two have the same name: {sorted(names)}")
    return wanted


def _filled(value: Any, folders: Mapping[str, str]) -> Any:
    """Return what was read, with folders in place of their names wherever there is text."""
    if isinstance(value, dict):
        return {key: _filled(one, folders) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, folders) for one in value]
    if isinstance(value, str):
        for name, folder in folders.items():
            value = value.replace(name, folder)
    return value


def measure(wanted: dict[str, Any], run: dict[str, Any]) -> dict[str, float]:
    """Return quality, and sentences a second, of one run: all that this process does."""
    items = read_items(corpus_of(wanted["source"], wanted.get("reference")))
    sources = items.sources
    translator = Translator.load(run["run"], *run.get("ensemble", ()), **run.get("options", {}))
    calls = [[line] for line in sources] if run.get("one_by_one") else [sources]
    translator.translate(sources[:WARM_UP], beam_size=run.get("beam_size"))
    begun = time.perf_counter()
    results = [
        one for texts in calls for one in translator.translate(texts, beam_size=run.get("beam_size"), log_probs=False)
    ]
    seconds = time.perf_counter() - begun
    [score] = evaluate([one.text for one in results], items.references, metrics=[wanted["metric"]])
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
            sentences_per_second=one.get("sentences_per_second"),
            ours=False,
            source=one.get("from", ""),
        )
        for one in wanted.get("peers", ())
    ]


def front(points: Sequence[Point], *, higher_is_better: bool) -> list[Point]:
    """Return the points that no other beats in one and equals in the other, the fastest first."""
    best: list[Point] = []
    sign = 1 if higher_is_better else -1
    for point in sorted(_timed(points), key=lambda one: (-_speed(one), -sign * one.quality)):
        if not best or sign * point.quality > sign * best[-1].quality:
            best.append(point)
    return best


def _timed(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if point.sentences_per_second is not None]


def _speed(point: Point) -> float:
    """Return the speed for what has to be in order; 0 where it is not known."""
    return point.sentences_per_second or 0.0


def table(points: Sequence[Point], best: Sequence[Point], metric: str) -> str:
    """Return the points as Markdown, the fastest first; those of the front are bold."""
    rows = []
    for point in sorted(points, key=lambda one: -_speed(one)):
        name = f"**{point.name}**" if point in best else point.name
        spread = f"{point.slowest:,.0f}–{point.fastest:,.0f}" if point.ours else point.source
        speed = "" if point.sentences_per_second is None else f"{point.sentences_per_second:,.0f}"
        rows.append((name, f"{point.quality:.2f}", speed, spread))
    return as_table(("", metric, "sentences/s", "slowest–fastest round"), rows)


def markdown(figures: dict[str, Any]) -> str:
    """Return the section of the page: the table and what it is of."""
    points = [Point(**one) for one in figures["points"]]
    best = front(points, higher_is_better=figures["higher_is_better"])
    return (
        f"## Quality against speed: {figures['name']}\n\n`{figures['command']}`, {figures['day']}: "
        f"{figures['sentences']:,} sources; medians of {figures['rounds']} rounds in turns. Bold: nobody is both "
        f"faster and better.\n\n{table(points, best, figures['metric'])}\n{described(figures['machine'])}.\n"
    )


def plot(figures: dict[str, Any]) -> Path:
    """Draw quality over speed, with a line along the front."""
    points = [Point(**one) for one in figures["points"]]
    timed, best = _timed(points), front(points, higher_is_better=figures["higher_is_better"])
    made, [axis] = figure()
    for ours, marker, colour, label in ((True, "o", OURS, "glassformer"), (False, "s", THEIRS, "peers")):
        some = [point for point in timed if point.ours == ours]
        if some:
            speeds, qualities = zip(*((_speed(one), one.quality) for one in some), strict=True)
            axis.plot(speeds, qualities, marker, color=colour, label=label)
    axis.step(
        [_speed(one) for one in best],
        [one.quality for one in best],
        "--",
        color="tab:orange",
        where="post",
    )
    for point in (point for point in timed if point in best or not point.ours):  # the table names the others
        axis.annotate(point.name, (_speed(point), point.quality), (4, 4), textcoords="offset points", fontsize=8)
    for point in (point for point in points if point not in timed):
        axis.axhline(point.quality, color=THEIRS, linewidth=1, linestyle=":")
        axis.text(0.01, point.quality, point.name, color=THEIRS, fontsize=8, transform=axis.get_yaxis_transform())
    axis.set_xscale("log")
    axis.set(xlabel="sentences per second", ylabel=figures["metric"])
    axis.margins(0.3, 0.15)
    if not figures["higher_is_better"]:
        axis.invert_yaxis()
    axis.legend(frameon=False)
    return save(made, f"{NAME}-{figures['name']}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what a list names, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", nargs="?", help="a JSON file with what to measure, or the name of one in lists/")
    parser.add_argument("--data", default="", help="what {data} stands for in it: a folder of files")
    parser.add_argument("--work", type=Path, default=WORK, help="where models are kept")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each run is measured")
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # what a process of its own is given
    given = parser.parse_args(arguments)
    if given.measure:
        print(json.dumps(measure(*json.loads(given.measure))))
        return
    if given.list is None or given.rounds < 1:
        parser.error("give a list of what to measure, and at least one round")
    named = LISTS / f"{given.list}.json"
    path = named if named.exists() else Path(given.list)
    if not path.is_file():
        parser.error(f"{path} is neither a file nor one of {sorted(file.stem for file in LISTS.glob('*.json'))}")
    work = given.work / NAME / path.stem
    work.mkdir(parents=True, exist_ok=True)
    wanted, of = read_list(path, given.data, str(work)), machine()
    [metric] = chosen([wanted["metric"]])
    make(wanted["models"], work)
    name = f"{NAME}-{path.stem}"
    figures: dict[str, Any] = {
        "name": path.stem,
        "metric": metric.name,
        "higher_is_better": metric.higher_is_better,
        "rounds": given.rounds,
        "sentences": len(read_items(corpus_of(wanted["source"], wanted.get("reference"))).sources),
        "points": [asdict(point) for point in (*measured(wanted, given.rounds), *peers(wanted))],
    }
    write(name, figures, of)
    plot(read(name))
    print(markdown(read(name)))


if __name__ == "__main__":
    as_command(main)
