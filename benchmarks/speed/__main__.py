"""Measure the speed of training or of translation, and where the time goes.

    python -m benchmarks.speed train CONFIG|RUN [--data DIR]    # target tokens per second, share of the peak speed
    python -m benchmarks.speed translate RUN [FILE]             # sentences per second: beam and greedy, lines alone

Both commands then try other settings, such as another precision or engine, and recommend the settings that were faster
by more than chance. Nothing is written into the run's folder, except the conversions that `translate` keeps anyway.
`benchmarks.training` and `benchmarks.decoding` compare the reference model with other toolkits; these commands measure
any configuration or run by itself. `glassformer estimate` plans a training run: its duration, memory and batch size.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.command import as_command
from glassformer.bundle import CONFIG
from glassformer.cli import share_cores
from glassformer.cli.bar import bar
from glassformer.cli.measure.estimate import clock, stage_on_stderr

if TYPE_CHECKING:
    from benchmarks.speed.of_training import TrainingSpeed
    from benchmarks.speed.of_translation import TranslationSpeed
    from benchmarks.speed.profiling import Work
    from benchmarks.speed.rates import Speed


def of_training(given: argparse.Namespace) -> None:
    """Measure and print the speed of training."""
    from benchmarks.speed.of_training import training_speed
    from glassformer.recipes.toml import load

    of_run = Path(given.configuration) / CONFIG
    device = [] if given.device is None else [f"training.device={given.device}"]
    configuration = load(of_run if of_run.is_file() else given.configuration, [*given.settings, *device], given.data)
    with stage_on_stderr() as on_progress:
        speed = training_speed(configuration, seconds=given.seconds, on_progress=on_progress)
    _draw(given.svg, speed.work, "an update")
    if given.json:
        print(json.dumps(asdict(speed), ensure_ascii=False))
    else:
        _print(list(_training_rows(speed)), speed, "an update", "tokens/s")


def of_translation(given: argparse.Namespace) -> None:
    """Measure and print the speed of translation."""
    from benchmarks.speed.of_translation import translation_speed

    with stage_on_stderr() as on_progress:
        speed = translation_speed(
            given.run,
            given.file,
            beam_size=given.beam_size,
            device=given.device or "auto",
            seconds=given.seconds,
            on_progress=on_progress,
        )
    _draw(given.svg, speed.work, "a sentence")
    if given.json:
        print(json.dumps(_with_rates(speed), ensure_ascii=False))
    else:
        _print(list(_translation_rows(speed)), speed, "a sentence", "sentences/s")


def _with_rates(speed: "TranslationSpeed") -> dict[str, Any]:
    rates = [
        {"lines_per_second": pace.lines_per_second, "tokens_per_second": pace.tokens_per_second} for pace in speed.paces
    ]
    values = asdict(speed)
    return {**values, "paces": [pace | rate for pace, rate in zip(values["paces"], rates, strict=True)]}


def _training_rows(speed: "TrainingSpeed") -> Iterator[tuple[str, str]]:
    yield "corpus", speed.origin
    several = f"{speed.processes} processes of one thread" if speed.processes > 1 else f"{speed.threads} threads"
    yield "settings", f"{speed.precision}, {several if speed.processes > 1 or speed.threads > 1 else 'one thread'}"
    yield "speed", f"{speed.tokens_per_second:,.0f} target tokens/s; an update takes {clock(speed.seconds_per_update)}"
    yield "share of peak", _share_of_peak(speed)
    yield "padding", f"{speed.padding:.0%} of the positions in batches"


def _translation_rows(speed: "TranslationSpeed") -> Iterator[tuple[str, str]]:
    yield "text", speed.origin
    for pace in speed.paces:
        how = "greedy" if pace.beam_size == 1 else f"beam {pace.beam_size}"
        rates = f"{pace.lines_per_second:,.1f} sentences/s, {pace.tokens_per_second:,.0f} tokens/s"
        yield f"{how}, {'together' if pace.together else 'line by line'}", f"{rates} ({pace.lines:,} lines)"
    yield "share of peak", _share_of_peak(speed)


def _share_of_peak(speed: "Speed") -> str:
    reached, peak = speed.flops_per_second / 1e9, speed.matrix_flops_per_second / 1e9
    return f"{speed.matrix_share:.0%}: {reached:,.1f} of {peak:,.0f} GFLOP/s, measured in a large matrix product"


def _print(rows: Sequence[tuple[str, str]], speed: "Speed", of: str, unit: str) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.print(_grid(rows))
    console.print(f"\nwhere the time of {of} goes")
    console.print(_grid([_work_row(one) for one in speed.work]))
    console.print("\ntried")
    for one in speed.trials:  # remarks are printed below the table, where they have more room
        console.print(f"× {one.gain:<5.2f} {one.change}: {one.per_second:,.1f} {unit}", soft_wrap=True)
        console.print(f"        {one.remark}", soft_wrap=True, style="dim")
    console.print("\nwhat to change" if speed.advice else "\nno setting tried is faster by more than chance")
    for sentence in speed.advice:
        console.print(f"- {sentence}", soft_wrap=True)


def _work_row(work: "Work") -> tuple[str, ...]:
    return work.kind, f"{work.share:.1%}", f"{1e3 * work.seconds:,.1f} ms", bar(work.share, width=30)


def _grid(rows: Sequence[Sequence[str]]) -> Any:
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    for column in table.columns[:-1]:
        column.no_wrap = True
    for column in table.columns[1:-1]:
        column.justify = "right"
    return table


def _draw(path: Path | None, work: "Sequence[Work]", of: str) -> None:
    if path is None:
        return
    from glassformer.watch.pictures import bars

    said = ", ".join(f"{one.kind} {one.share:.0%}" for one in work)
    values = {one.kind: 100 * one.share for one in work}
    drawn = bars(values, alt=f"Where the time of {of} goes: {said}", x_label=f"% of the time of {of}")
    drawn.save(path)
    print(f"drawn: {path}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    both = argparse.ArgumentParser(add_help=False)
    both.add_argument("--seconds", type=float, default=30.0, metavar="S", help="measure for about S seconds")
    both.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:N or mps; auto = a GPU if there is one")
    both.add_argument("--svg", type=Path, metavar="FILE", help="draw the time by kind of work, as an SVG picture")
    both.add_argument("--json", action="store_true", help="print JSON instead of text")
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", parents=[both])
    train.add_argument("configuration", metavar="CONFIG|RUN", help="TOML file, name of a recipe, or run directory")
    train.add_argument("--data", type=Path, metavar="DIR", help="read the corpus from this folder")
    train.add_argument("--set", dest="settings", action="append", default=[], help="change a setting; repeatable")
    train.set_defaults(measure=of_training)
    translate = commands.add_parser("translate", parents=[both])
    translate.add_argument("run", type=Path, metavar="RUN", help="run directory, or demo, the model in the package")
    translate.add_argument("file", type=Path, nargs="?", metavar="FILE", help="[default: the run's test data]")
    translate.add_argument("--beam-size", type=int, metavar="N", help="[default: the run's]")
    translate.set_defaults(measure=of_translation)
    given = parser.parse_args(arguments)
    share_cores()  # as glassformer's commands do
    given.measure(given)


if __name__ == "__main__":
    as_command(main)
