"""`glassformer compare`."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.arguments import Json
from glassformer.cli.option_groups import SearchOptions, TestSet
from glassformer.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from glassformer.evaluation.items import Items
    from glassformer.evaluation.significance import Comparison
    from glassformer.jobs.comparison import SystemComparison
    from glassformer.translator import Translator

__all__ = ["COMPARED_COLUMNS", "compare_command"]


def compare_command(
    first: Annotated[str, typer.Argument(metavar="RUN", help="Run directory, or file of translations.")],
    second: Annotated[
        str, typer.Argument(metavar="RUN", help="Run directory, or file of translations, to compare with the first.")
    ],
    *,
    test: TestSet,
    hypotheses: Annotated[
        bool,
        typer.Option("--hypotheses", help="Compare files of translations, one per line of SRC, instead of runs."),
    ] = False,
    search: SearchOptions,
    examples: Annotated[int, typer.Option("--examples", metavar="N", help="Show the N lines that differ most.")] = 5,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Seed the random draws of the significance tests.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Test whether two runs differ by more than chance, and where.

    Paired bootstrap gives the intervals, and approximate randomisation the p-values. Without SRC, compare the runs on
    the test (or validation) files of their configurations, or on the splits of their task.
    """
    wanted: dict[str, Any] = {"examples": examples, "seed": seed}
    if hypotheses:
        if search != SearchOptions():
            raise ConfigError("--beam-size and --set have no effect on files of translations; leave them out")
        results = [_of_files(first, second, test, **wanted)]
    else:
        results = list(_of_runs(first, second, test, search.settings(), **wanted))
    if as_json:
        typer.echo(json.dumps([_to_dict(result) for result in results], ensure_ascii=False))
        return
    typer.echo(f"A  {first}\nB  {second}")
    for result in results:
        _print(result)


def _of_files(first: str, second: str, test: TestSet, **wanted: Any) -> "SystemComparison":
    from glassformer.corpus.readers import read_lines
    from glassformer.jobs.comparison import compare_outputs

    items = _given(test)
    a, b = (items.from_lines(read_lines(file)) for file in (first, second))
    return compare_outputs(a, b, items, test.metrics(items), **wanted)


def _of_runs(
    first: str, second: str, test: TestSet, settings: dict[str, Any], **wanted: Any
) -> "Iterator[SystemComparison]":
    from glassformer.jobs.comparison import compare_runs, shared_test_sets
    from glassformer.translator import Translator

    runs = Translator.load(first, settings=settings), Translator.load(second, settings=settings)
    if test.source is None:
        if test.group is not None:
            raise ConfigError("--group has no effect on the runs' own test sets; give SRC, or leave out --group")
        sets = shared_test_sets(*(run.bundle.configuration for run in runs))
    else:
        sets = {"": _given(test, runs[0])}
    for name, items in sets.items():
        yield compare_runs(*runs, items, test.metrics(items), name=name, **wanted)


def _given(test: TestSet, run: "Translator | None" = None) -> "Items":
    """Return the items of the given files."""
    if test.source is None:
        raise ConfigError("files of translations are compared on a test set; give SRC and REF, or a .tsv file")
    return test.items(run.bundle.configuration if run else None)


def _to_dict(result: "SystemComparison") -> dict[str, Any]:
    from dataclasses import asdict

    metrics = [{**asdict(one), **_properties(one), "better": " AB"[one.better].strip()} for one in result.metrics]
    return {**asdict(result), "metrics": metrics}


def _properties(one: "Comparison") -> dict[str, Any]:
    return {name: getattr(one, name) for name, member in vars(type(one)).items() if isinstance(member, property)}


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
            f"\nThe {shown} of {result.differing:,} lines that differ most; % = share of characters to edit for the "
            "nearest reference."
        )


def _table(metrics: "Sequence[Comparison]") -> "Table":
    from rich.table import Table

    table = Table(*COMPARED_COLUMNS, box=None, pad_edge=False)
    for column in table.columns:
        if column.header not in ("metric", ""):  # words are left-aligned, numbers right-aligned
            column.justify = "right"
    for one in metrics:
        table.add_row(*(cell(one) for cell in COMPARED_COLUMNS.values()))
    return table


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _verdict(one: "Comparison") -> str:
    if not one.better:
        return "no difference" if not one.difference else "may be chance"
    return f"{' AB'[one.better]} is better"


COMPARED_COLUMNS: "dict[str, Callable[[Comparison], str]]" = {
    "metric": lambda one: one.name,
    "A": lambda one: f"{one.first:.2f}",
    "B": lambda one: f"{one.second:.2f}",
    "B − A": lambda one: _signed(one.difference),
    "95 % interval": lambda one: f"{_signed(one.low)} … {_signed(one.high)}",
    "p": lambda one: f"{one.p_value:.4f}",
    "": lambda one: _verdict(one),
}
"""The columns of the table: each heading, and the function that gives a metric's cell. `--json` prints every field and
property of `Comparison`."""
