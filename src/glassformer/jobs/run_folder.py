"""The folder of a training run: begin a new run, or check that a resumed run is the same run."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from glassformer.bundle import CONFIG, Bundle
from glassformer.corpus.files import is_url
from glassformer.errors import CheckpointError, ConfigError, quoted
from glassformer.jobs.prepared.folder import prepared_folder
from glassformer.jobs.prepared.manifest import MANIFEST
from glassformer.jobs.prepared.reading import Prepared
from glassformer.jobs.starting_run import check_start
from glassformer.recipes.configuration import NOT_CONTENT, Configuration
from glassformer.recipes.toml import model_config
from glassformer.training.precision import decided

__all__ = ["bundle_of", "check_shared", "keep_bundle"]


def bundle_of(prepared: Prepared, folder: Path, device: torch.device) -> Bundle:
    """Return the run's bundle, not yet written; raise an error if the folder holds a different run."""
    source, target = prepared.source_tokenizer, prepared.target_tokenizer
    there = Bundle.load(folder) if (folder / CONFIG).exists() else None
    settings = prepared.configuration.training
    if there and settings.precision == "auto":  # a resumed run keeps the precision with which it began
        settings = replace(settings, precision=there.configuration.training.precision)
    configuration = replace(prepared.configuration, training=decided(settings, device))
    bundle = Bundle(
        folder=folder,
        configuration=configuration,
        model_config=model_config(configuration, len(source), len(target)),
        source_tokenizer=source,
        target_tokenizer=target,
        habits=there.habits if there else prepared.habits,
        spellings=there.spellings if there else prepared.spellings,
    )
    if there:
        _check_same_run(there, bundle)
        check_start(bundle)
    return bundle


def keep_bundle(bundle: Bundle) -> None:
    """Write the bundle into the run's folder; the tokenizers of a resumed run are not written again."""
    if (bundle.folder / CONFIG).exists():
        bundle.save_configuration()
    else:
        bundle.save()


def check_shared(configuration: Configuration) -> None:
    """Raise an error if this machine cannot see the files that rank 0 wrote."""
    folder = Path(configuration.run.directory)
    prepared = () if is_url(configuration.data.prepared) else (prepared_folder(configuration) / MANIFEST,)
    for path in (folder / CONFIG, *prepared):
        if not path.exists():
            raise CheckpointError(
                f"{path} was written by rank 0, but does not exist on this machine; set run.directory and "
                "data.prepared to folders that all machines share"
            )


def _check_same_run(there: Bundle, here: Bundle) -> None:
    """Raise an error if the folder's run has different data, vocabularies or sizes; training settings may change."""
    for section, values in _identity(here).items():
        for name, value in values.items():
            before = _identity(there)[section][name]
            if value != before:
                raise ConfigError(
                    f"{here.folder} holds a run with {section}.{name} = {quoted(before)}, not {quoted(value)}: choose "
                    f"another run.directory, or delete {here.folder}"
                )
    for side in ("source", "target"):
        old, new = getattr(there, f"{side}_tokenizer"), getattr(here, f"{side}_tokenizer")
        if old.tokens(range(len(old))) != new.tokens(range(len(new))):
            raise ConfigError(
                f"{here.folder} holds a run whose {side} vocabulary differs from the prepared corpus: choose another "
                "run.directory, or delete data.prepared"
            )


def _identity(bundle: Bundle) -> dict[str, dict[str, Any]]:
    configuration = bundle.configuration
    sections = {name: asdict(getattr(configuration, name)) for name in ("data", "tokenizer", "embeddings")}
    for name in NOT_CONTENT:  # the corpus may have been moved
        del sections["data"][name]
    sections["training"] = {"start_from": configuration.training.start_from}
    return {**sections, "run": {"seed": configuration.run.seed}, "model": bundle.model_config.to_dict()}
