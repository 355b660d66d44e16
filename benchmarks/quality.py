"""Measure minutes of training until a BLEU is reached: `python -m benchmarks.quality --data DIR` (Multi30k's files).

English to German, beam 5, sacrebleu on test_2016. Each peer is trained once for each of several budgets of minutes,
because a long schedule makes slower progress at first than a short schedule; the earliest time over all budgets counts.
glassformer is trained by `glassformer train`. The other peers use their own model and optimiser on batches of the same
sentences and tokens. Their learning rate rises, stays constant, and falls linearly over the last 60 % of the budget.
One peer trains at a time, on all cores. Only training is timed, without decoding the test set.

The test set is used only to draw the curves, not to choose settings.

Writes results/quality.json and .png.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.command import as_command
from benchmarks.peers.task import EXAMPLES, TASK, Batch, Task, read_sentences, read_task, write_batches
from benchmarks.processes import Entry, PeerError, Process
from benchmarks.results import OURS, RESULTS, command, described, failures, figure, machine, read, save, table, write
from benchmarks.work import TEST, WORK, bleu, epoch, make_work
from glassformer.bundle import WEIGHTS
from glassformer.corpus.batching import Examples
from glassformer.jobs.log import METRICS_FILE, read_log
from glassformer.training.checkpoint import CHECKPOINTS, Checkpoints, step_of, use_weights
from glassformer.translator import Translator

NAME = "quality"
SOURCE, TARGET = "en", "de"
RECIPE = f"multi30k-{SOURCE}-{TARGET}"
TARGETS = (34.0, 37.5)
"""The BLEU scores to reach."""
PEAK_RATES = {"hugging_face": 1.5e-3, "joeynmt": 5e-4}
"""The peak learning rate of each peer."""
WARMUP, FALLING, LEAST = 300, 0.6, 0.02
"""Number of updates until the peak, share of the budget in which the rate falls, and final rate as a share of the peak.
"""
QUICK = ("training.batch_tokens=2048", "model.dropout=0.05", "training.warmup=100", "training.ema=0.99")
"""Settings for a training of minutes instead of the recipe's hour, chosen by BLEU on the validation set."""
BEAM, SIDE_BY_SIDE = 5, 64


def peers() -> list[Entry]:
    """Return the peers in their fastest form: with the allocator setting."""
    return [
        Entry(peer="hugging_face", keeping=True),
        Entry(peer="hugging_face", precision="bf16", keeping=True),
        Entry(peer="joeynmt", keeping=True),
    ]


def rate(peak: float, step: int, share: float) -> float:
    """Return a peer's learning rate at update `step` (from 1), after a share `share` of the budget."""
    return peak * min(1.0, step / WARMUP) * min(1.0, max(LEAST, (1 - share) / FALLING))


def train_peer(entry: Entry, work: Path, peak: float, minutes: float, points: int) -> Iterator[dict[str, float]]:
    """Train a peer for a number of minutes; yield its BLEU at `points` times with equal distances.

    Raises:
        PeerError: the peer failed.
    """
    test, spent, step, due = json.loads((work / TEST).read_text()), 0.0, 0, 1
    with Process(entry, work) as process:
        for number in endless_batches(process, work):
            step += 1
            asked = {"batch": number, "rate": rate(peak, step, spent / (60 * minutes))}
            answer = process.ask("update", **asked)
            spent += answer["seconds"]
            if spent >= due * 60 * minutes / points:
                due += 1
                found = process.ask("translate", texts=test["texts"], beam_size=BEAM, batch_size=SIDE_BY_SIDE)
                score = bleu(found["texts"], test["references"])
                yield {"minutes": spent / 60, "step": step, "loss": answer["loss"], "bleu": score}
            if spent >= 60 * minutes:
                return


def endless_batches(process: Process, work: Path) -> Iterator[int]:
    """Yield batch numbers without end; before each epoch, send the process this epoch's list of batches."""
    task, count = read_task(work), 0
    source, target = read_sentences(work / EXAMPLES)
    while True:
        made: list[Batch] = epoch(Examples(source=source, target=target), task.batch_tokens, task.seed, count)
        write_batches(made, work / "epoch.npz")
        process.ask("read", file=str(work / "epoch.npz"))
        yield from range(len(made))
        count += 1


def train_ours(
    config: str, work: Path, data: Path, minutes: float, every: int, settings: Sequence[str]
) -> Iterator[dict[str, float]]:
    """Train glassformer with its command; yield the BLEU of each checkpoint, with the time of its last update."""
    run = work / f"run-{minutes:g}"
    shutil.rmtree(run, ignore_errors=True)
    fixed = [f"run.directory={run}", f"training.minutes={minutes}", "training.validate_every=0"]
    fixed += [f"training.checkpoint_every={every}", "training.keep_checkpoints=1000", "training.log_every=1"]
    fixed += ["training.metric=none", "training.best_by=loss", "training.average=0", "training.patience=0"]
    options = [word for setting in [*settings, *fixed] for word in ("--set", setting)]
    arguments = [sys.executable, "-m", "glassformer", "train", config, "--data", str(data), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2")}
    subprocess.run(arguments, check=True, env=environment)
    test = json.loads((work / TEST).read_text())
    times = {line["step"]: line for line in read_log(run / METRICS_FILE) if line["type"] == "step"}
    for checkpoint in Checkpoints(run / CHECKPOINTS, 1).paths():
        use_weights(checkpoint, run / WEIGHTS)
        outputs = [one.text for one in Translator.load(run).translate(test["texts"], beam_size=BEAM)]
        line = times[step_of(checkpoint)]
        score = bleu(outputs, test["references"])
        yield {"minutes": line["seconds"] / 60, "step": line["step"], "loss": line["loss"], "bleu": score}


def time_to(target: float, curves: Sequence[Sequence[dict[str, float]]]) -> float | None:
    """Return the minutes of the earliest point in all curves that reaches this BLEU, or None without such a point."""
    return min((point["minutes"] for curve in curves for point in curve if point["bleu"] >= target), default=None)


def markdown(figures: dict[str, Any]) -> str:
    """Return Markdown: the minutes to each BLEU, the best BLEU, and glassformer's ratio to the fastest peer."""
    curves = {name: list(budgets.values()) for name, budgets in figures["curves"].items()}
    head = [
        "",
        *(f"minutes to {target:g} BLEU" for target in TARGETS),
        "best BLEU",
        "after minutes",
        "budgets in minutes",
    ]
    rows = []
    for name, several in curves.items():
        best = max((point for curve in several for point in curve), key=lambda point: point["bleu"], default=None)
        times = [time_to(target, several) for target in TARGETS]
        shown = ["not reached" if minutes is None else f"{minutes:.1f}" for minutes in times]
        tried = ", ".join(sorted(figures["curves"][name], key=float))
        rows.append([name, *shown, *((f"{best['bleu']:.1f}", f"{best['minutes']:.1f}") if best else ("", "")), tried])
    sooner = []
    for target in TARGETS:
        mine = time_to(target, curves.get("ours", []))
        theirs = [found for name in curves if name != "ours" if (found := time_to(target, curves[name])) is not None]
        if mine and theirs:
            sooner.append(f"{target:g} BLEU {min(theirs) / mine:.2f} times as fast as the fastest peer")
    verdict = "Glassformer and its peers reached none of the same BLEU scores, so no ratio is given."
    if sooner:
        verdict = f"Glassformer reaches {', and '.join(sooner)}."
    return (
        f"## Time to quality\n\nThis section measures the minutes of training until a model reaches a BLEU score: "
        f"English to German, test_2016 of Multi30k, beam {BEAM}, one seed. {verdict}\n\nEach budget of minutes is a "
        "separate training run; the earliest time over all budgets counts. Our model was trained by `glassformer train "
        f"{figures['ours']}`. "
        f"Commands, {figures['day']}:\n\n"
        f"{''.join(f'- `{command}`{chr(10)}' for command in figures['commands'])}\n"
        f"{table(head, rows)}"
        f"{failures(figures['failed'])}\n"
        f"{described(figures['machine'])}.\n"
    )


def plot(figures: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Draw BLEU over minutes with a line for each budget."""
    made, [axis] = figure()
    others = iter(("tab:orange", "tab:red", "tab:green", "tab:gray"))
    for name, budgets in figures["curves"].items():
        colour = OURS if name == "ours" else next(others, "black")
        for place, curve in enumerate(budgets.values()):
            minutes, scores = [point["minutes"] for point in curve], [point["bleu"] for point in curve]
            axis.plot(minutes, scores, marker=".", color=colour, label=None if place else name)
    for target in TARGETS:
        axis.axhline(target, color="lightgray", zorder=0)
    axis.set_xlabel("minutes of training")
    axis.set_ylabel("BLEU, test_2016, beam 5")
    axis.legend(frameon=False)
    return save(made, NAME, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of Multi30k's files")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for the shared work [default: %(default)s]")
    parser.add_argument(
        "--minutes", type=float, nargs="+", default=[6.0, 12.0, 20.0], help="budgets; each is a separate training"
    )
    parser.add_argument("--peak-rate", type=float, help="peak learning rate of all peers, instead of their own")
    parser.add_argument("--points", type=int, default=10, help="points of each peer's curve [default: %(default)s]")
    parser.add_argument("--every", type=int, default=100, help="updates between points of our curve")
    parser.add_argument(
        "--batch-tokens", type=int, default=1500, help="batch size of the peers, in tokens [default: %(default)s]"
    )
    parser.add_argument("--config", default=RECIPE, help="recipe or TOML file for ours [default: %(default)s]")
    parser.add_argument(
        "--set", action="append", default=[], help="setting of ours, in place of the settings for short training runs"
    )
    parser.add_argument("--only", nargs="+", help="train only these entries; keep the other curves")
    given = parser.parse_args()
    names = ["ours", *(entry.name for entry in peers())]
    if unknown := set(given.only or ()) - set(names):
        parser.error(f"--only {', '.join(map(repr, unknown))}: expected some of {', '.join(map(repr, names))}")
    of, work = machine(), given.work / NAME
    if not (work / TASK).exists():
        make_work(work, given.data, replace(Task(), batch_tokens=given.batch_tokens), SOURCE, TARGET)
    settings = given.set or list(QUICK)
    earlier = read(NAME) if given.only else {}
    figures: dict[str, Any] = {
        "commands": [*earlier.get("commands", []), command()],
        "ours": " ".join([given.config, *(f"--set {setting}" for setting in settings)]),
        "curves": earlier.get("curves", {}),
        "failed": {},
    }
    for minutes in given.minutes:
        curves: dict[str, Iterator[dict[str, float]]] = {
            "ours": train_ours(given.config, work, given.data, minutes, given.every, settings)
        }
        for entry in peers():
            peak = given.peak_rate or PEAK_RATES[entry.peer]
            curves[entry.name] = train_peer(entry, work, peak, minutes, given.points)
        for name, points in curves.items():
            if given.only and name not in given.only:
                continue
            curve = figures["curves"].setdefault(name, {})[f"{minutes:g}"] = []
            try:
                for point in points:
                    curve.append(point)
                    print(f"{name}, {minutes:g} minutes: {point}", flush=True)
            except (PeerError, subprocess.CalledProcessError) as error:
                figures["failed"][name] = str(error)
            write(NAME, figures, of)  # written now, so that a later failure does not lose these figures
    plot(read(NAME))
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
