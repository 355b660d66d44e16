"""Train the tokenizers of a prepared corpus, or copy them from a run."""

from pathlib import Path

from glassformer.bundle import TOKENIZER
from glassformer.jobs.prepared.folder import PreparedFolder
from glassformer.jobs.prepared.texts import SplitTexts
from glassformer.jobs.run_reports import OnProgress, ProgressReport
from glassformer.recipes.configuration import Configuration
from glassformer.system.files import hash_of_folder, unwritable
from glassformer.system.processes import Worker
from glassformer.text.reversal import from_right_to_left
from glassformer.text.tokenizer import Tokenizer, load_tokenizers, save_tokenizers, train_tokenizers

__all__ = ["ensure_tokenizers", "read_tokenizers"]

TOKENIZER_PAIRS = 200_000
"""Maximum number of pairs to train tokenizers on; more pairs would take longer and hardly improve the tokenizers."""
APART_PAIRS = 5_000
"""Below this number of pairs, training the tokenizers takes less time than starting another process."""


def ensure_tokenizers(
    folder: PreparedFolder, configuration: Configuration, texts: SplitTexts, on_progress: OnProgress
) -> None:
    """Write the tokenizers if they are missing: copied from the run or the starting run, or newly trained.

    Raises:
        VocabularyError: the corpus gives no vocabulary.
        CheckpointError: a file cannot be read or written.
    """
    of_run = Path(configuration.run.directory) / TOKENIZER
    if folder.manifest.tokenizer and folder.manifest.tokenizer == hash_of_folder(folder.path / TOKENIZER):
        return
    if configuration.run.directory and of_run.is_dir():
        tokenizers = load_tokenizers(of_run)
    elif configuration.training.start_from:
        tokenizers = load_tokenizers(Path(configuration.training.start_from) / TOKENIZER)
    else:
        tokenizers = _trained(configuration, texts, folder.manifest.pairs, on_progress)
    _save(folder, tokenizers)


def read_tokenizers(folder: PreparedFolder, configuration: Configuration) -> tuple[Tokenizer, Tokenizer]:
    """Return the folder's source and target tokenizers; the latter reverses tokens if `data.reverse_target` is true.

    Raises:
        CheckpointError: the tokenizers cannot be read.
    """
    source, target = load_tokenizers(folder.path / TOKENIZER)
    return source, from_right_to_left(target) if configuration.data.reverse_target else target


def _trained(
    configuration: Configuration, texts: SplitTexts, count: int, on_progress: OnProgress
) -> tuple[Tokenizer, Tokenizer]:
    """Train tokenizers in a separate process, which can be killed: sentencepiece ignores signals during training."""
    on_progress(ProgressReport(stage="training the tokenizer"))
    pairs = texts.some_pairs(count, TOKENIZER_PAIRS)
    sides = ([source for source, _ in pairs], [target for _, target in pairs])
    if len(pairs) < APART_PAIRS or configuration.cleaning.workers == 1:
        return train_tokenizers(*sides, configuration.tokenizer)
    with Worker(train_tokenizers, "trains the tokenizer") as worker:
        return worker.ask(*sides, configuration.tokenizer)


def _save(folder: PreparedFolder, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """Write the tokenizers; remove shards that were made with different tokenizers from the manifest."""
    path = folder.path / TOKENIZER
    try:
        save_tokenizers(path, *tokenizers)
    except OSError as error:
        raise unwritable(path, error) from error
    hash, manifest = hash_of_folder(path), folder.manifest
    folder.save(tokenizer=hash, shards=manifest.shards if hash == manifest.tokenizer else ())
