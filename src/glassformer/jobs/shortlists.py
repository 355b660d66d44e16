"""Make a run's shortlist from its training pairs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from glassformer.bundle import SHORTLIST, Bundle
from glassformer.corpus.batching import Examples
from glassformer.corpus.shortlist import Shortlist
from glassformer.interop.ctranslate2.writer import is_export
from glassformer.jobs.preparation import prepare
from glassformer.jobs.run_reports import ProgressReport
from glassformer.recipes.toml import changed_settings

__all__ = ["keep_shortlist", "keep_shortlist_of"]


def keep_shortlist_of(run: Path, settings: Mapping[str, Any]) -> None:
    """Make the shortlist of a finished run if the decoding settings need a shortlist and the run has none.

    Raises:
        ConfigError: a setting is impossible, or the run was imported, without training pairs.
        DataError: the training files cannot be read.
        CheckpointError: the run or its prepared corpus is damaged, or the file cannot be written.
    """
    bundle = Bundle.load(run)
    decoding = changed_settings("decoding", bundle.configuration.decoding, settings)
    if decoding.shortlist and not is_export(run) and not (run / SHORTLIST).exists():
        configuration = replace(
            bundle.configuration, decoding=decoding, run=replace(bundle.configuration.run, directory=str(run))
        )
        keep_shortlist(replace(bundle, configuration=configuration), prepare(configuration).train)


def keep_shortlist(
    run: Bundle, examples: Examples, on_progress: Callable[[ProgressReport], object] = lambda _: None
) -> None:
    """Make a run's shortlist from encoded training pairs if the run's settings need a shortlist and it has none.

    Raises:
        CheckpointError: the file cannot be written.
    """
    path = run.folder / SHORTLIST
    if not run.configuration.decoding.shortlist or path.exists():
        return
    on_progress(ProgressReport(stage="aligning tokens for the shortlist", done=0, total=len(examples), unit="pairs"))
    Shortlist.aligned(examples, run.source_tokenizer, run.target_tokenizer).save(path)
