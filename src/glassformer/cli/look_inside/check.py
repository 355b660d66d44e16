"""`glassformer check`: the self-test of a run, or the search for a mistake with which its model was trained."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.arguments import Device, Json, RunFolder
from glassformer.errors import ConfigError, counted

if TYPE_CHECKING:
    from rich.console import Console

    from glassformer.translator import Translator
    from glassformer.watch.inspection.diagnosis import Diagnosis
    from glassformer.watch.inspection.self_test import Check, SelfTest

__all__ = ["check_command"]


_STYLES = {"passed": "green", "failed": "bold red", "skipped": "dim"}
_VERDICT_STYLES = {"trained with it": "bold red", "cannot be told apart": "bold red", "undecidable": "dim"}
_PAIRS = 300


def check_command(
    run: RunFolder,
    pairs: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--pairs",
            metavar="SOURCE TARGET",
            help="Instead of the self-test, find the classic mistake with which the model was trained, by its loss on "
            "the pairs in two parallel files.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=1,
            help=f"Use at most N of the pairs, spread evenly over the files.  [default: {_PAIRS}]",
        ),
    ] = None,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Test a model: masks, cache, saving, use of the source.

    A failed check names the likely mistake. With --pairs, find the mistake with which the model was trained instead:
    plant each classic mistake in the model in turn, and compute the loss on the pairs with the best temperature. If the
    model was trained with a mistake, planting this mistake lowers the loss. Exit with status 1 if a check fails or if
    the model was trained with a mistake.
    """
    from rich.console import Console

    from glassformer.translator import Translator
    from glassformer.watch.inspection.check import check
    from glassformer.watch.inspection.self_test import SelfTest

    if pairs is None and limit is not None:
        raise ConfigError("--limit: has an effect only with --pairs; leave it out, or add --pairs SOURCE TARGET")
    subject = Translator.load(run, device=device)
    report = check(subject) if pairs is None else _diagnosis(subject, *pairs, limit or _PAIRS)
    console = Console(highlight=False)
    if as_json:
        typer.echo(json.dumps(report.to_dict(), ensure_ascii=False))
    elif isinstance(report, SelfTest):
        _print(console, report)
    else:
        _print_diagnosis(console, report)
    raise typer.Exit(0 if report.passed else 1)


def _diagnosis(subject: "Translator", source: Path, target: Path, limit: int) -> "Diagnosis":
    from glassformer.corpus.readers import read_parallel_lines
    from glassformer.watch.inspection.diagnosis import diagnose

    lines = read_parallel_lines(source, target)
    with _progress() as on_progress:
        return diagnose(subject, list(zip(*lines, strict=True)), limit=limit, on_progress=on_progress)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar of the computed losses on stderr, if stderr is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("losses"), BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("losses", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print(console: "Console", report: "SelfTest") -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from glassformer.watch.inspection.self_test import SIGNS

    table = Table("", "check", "what must hold", "measured", box=None, pad_edge=False)
    for one in report.checks:
        sign = Text(SIGNS[one.status], style=_STYLES[one.status])
        table.add_row(sign, one.name, one.claim, one.number or one.note)
    console.print(table)
    for one in report.failures:
        console.print(f"\n✗ {one.name}: {_reason(one)}")
        for likely in one.likely:
            console.print(Padding(f"likely: {likely}", (0, 0, 0, 2)))
    failed = len(report.failures)
    console.print(f"\n{f'{failed} of {len(report.checks)} checks failed' if failed else 'all checks passed'}")


def _reason(one: "Check") -> str:
    return ", ".join(text for text in (one.number, one.note) if text)


def _print_diagnosis(console: "Console", found: "Diagnosis") -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    left_out = f" ({found.left_out:,} left out: blank or too long)" if found.left_out else ""
    pairs = f"{counted(found.pairs, 'pair')}{left_out}"
    console.print(f"Loss of {pairs}, {found.tokens:,} target tokens, in nats per token.")
    console.print(
        "The verdict compares the losses at best T: the logits are divided by the temperature T that gives the lowest "
        "loss. A loss that falls only at T = 1 proves nothing, because sharper probabilities lower the loss of every "
        "model that is less confident than it is right, for example after label smoothing."
    )
    console.print(f"Each interval contains the true difference with a probability of {100 * found.confidence:.1f} %.\n")
    titles = ("mistake planted", "loss", "best T", "at best T", "difference", "verdict")
    table = Table(*titles, box=None, pad_edge=False)
    table.columns[4].no_wrap = True
    for column in table.columns[1:4]:
        column.justify = "right"
    numbers: tuple[str, ...] = (f"{found.loss:.4f}", f"{found.temperature:.2f}", f"{found.best:.4f}", "")
    table.add_row("none", *numbers, "")
    for one in found.mistakes:
        numbers = ("", "", "", "")
        if one.loss is not None:
            interval = f"{one.low:+.4f} to {one.high:+.4f}"
            numbers = (f"{one.loss:.4f}", f"{one.temperature:.2f}", f"{one.best:.4f}", interval)
        table.add_row(one.title, *numbers, Text(one.verdict, style=_VERDICT_STYLES.get(one.verdict, "")))
    console.print(table)
    console.print(f"\n{'✓' if found.passed else '✗'} {found.summary}")
    for note in found.notes:
        console.print(Padding(note, (0, 0, 0, 2)))
