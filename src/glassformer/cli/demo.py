"""`glassformer demo`: the whole story in a few minutes, on a corpus that the program writes itself."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.arguments import Overrides
from glassformer.cli.evaluate import print_splits
from glassformer.cli.explore import print_page

if TYPE_CHECKING:
    from glassformer.translator import Translator

__all__ = ["demo"]


def demo(
    directory: Annotated[Path, typer.Option("--directory", help="Folder of the run.")] = Path("runs/demo"),
    overrides: Overrides = None,
) -> None:
    """Train an English–French translator on the built-in corpus, and see what it can do (about 4 minutes)."""
    from glassformer.cli.train import train_with_progress
    from glassformer.explorer.page import write_page
    from glassformer.recipes.toml import load
    from glassformer.run import evaluate_splits
    from glassformer.translator import Translator

    configuration = load("demo", [f"run.directory={directory}", *(overrides or ())])
    typer.echo("English to French: a small Transformer learns a corpus that a grammar writes. Ctrl-C stops, and")
    typer.echo("the same command goes on later.\n")
    summary = train_with_progress(configuration)
    if summary.reason == "stopped":
        typer.echo(f"stopped at step {summary.steps}; the same command goes on")
        return
    typer.echo(f"trained in {summary.seconds / 60:.1f} minutes\n")
    translator = Translator.load(summary.folder)
    print_splits(list(evaluate_splits(translator)))
    _print_classics(translator)
    command = "glassformer" if shutil.which("glassformer") else sys.argv[0]
    typer.echo(f"The model is in {summary.folder}. Now try:")
    typer.echo(f"  echo 'The tired animal slept in the park.' | {command} translate {summary.folder}")
    typer.echo(f"  {command} trace {summary.folder} 'The animal slept in the park.'")
    typer.echo(f"  {command} explore {summary.folder}\n")
    typer.echo("Every number of it, to look at and to change, is in one page, which needs no network:")
    print_page(write_page(translator, summary.folder / "explorer.html"))


def _print_classics(translator: "Translator") -> None:
    from rich.console import Console
    from rich.text import Text

    from glassformer.tasks import CLASSIC

    console = Console(highlight=False)
    console.print("\nSentences that everybody knows, in no training split:\n")
    for classic, output in zip(CLASSIC, translator.translate([one.source for one in CLASSIC]), strict=True):
        right = output.text == classic.target
        console.print(Text.assemble("  ", classic.source))
        console.print(Text.assemble(("✓ " if right else "✗ ", "green" if right else "red"), output.text))
        if not right:
            console.print(Text.assemble("  expected: ", classic.target, style="dim"))
    console.print()
