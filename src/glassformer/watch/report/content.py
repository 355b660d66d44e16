"""The content of a training report, gathered from a run's folder; the report names the parts that are missing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from glassformer.bundle import CONFIG, Bundle
from glassformer.corpus.shards import Sentences, open_shards
from glassformer.corpus.tasks import TASKS
from glassformer.errors import GlassformerError
from glassformer.evaluation.items import Items, read_items
from glassformer.jobs.evaluation import validation_items
from glassformer.jobs.log import METRICS_FILE, read_log
from glassformer.jobs.prepared.folder import PREPARED, read_valid_pairs
from glassformer.jobs.prepared.manifest import Manifest
from glassformer.jobs.speed.estimate import count_parameters
from glassformer.model.config import ModelConfig
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.corpora import corpus_for
from glassformer.text.tokenizer import Tokenizer
from glassformer.translating.plain import reads_sentences
from glassformer.translating.translation import Explanation
from glassformer.translator import Translator
from glassformer.watch.report.history import History
from glassformer.watch.report.outputs import Early, Outputs, at_snapshots, example, translated
from glassformer.watch.report.variants import Tried, tried

__all__ = ["Content", "Lengths", "gather"]

T = TypeVar("T")

Lengths = tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]
"""Lengths of a corpus's sources and targets, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The known facts of a run; unknown facts are None, and `missing` gives the reasons."""

    folder: Path
    configuration: Configuration
    model_config: ModelConfig
    config_text: str
    """The text of config.toml."""
    origin: str
    """The name of the model or file from which the model was imported; "" if glassformer trained it."""
    parameters: int
    vocabularies: tuple[int, int]
    """Size of the source vocabulary and of the target vocabulary."""
    history: History
    changed: datetime
    """Time of the last change of the log, or, without a log, of the configuration."""
    corpus: Mapping[str, Any] | None
    """The findings of the corpus doctor."""
    pairs: int
    """Number of training pairs; 0 = unknown."""
    lengths: Lengths | None
    lengths_of: str
    """The pairs whose lengths were measured: "training pairs" or "validation pairs"."""
    outputs: Outputs | None
    source_tokens: tuple[int, ...]
    """Number of tokens of each output's source, including `<eos>`."""
    example: Explanation | None
    early: Early | None
    """Translations by the snapshots of the training."""
    tried: Tried | None
    """How sentences in other spellings are translated; None if the run does not read sentences."""
    missing: tuple[str, ...]
    """The parts missing from the report and the reasons, one sentence each."""


def gather(folder: str | Path) -> Content:
    """Return the content of a run's report, even of a run that is in progress.

    Raises:
        CheckpointError: the folder is not a run, or its configuration is damaged.
    """
    bundle = Bundle.load(folder)
    folder = bundle.folder
    missing: list[str] = []
    manifest, prepared = _manifest(bundle)
    history = History.of(read_log(folder / METRICS_FILE))
    if not history.steps:
        missing.append("Curves: the log has no entries yet.")
    items = _tried("Translations", lambda: _items(bundle, prepared), missing)
    translator = _tried("Translations", lambda: Translator.load(folder, engine="torch"), missing) if items else None
    outputs = translated(translator, items) if translator and items else None
    early = None
    if translator and items:
        early = _tried("The training, sentence by sentence", lambda: at_snapshots(translator, items.sources), missing)
    variants = None
    if translator and outputs and reads_sentences(bundle):
        a_line = outputs.seconds / len(outputs.texts)
        variants = tried(translator, outputs.items, training=history.seconds, a_line=a_line)
    lengths, lengths_of = _lengths(manifest, prepared), "training pairs"
    if lengths is None and items:
        lengths, lengths_of = _lengths_of_items(bundle, items), "validation pairs"
    return Content(
        folder=folder,
        configuration=bundle.configuration,
        model_config=bundle.model_config,
        origin=bundle.origin,
        config_text=(folder / CONFIG).read_text(encoding="utf-8"),
        parameters=count_parameters(bundle.model_config),
        vocabularies=(len(bundle.source_tokenizer), len(bundle.target_tokenizer)),
        history=history,
        changed=_changed(folder),
        corpus=manifest.findings if manifest else None,
        pairs=manifest.pairs if manifest else 0,
        lengths=lengths,
        lengths_of=lengths_of,
        outputs=outputs,
        source_tokens=tuple(
            len(bundle.source_tokenizer.encode(text)) + 1 for text in (outputs.items.sources if outputs else ())
        ),
        example=example(translator, outputs) if translator and outputs else None,
        early=early,
        tried=variants,
        missing=tuple(missing),
    )


def _tried(what: str, get: Callable[[], T | None], missing: list[str]) -> T | None:
    """Return the result of `get`; on an error, add the reason to `missing` and return None."""
    try:
        return get()
    except GlassformerError as error:
        missing.append(f"{what}: {error}.")
        return None


def _manifest(bundle: Bundle) -> tuple[Manifest | None, Path]:
    """Return the manifest of the prepared corpus, and its folder, which is configured or the run's own."""
    folders = [Path(name) for name in (bundle.configuration.data.prepared, bundle.folder / PREPARED) if name]
    for folder in folders:
        if manifest := Manifest.load(folder):
            return manifest, folder
    return None, folders[-1]


def _items(bundle: Bundle, prepared: Path) -> Items | None:
    """Return the validation set, from the prepared corpus, the configured files, or the built-in task."""
    data, pairs = bundle.configuration.data, read_valid_pairs(prepared)
    if pairs is not None:
        return validation_items(bundle.configuration, pairs) if pairs else None
    if data.task:
        splits = TASKS[data.task](bundle.configuration.run.seed, train=0).splits
        return Items.of([(one.source, one.target) for one in splits["valid"]], group=False)
    if corpus := corpus_for(data, "valid"):
        return read_items(corpus)
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
    """Return the lengths of the validation pairs, as encoded by the run's tokenizers."""

    def counted(tokenizer: Tokenizer, texts: tuple[str, ...]) -> NDArray[np.integer[Any]]:
        return np.array([len(tokenizer.encode(text)) + 1 for text in texts])

    targets = tuple(several[0] for several in items.references)
    return counted(bundle.source_tokenizer, items.sources), counted(bundle.target_tokenizer, targets)


def _changed(folder: Path) -> datetime:
    path = next(path for path in (folder / METRICS_FILE, folder / CONFIG) if path.exists())
    return datetime.fromtimestamp(path.stat().st_mtime).astimezone()
