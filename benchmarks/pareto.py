"""Compare models and searches by quality and speed, and find the Pareto front: entries that no other entry beats.

python -m benchmarks.pareto LIST --data DIR     LIST.json → results/pareto-LIST.json, pareto-LIST.png

LIST is a file, or the name of a file in `lists/`. It names the models and how to train them, the text to translate, the
runs to measure, and the results of peers:

    {"models": {"3+3": "train multi30k-en-de --data {data} --set run.directory={work}/3+3", …},
     "source": "{data}/test.en", "reference": "{data}/test.de", "metric": "bleu",
     "runs": [{"name": "3+3", "run": "{work}/3+3", "beam_size": 5, "options": {}, "one_by_one": false}, …],
     "peers": [{"name": "Hugging Face", "quality": 37.9, "sentences_per_second": 49, "from": "their source"}, …]}

A peer whose speed is unknown has no `sentences_per_second`, and is drawn as a line in the picture.

`glassformer` trains the models that do not exist yet, one after another; {data} stands for DIR, and {work} for the
folder of the models. Without a reference, the source file is a TSV file with both sides, and a word is right if it
equals one of its references. `ensemble` lists further runs of an ensemble. `options`, such as an engine, are passed to
`Translator.load`. The runs take turns, each time in a new process, and the median of all rounds counts. Loading is not
timed.
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
from benchmarks.results import OURS, RESULTS, THEIRS, described, figure, machine, number, read, save, write
from benchmarks.results import table as as_table
from benchmarks.work import WORK
from glassformer.evaluation.items import read_items
from glassformer.evaluation.metrics import metrics_named, score_texts
from glassformer.jobs.evaluation import corpus_of
from glassformer.translator import Translator

NAME = "pareto"
ROUNDS = 5
LISTS = Path(__file__).parent / "lists"
FIELDS = ("name", "run", "ensemble", "beam_size", "options", "one_by_one")
"""Fields of a run in a list."""
WARM_UP = 64
"""Number of lines that are translated before the clock starts."""
NEAR = 0.03
"""Two points of similar speed are near if their qualities differ by less than this share of the range of qualities;
their names would overlap in the picture."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """Quality and speed of a model with its search."""

    name: str
    quality: float
    sentences_per_second: float | None
    """Sentences per second; None = unknown."""
    ours: bool
    slowest: float | None = None
    """Sentences per second in the slowest round."""
    fastest: float | None = None
    source: str = ""
    """The source from which a peer's figures are taken."""


def read_list(path: Path, data: str = "", work: str = "") -> dict[str, Any]:
    """Read a list, check its fields, and replace {data} and {work} by the folders."""
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
        raise SystemExit(f"{path}: expected different names for runs and peers, got {sorted(names)}")
    return wanted


def _filled(value: Any, folders: Mapping[str, str]) -> Any:
    """Return a value of the list, with {data} and {work} replaced in all its texts."""
    if isinstance(value, dict):
        return {key: _filled(one, folders) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, folders) for one in value]
    if isinstance(value, str):
        for name, folder in folders.items():
            value = value.replace(name, folder)
    return value


def measure(wanted: dict[str, Any], run: dict[str, Any]) -> dict[str, float]:
    """Return the quality and the sentences per second of one run; call this in a process of its own."""
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
    [score] = score_texts([one.text for one in results], items.references, metrics=[wanted["metric"]])
    return {"quality": score.value, "sentences_per_second": len(sources) / seconds}


def measured(wanted: dict[str, Any], rounds: int) -> list[Point]:
    """Return the points of all runs, measured in turns."""
    found: dict[str, list[dict[str, float]]] = {run["name"]: [] for run in wanted["runs"]}
    for turn in range(rounds):
        for run in wanted["runs"]:
            print(f"round {turn + 1} of {rounds}: {run['name']}", file=sys.stderr)
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
    """Return the points of the list's peers."""
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
    """Return the Pareto front, fastest first: for these points, no other point is better in one respect and at least
    as good in the other.
    """
    best: list[Point] = []
    sign = 1 if higher_is_better else -1
    for point in sorted(_timed(points), key=lambda one: (-_speed(one), -sign * one.quality)):
        if not best or sign * point.quality > sign * best[-1].quality:
            best.append(point)
    return best


def _timed(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if point.sentences_per_second is not None]


def _speed(point: Point) -> float:
    """Return the speed of a point, or 0 if the speed is unknown."""
    return point.sentences_per_second or 0.0


def table(points: Sequence[Point], best: Sequence[Point], metric: str) -> str:
    """Return a Markdown table of the points, fastest first, with the front in bold."""
    rows = []
    for point in sorted(points, key=lambda one: -_speed(one)):
        name = f"**{point.name}**" if point in best else point.name
        spread = f"{number(point.slowest or 0)}–{number(point.fastest or 0)}" if point.ours else point.source
        speed = "" if point.sentences_per_second is None else number(point.sentences_per_second)
        rows.append((name, f"{point.quality:.2f}", speed, spread))
    return as_table(("", metric, "sentences/s", "slowest–fastest round, or source of a peer's figures"), rows)


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    points = [Point(**one) for one in figures["points"]]
    best = front(points, higher_is_better=figures["higher_is_better"])
    return (
        f"## Quality against speed: {figures['name']}\n\nThis section shows quality and speed of trained and "
        f"distilled models. Quality is measured by {figures['metric']}; "
        f"{'higher' if figures['higher_is_better'] else 'lower'} is better. "
        f"{_winners(points, best, higher_is_better=figures['higher_is_better'])}\n\nA name such as 4+1 gives the "
        "numbers of encoder and decoder layers. An entry in bold is on the Pareto front: no entry of known speed is "
        f"both faster and better.\n\n`{figures['command']}`, {figures['day']}: {number(figures['sentences'])} sources, "
        f"medians of {figures['rounds']} rounds, in which the entries take turns.\n\n"
        f"{table(points, best, figures['metric'])}\n{described(figures['machine'])}.\n"
    )


def _winners(points: Sequence[Point], best: Sequence[Point], *, higher_is_better: bool) -> str:
    """Return a sentence about the fastest entry and the best entry, which may be a peer of unknown speed."""
    sign = 1 if higher_is_better else -1
    finest = max(points, key=lambda one: sign * one.quality)
    fastest = f"The fastest entry is *{best[0].name}* ({number(_speed(best[0]))} sentences/s). " if best else ""
    origin = "" if finest.ours else f"; a peer's figure, source: {finest.source}"
    return f"{fastest}*{finest.name}* has the best quality ({finest.quality:.2f}{origin})."


def plot(figures: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Draw quality over speed, with a line along the Pareto front."""
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
    least = NEAR * (max(one.quality for one in points) - min(one.quality for one in points))
    named: list[Point] = []
    for point in (point for point in timed if point in best or not point.ours):  # the table names the others
        alike = (one for one in named if abs(point.quality - one.quality) < least)
        near = sum(0.5 < _speed(point) / _speed(one) < 2 for one in alike)
        named.append(point)
        where = (4, 4 - 12 * near)  # a name is moved down if other names are near
        axis.annotate(point.name, (_speed(point), point.quality), where, textcoords="offset points", fontsize=8)
    for point in (point for point in points if point not in timed):
        axis.axhline(point.quality, color=THEIRS, linewidth=1, linestyle=":")
        axis.text(0.01, point.quality, point.name, color=THEIRS, fontsize=8, transform=axis.get_yaxis_transform())
    axis.set_xscale("log")
    axis.set(xlabel="sentences per second", ylabel=figures["metric"])
    axis.margins(0.3, 0.15)
    if not figures["higher_is_better"]:
        axis.invert_yaxis()
    axis.legend(frameon=False)
    return save(made, f"{NAME}-{figures['name']}", folder)


def main(arguments: Sequence[str] | None = None, folder: Path = RESULTS) -> None:
    """Measure the runs of a list and write the results into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", nargs="?", help="JSON file of what to measure, or its name in lists/")
    parser.add_argument("--data", default="", help="folder that replaces {data} in the list")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for the models [default: %(default)s]")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="measurements of each run [default: %(default)s]")
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # only `_in_a_process` uses it
    given = parser.parse_args(arguments)
    if given.measure:
        print(json.dumps(measure(*json.loads(given.measure))))
        return
    if given.list is None or given.rounds < 1:
        parser.error("expected a list of what to measure, and at least one round")
    named = LISTS / f"{given.list}.json"
    path = named if named.exists() else Path(given.list)
    if not path.is_file():
        parser.error(f"{path} is neither a file nor one of {sorted(file.stem for file in LISTS.glob('*.json'))}")
    work = given.work / NAME / path.stem
    work.mkdir(parents=True, exist_ok=True)
    wanted, of = read_list(path, given.data, str(work)), machine()
    [metric] = metrics_named([wanted["metric"]])
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
    write(name, figures, of, folder)
    plot(read(name, folder), folder)
    print(markdown(read(name, folder)))


if __name__ == "__main__":
    as_command(main)
