"""`glassformer bench train` and `glassformer bench translate`."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.arguments import BeamSize, Data, Json, Overrides, RunFolder
from glassformer.cli.estimate import clock, stage_on_stderr

if TYPE_CHECKING:
    from glassformer.run.speed import TranslationSpeed
    from glassformer.training.speed import TrainingSpeed, Trial
    from glassformer.training.work import Work

__all__ = ["bench", "train", "translate"]

_BAR = 30
_BLOCKS = " ▏▎▍▌▋▊▉█"

Seconds = Annotated[float, typer.Option("--seconds", min=0.1, help="How long to measure, about.")]
Svg = Annotated[
    Path | None, typer.Option("--svg", metavar="FILE", help="Draw where the time goes, as a picture in this file.")
]

bench = typer.Typer(
    name="bench",
    help="Measure how fast a training or a translation is on this machine, where the time goes, and what to change.",
    no_args_is_help=True,
)


@bench.command()
def train(
    config: Annotated[
        str, typer.Argument(metavar="CONFIG|RUN", help="A TOML file, the name of a recipe, or a run directory.")
    ],
    overrides: Overrides = None,
    data: Data = None,
    seconds: Seconds = 30.0,
    svg: Svg = None,
    as_json: Json = False,
) -> None:
    """Measure a training: tokens per second, its share of what the machine can do, where the time goes.

    Other settings are tried as well, and those that are faster are recommended. Real updates are made in processes of
    their own; nothing is written into the run's folder.
    """
    from glassformer.bundle import CONFIG
    from glassformer.recipes.toml import load
    from glassformer.training.speed import training_speed

    _silence_the_profiler()
    of_run = Path(config) / CONFIG
    configuration = load(of_run if of_run.is_file() else config, overrides or (), data)
    with stage_on_stderr() as on_progress:
        speed = training_speed(configuration, seconds=seconds, on_progress=on_progress)
    _draw(svg, speed.work, "an update")
    if as_json:
        typer.echo(json.dumps(asdict(speed), ensure_ascii=False))
    else:
        _print(list(_training_rows(speed)), speed.work, "an update", speed.trials, "tokens/s", speed.advice)


@bench.command()
def translate(
    run: RunFolder,
    file: Annotated[
        Path | None, typer.Argument(help="Text, one sentence a line.  [default: what the run can be tested on]")
    ] = None,
    beam_size: BeamSize = None,
    seconds: Seconds = 30.0,
    svg: Svg = None,
    as_json: Json = False,
) -> None:
    """Measure translating: sentences and tokens per second, with the run's beam and greedily, together and one by one.

    Other ways are tried as well, and those that are faster are recommended.
    """
    _silence_the_profiler()
    from glassformer.run.speed import translation_speed

    with stage_on_stderr() as on_progress:
        speed = translation_speed(run, file, beam_size=beam_size, seconds=seconds, on_progress=on_progress)
    _draw(svg, speed.work, "a sentence")
    if as_json:
        typer.echo(json.dumps(_with_rates(speed), ensure_ascii=False))
    else:
        _print(list(_translation_rows(speed)), speed.work, "a sentence", speed.trials, "sentences/s", speed.advice)


def _silence_the_profiler() -> None:
    """Keep what torch's profiler says on stderr about itself from the user; it reads this when torch is imported."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")


def _with_rates(speed: "TranslationSpeed") -> dict[str, Any]:
    rates = [
        {"lines_per_second": pace.lines_per_second, "tokens_per_second": pace.tokens_per_second} for pace in speed.paces
    ]
    values = asdict(speed)
    return {**values, "paces": [pace | rate for pace, rate in zip(values["paces"], rates, strict=True)]}


def _training_rows(speed: "TrainingSpeed") -> Iterator[tuple[str, str]]:
    yield "corpus", speed.origin
    several = f"{speed.processes} processes of one thread" if speed.processes > 1 else f"{speed.threads} threads"
    yield "set", f"{speed.precision}, {several if speed.processes > 1 or speed.threads > 1 else 'one thread'}"
    yield "speed", f"{speed.tokens_per_second:,.0f} target tokens/s; an update takes {clock(speed.seconds_per_update)}"
    yield "of the most", _share(speed.matrix_share, speed.flops_per_second, speed.matrix_flops_per_second)
    yield "padding", f"{speed.padding:.0%} of the batches' places"


def _translation_rows(speed: "TranslationSpeed") -> Iterator[tuple[str, str]]:
    yield "text", speed.origin
    for pace in speed.paces:
        how = "greedy" if pace.beam_size == 1 else f"beam {pace.beam_size}"
        rates = f"{pace.lines_per_second:,.1f} sentences/s, {pace.tokens_per_second:,.0f} tokens/s"
        yield f"{how}, {'together' if pace.together else 'line by line'}", f"{rates} ({pace.lines:,} lines)"
    yield "of the most", _share(speed.matrix_share, speed.flops_per_second, speed.matrix_flops_per_second)


def _share(share: float, flops: float, ceiling: float) -> str:
    return f"{share:.0%}: {flops / 1e9:,.1f} of {ceiling / 1e9:,.0f} GFLOP/s that a large matrix product reaches here"


def _print(
    rows: Sequence[tuple[str, str]],
    work: "Sequence[Work]",
    of: str,
    trials: "Sequence[Trial]",
    unit: str,
    advice: Sequence[str],
) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.print(_grid(rows))
    console.print(f"\nwhere the time of {of} goes")
    console.print(
        _grid([(one.kind, f"{one.share:.1%}", f"{1e3 * one.seconds:,.1f} ms", _bar(one.share)) for one in work])
    )
    console.print("\ntried")
    for one in trials:  # the remark below: beside the others it would have a few letters a line
        console.print(f"× {one.gain:<5.2f} {one.change}: {one.per_second:,.1f} {unit}", soft_wrap=True)
        console.print(f"        {one.remark}", soft_wrap=True, style="dim")
    console.print("\nwhat to change" if advice else "\nnothing that was tried is faster by more than chance")
    for sentence in advice:
        console.print(f"- {sentence}", soft_wrap=True)


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


def _bar(share: float) -> str:
    """Return a bar of eighths of a letter."""
    eighths = round(8 * _BAR * share)
    return "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()


def _draw(path: Path | None, work: "Sequence[Work]", of: str) -> None:
    if path is None:
        return
    from glassformer.pictures import bars

    said = ", ".join(f"{one.kind} {one.share:.0%}" for one in work)
    values = {one.kind: 100 * one.share for one in work}
    drawn = bars(values, alt=f"Where the time of {of} goes: {said}", x_label=f"% of the time of {of}")
    drawn.save(path)
    typer.echo(f"drawn: {path}", err=True)
