"""`glassformer bench train` and `glassformer bench translate`."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from glassformer.cli.arguments import BeamSize, Device, Json, RunFolder, TrainingDevice
from glassformer.cli.bar import bar
from glassformer.cli.measure.estimate import clock, stage_on_stderr
from glassformer.cli.option_groups import ChangedSettings, as_command

if TYPE_CHECKING:
    from glassformer.jobs.speed.of_training import TrainingSpeed
    from glassformer.jobs.speed.of_translation import TranslationSpeed
    from glassformer.jobs.speed.rates import Speed
    from glassformer.jobs.speed.work import Work

__all__ = ["Measuring", "bench_command", "bench_train_command", "bench_translate_command"]


class Measuring(NamedTuple):
    """The options of both benchmarks: the measuring time, and the form of the result."""

    seconds: Annotated[float, typer.Option("--seconds", min=0.1, metavar="S", help="Measure for about S seconds.")] = (
        30.0
    )
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", help="Draw the time by kind of work, as an SVG picture in FILE."),
    ] = None
    as_json: Json = False


bench_command = typer.Typer(
    name="bench",
    help="Measure the speed of training or of translation.",
    no_args_is_help=True,
)
bench_command.callback()(as_command(lambda: None))


@bench_command.command("train")
@as_command
def bench_train_command(
    config: Annotated[str, typer.Argument(metavar="CONFIG|RUN", help="TOML file, name of a recipe, or run directory.")],
    *,
    changes: ChangedSettings,
    device: TrainingDevice = None,
    measuring: Measuring,
) -> None:
    """Measure the speed of training, and where its time goes.

    Print target tokens per second, the share of the machine's peak speed that training reaches, and the time by kind of
    work. Then try other settings, and recommend the faster settings. To plan a training run (time, memory, batch size),
    use `glassformer estimate`, which takes half the time. Nothing is written to the run directory.
    """
    from glassformer.bundle import CONFIG
    from glassformer.jobs.speed.of_training import training_speed

    _silence_the_profiler()
    of_run = Path(config) / CONFIG
    configuration = changes.load(of_run if of_run.is_file() else config, device)
    with stage_on_stderr() as on_progress:
        speed = training_speed(configuration, seconds=measuring.seconds, on_progress=on_progress)
    _draw(measuring.svg, speed.work, "an update")
    if measuring.as_json:
        typer.echo(json.dumps(asdict(speed), ensure_ascii=False))
    else:
        _print(list(_training_rows(speed)), speed, "an update", "tokens/s")


@bench_command.command("translate")
@as_command
def bench_translate_command(
    run: RunFolder,
    *,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Text, one sentence per line.  [default: the run's test data]")
    ] = None,
    beam_size: BeamSize = None,
    device: Device = "auto",
    measuring: Measuring,
) -> None:
    """Measure the speed of translation, and where its time goes.

    Print sentences and tokens per second, with beam and greedy search, with all lines together and line by line. Then
    try other settings, and recommend the faster settings.
    """
    _silence_the_profiler()
    from glassformer.jobs.speed.of_translation import translation_speed

    with stage_on_stderr() as on_progress:
        speed = translation_speed(
            run, file, beam_size=beam_size, device=device, seconds=measuring.seconds, on_progress=on_progress
        )
    _draw(measuring.svg, speed.work, "a sentence")
    if measuring.as_json:
        typer.echo(json.dumps(_with_rates(speed), ensure_ascii=False))
    else:
        _print(list(_translation_rows(speed)), speed, "a sentence", "sentences/s")


def _silence_the_profiler() -> None:
    """Keep the messages of torch's profiler off stderr, by an environment variable that torch reads on import."""
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
    typer.echo(f"drawn: {path}", err=True)
