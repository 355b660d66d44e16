"""`glassformer tune`."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.built_in import refuse_built_in
from glassformer.cli.arguments import BeamSize, Group, Json, RunFolder
from glassformer.cli.option_groups import ChosenModels, Computing
from glassformer.errors import ConfigError, counted, quoted

if TYPE_CHECKING:
    from glassformer.evaluation.items import Items
    from glassformer.jobs.tuning import Tuned
    from glassformer.recipes.configuration import Configuration

__all__ = ["tune_command"]


def tune_command(
    run: RunFolder,
    *,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SRC",
            help="Texts that no model was trained on, or a .tsv or .jsonl file of pairs.  [default: the run's "
            "validation pairs]",
        ),
    ] = None,
    reference: Annotated[str | None, typer.Argument(metavar="REF", help="References of SRC, line by line.")] = None,
    models: ChosenModels,
    beam_size: BeamSize = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Tune by bleu, chrf, exact, word_error, wer, per or cer.  [default: chosen from the data]",
        ),
    ] = None,
    group: Group = None,
    computing: Computing,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", metavar="FILE", help="Write the combination to FILE.  [default: RUN/combination.json]"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit the weights of rescoring models.

    Each model proposes and scores outputs, and has a weight. The output file, a combination, lists the models and their
    weights; give this file to a command in place of RUN. Weights fitted on one half of the texts are tested on the
    other half, so the printed gain is not inflated.
    """
    from glassformer.jobs.tuning import tune
    from glassformer.translating.combination import COMBINATION, SUFFIX

    refuse_built_in(run, "tune")
    if not (models.rescore or models.lexicon):
        raise ConfigError("there is nothing to tune; give models by --rescore RUN, or use --lexicon")
    path = output or run / COMBINATION
    if path.suffix != SUFFIX:
        raise ConfigError(f"--output: expected a name that ends in {SUFFIX}, got {quoted(str(path))}")
    settings = {} if beam_size is None else {"beam_size": beam_size}
    translator = models.load(run, computing, settings=settings)
    items = _items(run, translator.bundle.configuration, source, reference, group)
    typer.echo(f"translating {counted(len(items.sources), 'text')}", err=True)
    tuned = tune(translator, models.combination(run), items, metric)
    tuned.combination.save(path)
    _print(tuned, path, as_json)


def _items(
    run: Path, configuration: "Configuration", source: str | None, reference: str | None, group: bool | None
) -> "Items":
    """Return the given texts with their references, or the run's validation pairs."""
    from glassformer.evaluation.items import read_items
    from glassformer.jobs.evaluation import corpus_of, validation_items
    from glassformer.jobs.prepared.folder import valid_pairs_of_run

    if source is not None:
        return read_items(corpus_of(source, reference, configuration), group=group)
    if group is not None:
        raise ConfigError("--group has no effect on the run's own validation pairs; give SRC, or leave out --group")
    if not (pairs := valid_pairs_of_run(run, configuration)):
        raise ConfigError(f"{run} holds no validation pairs; give SRC and REF, or a .tsv file")
    return validation_items(configuration, pairs, most=len(pairs))


def _print(tuned: "Tuned", path: Path, as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    one, weights = tuned.comparison, tuned.combination.weights
    if as_json:
        typer.echo(json.dumps({**tuned.combination.tuned, "weights": weights.vector, "file": str(path)}))
        return
    table = Table("model", "weight", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    models = [(str(folder), weight) for folder, weight in zip(tuned.combination.rescore, weights.rescore, strict=True)]
    extras = [("length", weights.length)]
    if tuned.combination.lexicon:
        extras += [("lexicon: confidence", weights.confidence), ("lexicon: listed", weights.listed)]
    for name, weight in [(str(tuned.combination.run), weights.run), *models, *extras]:
        table.add_row(name, f"{weight:.3f}")
    Console(highlight=False).print(table)
    typer.echo(
        f"{one.name} {one.first:.2f} (the run alone) → {one.second:.2f} (all models, cross-fitted; "
        f"p = {one.p_value:.4f}; {tuned.items:,} texts); {tuned.oracle:.2f} if the best candidate were always chosen"
    )
    typer.echo(f"use it:  glassformer translate {shlex.quote(str(path))} FILE")
