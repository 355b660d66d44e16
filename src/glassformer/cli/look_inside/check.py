"""`glassformer check`: the self-test of a run."""

import json
from typing import TYPE_CHECKING

import typer

from glassformer.cli.arguments import Json, RunFolder

if TYPE_CHECKING:
    from rich.console import Console

    from glassformer.inspection.self_test import Check, SelfTest

__all__ = ["check_command"]


_STYLES = {"passed": "green", "failed": "bold red", "skipped": "dim"}


def check_command(run: RunFolder, as_json: Json = False) -> None:
    """Test a model: masks, cache, saving, use of the source.

    A failed check names the likely mistake. Exit with status 1 if a check fails.
    """
    from rich.console import Console

    from glassformer.inspection.check import check

    report = check(run)
    if as_json:
        typer.echo(json.dumps(report.to_dict(), ensure_ascii=False))
    else:
        _print(Console(highlight=False), report)
    raise typer.Exit(0 if report.passed else 1)


def _print(console: "Console", report: "SelfTest") -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from glassformer.inspection.self_test import SIGNS

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
