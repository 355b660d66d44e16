"""All that a report says, gathered from a run's folder; what is missing there is missing in the report, too."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from glassformer.bundle import CONFIG, Bundle
from glassformer.errors import GlassformerError
from glassformer.evaluation.items import Items, read_items
from glassformer.model.config import ModelConfig
from glassformer.recipes.configuration import Configuration
from glassformer.report.history import History
from glassformer.report.outputs import Outputs, example, translated
from glassformer.run.corpus import PREPARED, read_valid_pairs
from glassformer.run.evaluation import validation_items
from glassformer.run.log import METRICS, read_log
from glassformer.run.manifest import Manifest
from glassformer.tasks import TASKS
from glassformer.text.corpus import Corpus
from glassformer.text.shards import Sentences, open_shards
from glassformer.text.tokenizer import Tokenizer
from glassformer.training.estimate import count_parameters
from glassformer.translator import Explanation, Translator

__all__ = ["Content", "Lengths", "gather"]

T = TypeVar("T")

Lengths = tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]
"""How many tokens the sources and targets of a corpus have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is known of a run. What could not be had is None, and `missing` says why."""

    folder: Path
    configuration: Configuration
    model_config: ModelConfig
    config_text: str
    """config.toml."""
    parameters: int
    vocabularies: tuple[int, int]
    """Entries on the source's side and on the target's."""
    history: History
    changed: datetime
    """When the log was last written, or else the configuration."""
    corpus: Mapping[str, Any] | None
    """What the corpus doctor found."""
    pairs: int
    """Training pairs; 0 = nobody knows."""
    lengths: Lengths | None
    lengths_of: str
    """What the lengths are of: "training pairs" or "validation pairs"."""
    outputs: Outputs | None
    source_tokens: tuple[int, ...]
    """How many tokens the source of each output has, `<eos>` included."""
    example: Explanation | None
    missing: tuple[str, ...]
    """What is not in the report, and why, a sentence each."""


def gather(folder: str | Path) -> Content:
    """Return what there is to report of a run, whether it goes on, has ended, or is an old one.

    Raises:
        CheckpointError: the folder is no run, or its configuration is damaged.
    """
    bundle = Bundle.load(folder)
    folder = bundle.folder
    missing: list[str] = []
    manifest, prepared = _manifest(bundle)
    history = History.of(read_log(folder / METRICS))
    if not history.steps:
        missing.append("Curves: the log has no lines yet.")
    items = _tried("Translations", lambda: _items(bundle, prepared), missing)
    translator = _tried("Translations", lambda: Translator.load(folder), missing) if items else None
    outputs = translated(translator, items) if translator and items else None
    lengths, lengths_of = _lengths(manifest, prepared), "training pairs"
    if lengths is None and items:
        lengths, lengths_of = _lengths_of_items(bundle, items), "validation pairs"
    return Content(
        folder=folder,
        configuration=bundle.configuration,
        model_config=bundle.model_config,
        config_text=(folder / CONFIG).read_text(encoding="utf-8"),
        parameters=count_parameters(bundle.model_config),
        vocabularies=(len(bundle.source_tokenizer), len(bundle.target_tokenizer)),
        history=history,
        changed=_changed(folder),
        corpus=manifest.report if manifest else None,
        pairs=manifest.pairs if manifest else 0,
        lengths=lengths,
        lengths_of=lengths_of,
        outputs=outputs,
        source_tokens=tuple(
            len(bundle.source_tokenizer.encode(text)) + 1 for text in (outputs.items.sources if outputs else ())
        ),
        example=example(translator, outputs) if translator and outputs else None,
        missing=tuple(missing),
    )


def _tried(what: str, get: Callable[[], T | None], missing: list[str]) -> T | None:
    """Return what there is; if it cannot be had, note why."""
    try:
        return get()
    except GlassformerError as error:
        missing.append(f"{what}: {error}.")
        return None


def _manifest(bundle: Bundle) -> tuple[Manifest | None, Path]:
    """Return what is said of the prepared corpus, and its folder: that of the configuration, or the run's own."""
    folders = [Path(name) for name in (bundle.configuration.data.prepared, bundle.folder / PREPARED) if name]
    for folder in folders:
        if manifest := Manifest.load(folder):
            return manifest, folder
    return None, folders[-1]


def _items(bundle: Bundle, prepared: Path) -> Items | None:
    """Return the validation set: as it was prepared, or from its files or its task."""
    data, pairs = bundle.configuration.data, read_valid_pairs(prepared)
    if pairs is not None:
        return validation_items(bundle.configuration, pairs) if pairs else None
    if data.task:
        splits = TASKS[data.task](bundle.configuration.run.seed, train=0).splits
        return Items.of([(one.source, one.target) for one in splits["valid"]], group=False)
    if data.valid_source:
        columns = (None, None) if data.valid_target else (data.source_column, data.target_column)
        return read_items(Corpus.of(data.valid_source, data.valid_target, data.directory, *columns))
    raise GlassformerError("the validation pairs were held out of the training files, and the run did not keep them")


def _lengths(manifest: Manifest | None, prepared: Path) -> Lengths | None:
    """Return the lengths of the prepared training pairs."""
    if not manifest or not manifest.shards:
        return None
    try:
        examples = open_shards(prepared, manifest.shards)
    except OSError:
        return None
    assert isinstance(examples.source, Sentences)
    assert isinstance(examples.target, Sentences)
    return examples.source.lengths, examples.target.lengths


def _lengths_of_items(bundle: Bundle, items: Items) -> Lengths:
    """Return the lengths of the validation pairs, as the run's tokenizers cut them."""

    def counted(tokenizer: Tokenizer, texts: tuple[str, ...]) -> NDArray[np.integer[Any]]:
        return np.array([len(tokenizer.encode(text)) + 1 for text in texts])

    targets = tuple(several[0] for several in items.references)
    return counted(bundle.source_tokenizer, items.sources), counted(bundle.target_tokenizer, targets)


def _changed(folder: Path) -> datetime:
    path = next(path for path in (folder / METRICS, folder / CONFIG) if path.exists())
    return datetime.fromtimestamp(path.stat().st_mtime).astimezone()
