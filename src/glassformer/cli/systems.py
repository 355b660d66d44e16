"""Load a run with the models that rescore its outputs: the options --ensemble, --rescore and --lexicon."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from glassformer.translator import Translator

__all__ = ["load_system"]


def load_system(
    run: Path, ensemble: Sequence[Path] | None, rescore: Sequence[Path] | None, *, lexicon: bool, **options: Any
) -> "Translator":
    """Return the translator of these models; `options` are further arguments of `Translator.load`.

    A lexicon that does not exist yet is made. If the weights are not tuned, stderr says so.
    """
    from glassformer.translator import Translator

    members, scorers = ensemble or [], rescore or []
    if not (scorers or lexicon):
        return Translator.load(run, *members, **options)
    if lexicon and run.is_dir():
        from glassformer.jobs.tuning import keep_lexicon

        keep_lexicon(run)
    translator = Translator.load(run, *members, rescore=scorers, lexicon=lexicon, **options)
    from glassformer.translating.tuned_system import System

    if not System.of(run, ensemble=members, rescore=scorers, lexicon=lexicon).tuned:
        typer.echo("all models count alike; `glassformer tune` with the same models fits their weights", err=True)
    return translator
