"""`glassformer estimate`."""

import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.arguments import Data, Json, Overrides
from glassformer.errors import ConfigError

if TYPE_CHECKING:
    from glassformer.training.estimate import Estimate

__all__ = ["estimate"]


def estimate(
    config: Annotated[
        str | None, typer.Argument(metavar="CONFIG", help="A TOML file, or the name of a recipe.", show_default=False)
    ] = None,
    overrides: Overrides = None,
    data: Data = None,
    presets: Annotated[bool, typer.Option("--presets", help="List the model presets with their parameters.")] = False,
    as_json: Json = False,
) -> None:
    """Say what a training takes (parameters, operations, memory, time), without training."""
    if presets:
        _print_presets()
        return
    if config is None:
        raise ConfigError("give a CONFIG, or --presets for the list of models")
    from glassformer.recipes.toml import load, model_config
    from glassformer.training.estimate import estimate as estimate_training

    configuration = load(config, overrides or (), data)
    size = configuration.tokenizer.vocab_size
    result = estimate_training(model_config(configuration, size, size), configuration.training)
    if as_json:
        typer.echo(json.dumps({"vocabulary": size, **asdict(result)}))
    else:
        _print(result, size)


def _print(result: "Estimate", size: int) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    rows = [
        ("vocabulary", f"{size:,} entries on each side (at most: tokenizer.vocab_size)"),
        ("parameters", f"{result.parameters:,} ({result.weights_bytes / 1e6:,.1f} MB of weights)"),
        ("operations", f"{result.flops_per_step:.3g} FLOP a step, {result.total_flops:.3g} in all"),
        ("memory", f"about {result.training_bytes / 1e9:.2f} GB in training, PyTorch itself (0.3 GB) not counted"),
        ("this machine", f"{result.matrix_flops_per_second / 1e9:,.0f} GFLOP/s in matrix products, measured now"),
        ("time", f"{timedelta(seconds=round(result.seconds))} for {result.steps:,} steps, at half of that speed"),
    ]
    if not result.steps:
        rows[-1] = ("time", f"{timedelta(seconds=round(result.seconds))}, as training.minutes says")
    for name, text in rows:
        table.add_row(name, text)
    Console(highlight=False).print(table)


def _print_presets() -> None:
    from glassformer.model.config import PRESETS, ModelConfig
    from glassformer.training.estimate import count_parameters

    typer.echo("millions of parameters with a joint vocabulary of 37 000")
    for name in PRESETS:
        parameters = count_parameters(ModelConfig.preset(name, vocab_size=37_000))
        typer.echo(f"{name:<22} {parameters / 1e6:6.1f}")
