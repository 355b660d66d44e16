"""`glassformer score`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.arguments import Ensemble, Json, LengthPenalty, RunFolder

__all__ = ["score"]


def score(
    run: RunFolder,
    source: Annotated[Path, typer.Argument(metavar="SRC", help="Source text, one sentence a line.")],
    target: Annotated[Path, typer.Argument(metavar="TGT", help="Targets to score, line by line.")],
    ensemble: Ensemble = None,
    length_penalty: LengthPenalty = None,
    as_json: Json = False,
) -> None:
    """Print the log probability that the model gives to each target: log_prob, score, number of tokens."""
    from glassformer.text.corpus import read_parallel_lines
    from glassformer.translator import Translator

    sources, targets = read_parallel_lines(source, target)
    translator = Translator.load(run, *ensemble or [])
    for one in translator.score(list(zip(sources, targets, strict=True)), length_penalty=length_penalty):
        if as_json:
            typer.echo(json.dumps(asdict(one), ensure_ascii=False))
        elif one.status == "ok":
            typer.echo(f"{one.log_prob:.4f}\t{one.score:.4f}\t{len(one.tokens)}")
        else:
            typer.echo("")
