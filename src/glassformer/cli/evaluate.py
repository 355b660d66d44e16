"""`glassformer evaluate`."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.arguments import BeamSize, Json, LengthPenalty, RunFolder
from glassformer.errors import ConfigError

if TYPE_CHECKING:
    from glassformer.run import SplitResult
    from glassformer.translator import Translator

__all__ = ["evaluate", "print_splits"]


def evaluate(
    run: RunFolder,
    source: Annotated[Path | None, typer.Argument(metavar="SRC", help="Source text, one sentence a line.")] = None,
    reference: Annotated[Path | None, typer.Argument(metavar="REF", help="Its translations, line by line.")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="bleu, chrf, exact, wer, per or cer; may be given several times."),
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    output: Annotated[Path | None, typer.Option("--output", help="Write the translations here.")] = None,
    as_json: Json = False,
) -> None:
    """Score a model's translations of SRC against REF; a run on a built-in task is scored on its own splits."""
    from glassformer.translator import Translator

    if (source is None) != (reference is None):
        raise ConfigError("give both SRC and REF, or neither for a run on a built-in task")
    translator = Translator.load(run)
    options = {"beam_size": beam_size, "length_penalty": length_penalty}
    if source is None or reference is None:
        _evaluate_task(translator, options, as_json)
        return
    from glassformer.run import evaluate as run_evaluation
    from glassformer.text.corpus import read_parallel_lines

    sources, references = read_parallel_lines(source, reference)
    scores, translations = run_evaluation(
        translator, sources, references, metric or ["bleu", "chrf", "exact"], **options
    )
    if output:
        output.write_text("".join(f"{one.text}\n" for one in translations), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps([{"name": s.name, "value": s.value, "signature": s.signature} for s in scores]))
        return
    for score in scores:
        typer.echo(f"{score.name} {score.value:.2f}   {score.signature}")


def print_splits(results: "Iterable[SplitResult]") -> None:
    """Print a table of scores, one line a split."""
    from rich.console import Console
    from rich.table import Table

    table = Table("split", "sentences", "exact", "BLEU", "both of a pair exact", box=None, pad_edge=False)
    for column in table.columns[1:4]:
        column.justify = "right"
    for result in results:
        exact, bleu = f"{result.exact:.1f} %", f"{result.bleu:.1f}"
        table.add_row(result.name, f"{result.sentences:,}", exact, bleu, _pairs(result))
    Console(highlight=False).print(table)


def _pairs(result: "SplitResult") -> str:
    """Return how many minimal pairs are right: one kind by one, or many together with the hardest."""
    if len(result.pairs) <= 2:
        return ", ".join(f"{kind} {share:.1f} %" for kind, (share, _) in result.pairs.items())
    total = sum(count for _, count in result.pairs.values())
    right = sum(share * count for share, count in result.pairs.values()) / total
    hardest = min(result.pairs, key=lambda kind: result.pairs[kind][0])
    return f"{right:.1f} % ({hardest}: {result.pairs[hardest][0]:.0f} %)"


def _evaluate_task(translator: "Translator", options: Mapping[str, object], as_json: bool) -> None:
    from dataclasses import asdict

    from glassformer.run import evaluate_splits

    results = list(evaluate_splits(translator, **options))
    if as_json:
        typer.echo(json.dumps([asdict(result) for result in results]))
    else:
        print_splits(results)
