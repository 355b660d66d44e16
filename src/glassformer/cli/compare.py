"""`glassformer compare`."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.arguments import (
    BeamSize,
    Group,
    Json,
    LengthPenalty,
    Metrics,
    TestReference,
    TestSource,
)
from glassformer.cli.evaluate import chosen_metrics
from glassformer.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from glassformer.evaluation.items import Items
    from glassformer.evaluation.significance import Comparison
    from glassformer.run.comparison import SystemComparison
    from glassformer.translator import Translator

__all__ = ["compare"]


def compare(
    first: Annotated[str, typer.Argument(metavar="RUN", help="A run directory; with --hypotheses a file.")],
    second: Annotated[str, typer.Argument(metavar="RUN", help="What to compare it with.")],
    source: TestSource = None,
    reference: TestReference = None,
    metric: Metrics = None,
    hypotheses: Annotated[
        bool, typer.Option("--hypotheses", help="RUN and RUN are files of translations, one for each line of SRC.")
    ] = False,
    group: Group = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    examples: Annotated[int, typer.Option("--examples", help="Show so many of the lines that differ most.")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draws.")] = 1,
    as_json: Json = False,
) -> None:
    """Say whether two runs differ by more than chance, and where they differ most.

    Intervals are by paired bootstrap, p-values by approximate randomisation. Without SRC, both are compared on the test
    (or validation) files of their configurations, or on the splits of their task.
    """
    wanted: dict[str, Any] = {"metric": metric, "examples": examples, "seed": seed}
    if hypotheses:
        if beam_size is not None or length_penalty is not None:
            raise ConfigError("--beam-size and --length-penalty have no effect on files that are translated already")
        results = [_of_files(first, second, _given(source, reference, group), **wanted)]
    else:
        wanted |= {"beam_size": beam_size, "length_penalty": length_penalty}
        results = list(_of_runs(first, second, source, reference, group, **wanted))
    if as_json:
        typer.echo(json.dumps([_to_dict(result) for result in results], ensure_ascii=False))
        return
    typer.echo(f"A  {first}\nB  {second}")
    for result in results:
        _print(result)


def _of_files(
    first: str, second: str, items: "Items", *, metric: Sequence[str] | None, **wanted: Any
) -> "SystemComparison":
    from glassformer.run.comparison import compare_outputs
    from glassformer.text.corpus import read_lines

    a, b = (items.from_lines(read_lines(file)) for file in (first, second))
    return compare_outputs(a, b, items, chosen_metrics(metric, items), **wanted)


def _of_runs(
    first: str,
    second: str,
    source: str | None,
    reference: str | None,
    group: bool | None,
    *,
    metric: Sequence[str] | None,
    **wanted: Any,
) -> "Iterator[SystemComparison]":
    from glassformer.run.comparison import compare_runs, shared_test_sets
    from glassformer.translator import Translator

    runs = Translator.load(first), Translator.load(second)
    if source is None:
        if group is not None:
            raise ConfigError("--group has no effect on the runs' own test sets: give SRC, or leave it out")
        sets = shared_test_sets(*(run.bundle.configuration for run in runs))
    else:
        sets = {"": _given(source, reference, group, runs[0])}
    for name, items in sets.items():
        yield compare_runs(*runs, items, chosen_metrics(metric, items), name=name, **wanted)


def _given(source: str | None, reference: str | None, group: bool | None, run: "Translator | None" = None) -> "Items":
    """Return the items of the files that were given."""
    from glassformer.evaluation.items import read_items
    from glassformer.run.evaluation import corpus_of

    if source is None:
        raise ConfigError("files of translations are compared on a test set: give SRC and REF, or a .tsv file")
    return read_items(corpus_of(source, reference, run.bundle.configuration if run else None), group=group)


def _to_dict(result: "SystemComparison") -> dict[str, Any]:
    from dataclasses import asdict

    metrics = [
        {**asdict(one), "difference": one.difference, "better": " AB"[one.better].strip()} for one in result.metrics
    ]
    return {**asdict(result), "metrics": metrics}


def _print(result: "SystemComparison") -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    console.print(f"\n{result.name}" if result.name else "")
    console.print(_table(result.metrics))
    for one in result.disagreements:
        a, b = (f"{100 * share:.0f} %" for share in one.edits)
        console.print(f"\nsource     {one.source}\nreference  {' | '.join(one.references)}")
        for letter, output, share in zip("AB", one.outputs, (a, b), strict=True):
            console.print(f"{letter} {share:>7}  {output}")
    if shown := len(result.disagreements):
        console.print(
            f"\nThe {shown} of {result.differing:,} lines that differ most, with the characters to edit to the nearest "
            "reference."
        )


def _table(metrics: "Sequence[Comparison]") -> "Table":
    from rich.table import Table

    table = Table("metric", "A", "B", "B − A", "95 % interval", "p", "", box=None, pad_edge=False)
    for column in table.columns[1:6]:
        column.justify = "right"
    for one in metrics:
        interval = f"{_signed(one.low)} … {_signed(one.high)}"
        p_value = f"{one.p_value:.4f}"
        table.add_row(
            one.name, f"{one.first:.2f}", f"{one.second:.2f}", _signed(one.difference), interval, p_value, _verdict(one)
        )
    return table


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _verdict(one: "Comparison") -> str:
    if not one.better:
        return "no difference" if not one.difference else "may be chance"
    return f"{' AB'[one.better]} is better"
