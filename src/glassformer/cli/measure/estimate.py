"""`glassformer estimate`."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.arguments import Json, OptionalConfigName
from glassformer.cli.option_groups import ChangedSettings
from glassformer.errors import ConfigError, counted

if TYPE_CHECKING:
    from glassformer.jobs.speed.estimate import Estimate

__all__ = ["clock", "estimate_command", "stage_on_stderr"]


def estimate_command(
    config: OptionalConfigName = None,
    *,
    changes: ChangedSettings,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, metavar="S", help="Measure for about S seconds.")
    ] = 15.0,
    presets: Annotated[
        bool, typer.Option("--presets", help="List the model presets with their numbers of parameters.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Estimate time and memory of a training run on this machine.

    Run real training steps for some seconds, then print the time of an update, an epoch and the whole training, the
    memory needed, and the largest batch that fits. Nothing is written to the run directory.
    """
    if presets:
        _print_presets()
        return
    if config is None:
        raise ConfigError("CONFIG: expected a TOML file or the name of a recipe, got nothing; give one, or --presets")
    from glassformer.jobs.speed.estimate import estimate
    from glassformer.jobs.speed.sample import read_sample

    configuration = changes.load(config)
    with stage_on_stderr() as on_progress:
        configuration.training.check_limit()
        on_progress("reading the corpus")
        sample = read_sample(configuration)
        result = estimate(sample, seconds=seconds, on_progress=on_progress)
    if as_json:
        typer.echo(json.dumps(asdict(result), ensure_ascii=False))
        return
    _print(_rows(result), result.warnings)


@contextmanager
def stage_on_stderr() -> Iterator[Callable[[str], object]]:
    """Show the current stage on stderr: as a live status in a terminal, and as a line elsewhere."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    with console.status("") as status:
        yield (lambda stage: status.update(f"{stage} …")) if console.is_terminal else console.print


def _print(rows: Iterable[tuple[str, str]], warnings: Iterable[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, text in rows:
        table.add_row(name, text)
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(table)
    for warning in warnings:
        console.print(f"warning: {warning}", soft_wrap=True)


def _rows(result: "Estimate") -> Iterator[tuple[str, str]]:
    training = result.configuration.training
    yield "corpus", result.origin
    words = " and ".join(f"{size:,}" for size in dict.fromkeys((result.source_vocabulary, result.target_vocabulary)))
    yield "model", f"{result.parameters:,} parameters, {result.weights_bytes / 1e6:,.1f} MB; vocabulary of {words}"
    step = f"{result.tokens_per_step:,.0f} target tokens, {result.flops_per_step:.2g} FLOP"
    yield "a step", f"{step}, {clock(result.seconds_per_step)}"
    matrix = f"{result.matrix_flops_per_second / 1e9:,.0f} GFLOP/s in matrix products"
    yield "speed", f"{result.tokens_per_second:,.0f} tokens/s, {result.matrix_share:.0%} of this machine's {matrix}"
    if result.pairs:
        yield "an epoch", f"{result.steps_per_epoch:,.0f} steps, {clock(result.seconds_per_epoch)}"
    if result.validation_seconds:
        every = f"every {training.validate_every:,} steps" if training.validate_every else "at the end"
        yield "validation", f"{clock(result.validation_seconds)}, {every}"
    epochs = f" = {result.epochs:,.1f} epochs" if result.epochs else ""
    yield "in all", f"{counted(result.steps, 'step')}{epochs}, {clock(result.seconds)}"
    base, copy = (f"{size / 1e9:.2f}" for size in (result.base_bytes, result.checkpoint_bytes))
    of_it = f"Python and PyTorch {base}, a checkpoint's copy {copy}"
    yield "memory", f"{result.training_bytes / 1e9:.2f} GB of {result.available_bytes / 1e9:.1f} GB available ({of_it})"
    fits = f"up to about {result.largest_batch_tokens:,} fit, {result.bytes_per_token / 1e3:,.0f} kB each"
    yield "batch", f"{training.batch_tokens:,} tokens; {fits}"


def clock(seconds: float) -> str:
    """Return a time in a readable unit: ms, s, minutes, hours or days."""
    for limit, size, unit in ((1, 1e-3, "ms"), (120, 1, "s"), (7200, 60, "minutes"), (172_800, 3600, "hours")):
        if seconds < limit:
            number = seconds / size
            return f"{number:.{0 if number >= 20 or unit == 'ms' else 1}f} {unit}"
    return f"{seconds / 86_400:.1f} days"


def _print_presets() -> None:
    from glassformer.jobs.speed.estimate import count_parameters
    from glassformer.model.config import PRESETS, ModelConfig

    typer.echo("millions of parameters with a joint vocabulary of 37 000")
    for name in PRESETS:
        parameters = count_parameters(ModelConfig.preset(name, vocab_size=37_000))
        typer.echo(f"{name:<22} {parameters / 1e6:6.1f}")
