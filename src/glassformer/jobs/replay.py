"""Replay an earlier corpus while fine-tuning.

prepared/replay/prepared/    the replayed corpus, prepared like the new corpus
prepared/replay/distilled/   the starting run's translations, if the replayed corpus has no target
"""

import glob
from dataclasses import replace
from pathlib import Path
from typing import Any

from glassformer.corpus.files import expand, files_of, format_of
from glassformer.corpus.mixture import MixedExamples
from glassformer.errors import ConfigError, quoted
from glassformer.jobs.distillation import distil
from glassformer.jobs.preparation import prepare_all
from glassformer.jobs.prepared.folder import PREPARED
from glassformer.jobs.prepared.manifest import MANIFEST
from glassformer.jobs.prepared.reading import Prepared
from glassformer.jobs.run_reports import OnProgress
from glassformer.recipes.configuration import OTHER_SPLITS

__all__ = ["with_replay"]

_REPLAY, _DISTILLED = "replay", "distilled"


def with_replay(prepared: Prepared, on_progress: OnProgress = lambda _: None, *, whole: bool = False) -> Prepared:
    """Return the prepared corpus; if `data.replay_source` is set, its epochs also replay pairs of that earlier corpus.

    Without `data.replay_target`, the starting run translates the replayed source; finished parts are not translated
    again. `whole`: whether the replayed corpus is complete because another process of this job has just prepared it.

    Raises:
        ConfigError: a setting is impossible, or the folder holds a corpus prepared with different settings.
        DataError: the corpus cannot be read.
        CheckpointError: a file cannot be written, or the starting run must translate but is missing.
    """
    data = prepared.configuration.data
    if not data.replay_source or not data.replay_share:
        return prepared
    folder = prepared.folder / _REPLAY
    changes: dict[str, Any] = {"source": data.replay_source, "target": data.replay_target}
    if format_of(files_of(data.replay_source)[0]) == "lines":
        changes |= {"source_column": None, "target_column": None}
        if not data.replay_target:
            changes |= _translated(prepared, folder, on_progress)
    others = {f"{split}_{side}": "" for split in OTHER_SPLITS for side in ("source", "target")}
    configuration = replace(prepared.configuration, data=replace(data, **(changes | others)))
    replay = prepare_all(configuration, folder / PREPARED, on_progress, whole=whole)
    train = prepared.train
    examples = MixedExamples(source=train.source, target=train.target, other=replay, share=data.replay_share)
    return replace(prepared, train=examples)


def _translated(prepared: Prepared, folder: Path, on_progress: OnProgress) -> dict[str, Any]:
    """Translate the replayed source with the starting run; return the [data] fields that name the translations."""
    data, place = prepared.configuration.data, folder / _DISTILLED
    names = expand(data.replay_source, data.directory)
    if len(names) != 1:
        raise ConfigError(
            f"data.replay_source: expected one file without data.replay_target, got {quoted(data.replay_source)}; join "
            "the files, or set data.replay_target to the files' translations"
        )
    # translated only if the pairs are not yet prepared, because the starting run may be deleted afterwards
    if not (folder / PREPARED / MANIFEST).exists():
        distil([prepared.configuration.training.start_from], place, source=names[0], on_progress=on_progress)
    return {
        "directory": "",
        "source": f"{glob.escape(str(place / 'corpus'))}/*.jsonl",
        "target": "",
        "source_column": "source",
        "target_column": "target",
    }
