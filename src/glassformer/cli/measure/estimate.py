"""`glassformer estimate`."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.arguments import Data, Json, OptionalConfigName, Overrides
from glassformer.errors import ConfigError, quoted

if TYPE_CHECKING:
    from glassformer.bench.estimate import Estimate
    from glassformer.bench.loss import LossEstimate
    from glassformer.bench.ranks import RanksEstimate

__all__ = ["clock", "estimate_command", "stage_on_stderr"]


def estimate_command(
    config: OptionalConfigName = None,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="With --fit: smaller finished runs, five or more.", show_default=False),
    ] = None,
    overrides: Overrides = None,
    data: Data = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, metavar="S", help="Measure for about S seconds.")
    ] = 15.0,
    presets: Annotated[bool, typer.Option("--presets", help="List the model presets with their parameters.")] = False,
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", metavar="N", min=1, help="Estimate the training on N machines like this one."),
    ] = None,
    per_node: Annotated[
        int | None,
        typer.Option("--processes", metavar="P", min=1, help="Estimate the training by P processes on each machine."),
    ] = None,
    bandwidth: Annotated[
        str, typer.Option("--bandwidth", metavar="B", help="Assume this bandwidth between machines.")
    ] = "10Gbit",
    latency: Annotated[
        str, typer.Option("--latency", metavar="T", help="Assume this latency between machines.")
    ] = "50us",
    fit: Annotated[
        bool, typer.Option("--fit", help="Predict the validation loss from the smaller runs RUN RUN ….")
    ] = False,
    as_json: Json = False,
) -> None:
    """Estimate time and memory of a training run on this machine.

    Run real training steps for some seconds, then print the time of an update, an epoch and the whole training, the
    memory needed, and the largest batch that fits. --nodes and --processes add an estimate for training by several
    processes, which torchrun starts. --fit adds the validation loss, predicted from smaller runs on the same corpus. To
    see where the time goes and which settings are faster, use `glassformer bench train`. Nothing is written to the run
    directory.
    """
    if presets:
        _print_presets()
        return
    if config is None:
        raise ConfigError("CONFIG: expected a TOML file or the name of a recipe, got nothing; give one, or --presets")
    if runs and not fit:
        raise ConfigError(f"{runs[0]}: expected one CONFIG, got a second argument; add --fit to predict from runs")
    from glassformer.bench.estimate import estimate
    from glassformer.bench.loss import estimate_loss
    from glassformer.bench.ranks import Network, estimate_ranks
    from glassformer.bench.sample import read_sample
    from glassformer.recipes.toml import load

    network = Network(bandwidth=_bytes_per_second(bandwidth), latency=_seconds(latency))
    configuration = load(config, overrides or (), data)
    with stage_on_stderr() as on_progress:
        configuration.training.check_limit()
        on_progress("reading the corpus")
        sample = read_sample(configuration)
        result, many = estimate(sample, seconds=seconds, on_progress=on_progress), None
        if nodes is not None or per_node is not None:
            how: dict[str, Any] = {"seconds": seconds, "on_progress": on_progress}
            many = estimate_ranks(result, sample, nodes or 1, per_node or 1, network, **how)
    loss = estimate_loss(result, runs or ()) if fit else None
    if as_json:
        more = {name: asdict(made) for name, made in (("ranks", many), ("loss", loss)) if made}
        typer.echo(json.dumps({**asdict(result), **more}, ensure_ascii=False))
        return
    _print(_rows(result), result.warnings)
    if many:
        typer.echo()
        _print(_rows_of_ranks(many))
    if loss:
        typer.echo()
        _print(_rows_of_loss(loss), loss.warnings)


@contextmanager
def stage_on_stderr() -> Iterator[Callable[[str], object]]:
    """Show the current stage on stderr, if stderr is a terminal."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    with console.status("") as status:
        yield (lambda stage: status.update(f"{stage} …")) if console.is_terminal else (lambda _: None)


def _bytes_per_second(text: str) -> float:
    """Return a bandwidth given as 10Gbit or 1.25GB, per second."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kMGT]?)(bit|B)(?:/s)?", text)
    if not found or not float(found[1]):
        raise ConfigError(f"--bandwidth: expected bits or bytes per second, such as 100Gbit, got {quoted(text)}")
    factor: float = 1000 ** ["", "k", "M", "G", "T"].index(found[2])
    return float(found[1]) * factor / (8 if found[3] == "bit" else 1)


def _seconds(text: str) -> float:
    """Return a time given as 5us, 0.1ms or 1s, in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(us|µs|ms|s)", text)
    if not found:
        raise ConfigError(f"--latency: expected a time, such as 5us, got {quoted(text)}")
    return float(found[1]) * {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}[found[2]]


def _print(rows: Iterable[tuple[str, str]], warnings: Iterable[str] = ()) -> None:
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
    yield "in all", f"{result.steps:,} steps{epochs}, {clock(result.seconds)}"
    base, copy = (f"{size / 1e9:.2f}" for size in (result.base_bytes, result.checkpoint_bytes))
    of_it = f"Python and PyTorch {base}, a checkpoint's copy {copy}"
    yield "memory", f"{result.training_bytes / 1e9:.2f} GB of {result.available_bytes / 1e9:.1f} GB available ({of_it})"
    fits = f"up to about {result.largest_batch_tokens:,} fit, {result.bytes_per_token / 1e3:,.0f} kB each"
    yield "batch", f"{training.batch_tokens:,} tokens; {fits}"


def _rows_of_ranks(many: "RanksEstimate") -> Iterator[tuple[str, str]]:
    from glassformer.bench.ranks import EFFICIENT

    yield "processes", f"{many.ranks:,} of one thread each: {many.processes:,} on each of {many.nodes:,} machines"
    share = many.communication_seconds / many.seconds_per_step
    own = f"{clock(many.compute_seconds)} computation, {clock(many.communication_seconds)} communication ({share:.0%})"
    yield "a step", f"{clock(many.seconds_per_step)}: {own}"
    if many.network:
        speed = f"{many.network.bandwidth * 8 / 1e9:g} Gbit/s and {many.network.latency * 1e6:g} µs between machines"
        yield "", f"assumed: {speed}; measured: everything else"
    enough = f"at least {EFFICIENT:.0%} from {many.efficient_tokens:,.0f} target tokens per process"
    yield "efficiency", f"{many.efficiency:.0%} with {many.tokens_per_rank:,.0f} target tokens per process; {enough}"
    hours = f"{many.device_hours:,.{2 if many.device_hours < 10 else 0}f} hours of cores"
    yield "in all", f"{many.steps:,} steps, {clock(many.seconds)}, {many.tokens_per_second:,.0f} tokens/s; {hours}"
    per_node = many.processes * many.rank_bytes / 1e9
    yield "memory", f"{many.rank_bytes / 1e9:.2f} GB for each process, {per_node:.1f} GB for each machine"
    yield "storage", f"{many.storage_bytes / 1e9:.2f} GB of checkpoints and weights"


def _rows_of_loss(made: "LossEstimate") -> Iterator[tuple[str, str]]:
    from glassformer.bench.scaling import INTERVAL

    found, one = made.prediction, made.exponents
    interval = f"{INTERVAL:.0%} interval {found.low:.2f} to {found.high:.2f}"
    yield "validation loss", f"{found.loss:.2f} nats per token, {interval}; this does not predict BLEU"
    size = f"{made.size.encoder + made.size.decoder:,} parameters in matrices, {made.size.tokens:,.0f} tokens"
    yield "fitted to", f"{len(made.runs)} runs; this one ({size}) is {made.farthest:.1f} times as large as the largest"
    powers = f"{one.encoder:.2f} of the encoder, {one.decoder:.2f} of the decoder, {one.data:.2f} of the data"
    yield "exponents", f"{powers}; {made.residual:.3f} nats between the runs and the fit"
    if made.split:
        layers = f"{made.split.encoder_layers} + {made.split.decoder_layers} layers"
        loss = f"{made.split.prediction.loss:.2f}, lower in {made.split.confidence:.0%} of the refits"
        yield "better split", f"{layers} of encoder and decoder at no higher cost: {loss}"
    else:
        yield "better split", "unknown: add runs with fewer encoder or fewer decoder layers"
    for run in made.left_out:
        yield "left out", f"{run.folder}: {run.reason}"


def clock(seconds: float) -> str:
    """Return a time in a readable unit: ms, s, minutes, hours or days."""
    for limit, size, unit in ((1, 1e-3, "ms"), (120, 1, "s"), (7200, 60, "minutes"), (172_800, 3600, "hours")):
        if seconds < limit:
            number = seconds / size
            return f"{number:.{0 if number >= 20 or unit == 'ms' else 1}f} {unit}"
    return f"{seconds / 86_400:.1f} days"


def _print_presets() -> None:
    from glassformer.bench.estimate import count_parameters
    from glassformer.model.config import PRESETS, ModelConfig

    typer.echo("millions of parameters with a joint vocabulary of 37 000")
    for name in PRESETS:
        parameters = count_parameters(ModelConfig.preset(name, vocab_size=37_000))
        typer.echo(f"{name:<22} {parameters / 1e6:6.1f}")
