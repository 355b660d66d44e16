"""`glassformer score`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.arguments import DecodingOverrides, Device, Ensemble, Json, RunFolder

__all__ = ["score_command"]


def score_command(
    run: RunFolder,
    source: Annotated[Path, typer.Argument(metavar="SRC", help="Source text, one sentence per line.")],
    target: Annotated[Path, typer.Argument(metavar="TGT", help="Targets to score, line by line.")],
    ensemble: Ensemble = None,
    overrides: DecodingOverrides = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Print the log probability that a model gives to each target.

    Each line is log_prob, score and number of tokens; it is empty where a pair cannot be scored.
    """
    from glassformer.corpus.readers import read_parallel_lines
    from glassformer.recipes.toml import decoding_changes
    from glassformer.translator import Translator

    sources, targets = read_parallel_lines(source, target)
    translator = Translator.load(run, *ensemble or [], settings=decoding_changes(overrides or ()), device=device)
    for one in translator.score(list(zip(sources, targets, strict=True))):
        if as_json:
            typer.echo(json.dumps(asdict(one), ensure_ascii=False))
        elif one.status == "ok":
            typer.echo(f"{one.log_prob:.4f}\t{one.score:.4f}\t{len(one.tokens)}")
        else:
            typer.echo("")
