"""`glassformer calibrate`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.built_in import refuse_built_in
from glassformer.cli.arguments import RunFolder
from glassformer.cli.option_groups import Computing, SearchOptions
from glassformer.errors import ConfigError, counted
from glassformer.jobs.options import CLOSE_CHRF, FLAGGED

if TYPE_CHECKING:
    from pathlib import Path

    from glassformer.evaluation.guards import Guards
    from glassformer.evaluation.items import Items
    from glassformer.recipes.configuration import Configuration
    from glassformer.translator import Translator

__all__ = ["calibrate_command", "calibrate_run", "calibration_result"]


def calibrate_command(
    run: RunFolder,
    *,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="Texts, one per line, or a .tsv or .jsonl file of pairs.  [default: the run's validation pairs]",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", help="Translations of SOURCE, needed for the confidence.")
    ] = None,
    flagged: Annotated[
        float,
        typer.Option("--flagged", min=1e-6, max=0.5, help="Choose thresholds that flag this share of the outputs."),
    ] = FLAGGED,
    close_chrf: Annotated[
        float,
        typer.Option(
            "--close", min=0, max=100, help="Count an output as close to its reference if its chrF is at least this."
        ),
    ] = CLOSE_CHRF,
    search: SearchOptions,
    computing: Computing,
) -> None:
    """Calibrate the guards against suspicious outputs, and confidence.

    The run translates its validation pairs, or the given texts. Later, an output is suspicious if it repeats itself,
    copies the source, or differs from almost all of these outputs in length, script, numbers or probability. The
    result, RUN/guards.json, is valid for one search only: give the beam size and the settings with which you will
    translate. If decoding.shortlist is set and the run has no shortlist, make one.
    """
    from glassformer.jobs.shortlists import keep_shortlist_of

    refuse_built_in(run, "calibrate")
    settings = search.settings()
    keep_shortlist_of(run, settings)
    translator = computing.load(run, settings=settings)
    items = _items(run, translator.bundle.configuration, source, target)
    calibrate_run(translator, items, flagged=flagged, close_chrf=close_chrf)


def calibrate_run(translator: "Translator", items: "Items", **options: Any) -> None:
    """Calibrate the guards of a run, store them, and print the result; `options` are arguments of `calibrate`."""
    from glassformer.jobs.calibration import CALIBRATED_TEXTS, calibrate

    items = items.first(CALIBRATED_TEXTS)
    typer.echo(f"translating {counted(len(items.sources), 'text')}", err=True)
    guards = calibrate(translator, items, **options)
    guards.save(translator.bundle.folder)
    _print(guards)


def _items(run: "Path", configuration: "Configuration", source: str | None, target: str | None) -> "Items":
    """Return the given texts, with their references if given; without texts, the run's validation pairs."""
    from glassformer.corpus.files import format_of
    from glassformer.corpus.readers import read_lines
    from glassformer.evaluation.items import Items, read_items
    from glassformer.jobs.calibration import CALIBRATED_TEXTS
    from glassformer.jobs.evaluation import corpus_of, validation_items
    from glassformer.jobs.prepared.folder import valid_pairs_of_run

    if source is None:
        if not (pairs := valid_pairs_of_run(run, configuration)):
            raise ConfigError(f"{run} holds no validation pairs; give SOURCE, and TARGET for the confidence")
        return validation_items(configuration, pairs, most=CALIBRATED_TEXTS)
    if target is None and format_of(source) == "lines":
        return Items.of(([line] for line in read_lines(source)), group=False)
    return read_items(corpus_of(source, target, configuration))


def _print(guards: "Guards") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("guard", "suspicious above", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for name, value in guards.thresholds.items():
        table.add_row(name, f"{value:.3g}")
    Console(highlight=False).print(table)
    typer.echo(f"each threshold is the {guards.quantile:.2%} quantile of the outputs; {calibration_result(guards)}")


def calibration_result(guards: "Guards") -> str:
    """Return the result of a calibration of guards, in words."""
    names = {"exact": "exactly right", "close": f"chrF ≥ {guards.close_chrf:g}"}
    fitted = ((name, getattr(guards, part)) for part, name in names.items())
    errors = ", ".join(f"{one.error:.1%} ({name})" for name, one in fitted if one)
    missing = "".join(f"; no confidence ({names[part]}): {why}" for part, why in guards.unfitted.items())
    return (
        f"{guards.outputs:,} outputs, of which {guards.flagged:.1%} are suspicious by thresholds from the other half"
        + (f"; confidence off by {errors} on average" if errors else "")
        + missing
    )
