"""`glassformer demo`: train on a generated corpus in a few minutes, and show scores and the explorer."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.built_in import built_in_scores
from glassformer.cli.arguments import Overrides
from glassformer.cli.look_inside.explore import print_page
from glassformer.cli.measure.evaluate import print_splits

if TYPE_CHECKING:
    from glassformer.translator import Translator

__all__ = ["demo_command"]

SNAPSHOTS_SHOWN = 3
"""Number of training snapshots in the explorer page; with three snapshots, the page stays below 7.5 MB."""


def demo_command(
    directory: Annotated[Path, typer.Option("--directory", metavar="DIR", help="Write the run to DIR.")] = Path(
        "runs/demo"
    ),
    overrides: Overrides = None,
) -> None:
    """Train an English–French translator in about 4 minutes.

    Train on the built-in corpus. Print some translations, and the scores on each split next to the scores of the model
    in the package. Write explorer.html, a page that shows every number of the model, and report.html, a page about the
    training.
    """
    from glassformer.cli.train.train import end_if_stopped, train_with_progress
    from glassformer.jobs import evaluate_splits
    from glassformer.recipes.toml import load
    from glassformer.translator import Translator
    from glassformer.watch.explorer.payload import fits_page
    from glassformer.watch.explorer.standalone import EXPLORER_PAGE, write_page
    from glassformer.watch.report import write_report

    configuration = load("demo", [f"run.directory={directory}", *(overrides or ())])
    typer.echo("English to French: a small Transformer learns from a corpus written by a grammar.")
    typer.echo("Ctrl-C stops it; run the same command to resume.\n")
    summary = train_with_progress(configuration)
    end_if_stopped(summary)
    typer.echo(f"trained in {summary.seconds / 60:.1f} minutes\n")
    translator = Translator.load(summary.folder)
    print_splits(list(evaluate_splits(translator)), built_in_scores())
    typer.echo("package: the scores of `demo`, the model in the package, which this command trained once")
    _print_classics(translator)
    command = shlex.quote("glassformer" if shutil.which("glassformer") else sys.argv[0])
    run = shlex.quote(str(summary.folder))
    typer.echo(f"The model is in {summary.folder}. Now try:")
    typer.echo(f"  echo 'The tired animal slept in the park.' | {command} translate {run}")
    typer.echo(f"  {command} trace {run} 'The animal slept in the park.'")
    typer.echo(f"  {command} explore {run}\n")
    fits = fits_page(translator)
    shown = "the model, and lets you change it" if fits else "a translation"
    typer.echo(f"One page shows every number of {shown}; it needs no network:")
    snapshots = SNAPSHOTS_SHOWN if fits else 0
    print_page(write_page(translator, summary.folder / EXPLORER_PAGE, snapshots=snapshots, recorded=not fits))
    typer.echo(f"report of the training: {write_report(summary.folder)}")


def _print_classics(translator: "Translator") -> None:
    from rich.console import Console
    from rich.text import Text

    from glassformer.corpus.tasks import CLASSIC

    console = Console(highlight=False)
    console.print("\nWell-known sentences, none of them in the training data:\n")
    for classic, output in zip(CLASSIC, translator.translate([one.source for one in CLASSIC]), strict=True):
        right = output.text == classic.target
        console.print(Text.assemble("  ", classic.source))
        console.print(Text.assemble(("✓ " if right else "✗ ", "green" if right else "red"), output.text))
        if not right:
            console.print(Text.assemble("  expected: ", classic.target, style="dim"))
    console.print()
