"""Sample a corpus to estimate the number and the lengths of its sentences, without preparing the corpus."""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path

import numpy as np

from glassformer.bundle import CONFIG, TOKENIZER, Bundle
from glassformer.corpus.batching import Examples
from glassformer.corpus.files import stored_bytes
from glassformer.corpus.readers import Corpus, PairReader, TextPairs
from glassformer.corpus.tasks import TASKS
from glassformer.errors import ConfigError, DataError, quoted
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.corpora import corpus_for
from glassformer.recipes.defaults import fit, is_open
from glassformer.text.tokenizer import TOKENIZER_KINDS, Tokenizer, train_tokenizers
from glassformer.text.vocabulary import EOS_ID, SPECIALS

__all__ = ["Sample", "read_sample"]

READ_PAIRS = 300_000
"""Maximum number of pairs to read from a corpus; reading also ends after READ_SECONDS."""
READ_SECONDS = 3.0
SAMPLED = 5_000
"""Number of pairs to encode."""
LONGEST_PAIRS = 100
"""Number of pairs with the most characters that are searched for the pairs with the most tokens."""
TYPICAL, SPREAD = 25, 0.6
"""Assumed mean and spread of the tokens per sentence if the corpus is missing; close to newspapers and talks."""

RUN = "the run's tokenizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A sample of a corpus: pairs encoded as in training, and the number of all pairs."""

    configuration: Configuration
    """The configuration, with values chosen for settings that were left open."""
    examples: Examples
    """Random encoded pairs."""
    longest: Examples
    """The longest pairs that were found, longest first; these pairs take the most memory."""
    source_vocabulary: int
    target_vocabulary: int
    pairs: int
    """Number of training pairs; 0 = unknown."""
    valid_pairs: int
    """Number of validation pairs; 0 = unknown or none."""
    too_long: float
    """Share of the pairs longer than `data.max_length`."""
    origin: str
    """A description of where the sentence lengths come from."""


def read_sample(configuration: Configuration, *, most_pairs: int = READ_PAIRS) -> Sample:
    """Return a sample of a configuration's corpus or, if the corpus is missing, random sentences of typical lengths.

    Reading stops after the block with pair number `most_pairs`, or after READ_SECONDS.

    Raises:
        DataError: the corpus cannot be read, or some of its files are missing.
        ConfigError: the corpus is missing, and the configuration leaves settings open that are chosen from the corpus.
    """
    if configuration.data.task:
        return _of_task(configuration)
    data = configuration.data
    try:
        corpus = corpus_for(data, "train")
    except DataError as error:
        if data.directory:
            raise
        return _typical(configuration, str(error).removesuffix(": correct the path"))
    assert corpus is not None  # without a built-in task, the training files are required
    reading = _Reading(corpus, most_pairs)
    if not reading.pairs:
        raise DataError(f"{corpus.names}: expected pairs with text on both sides, got none; choose another file")
    if valid := corpus_for(data, "valid"):
        lines = sum(block.lines for block in PairReader(valid))
        return _encoded(configuration, reading.pairs, reading.count, lines, reading.whole)
    held_out = min(data.valid_lines, reading.count // 10)
    return _encoded(configuration, reading.pairs, reading.count - held_out, held_out, reading.whole)


def _of_task(configuration: Configuration) -> Sample:
    name = configuration.data.task
    if name not in TASKS:
        raise ConfigError(f"data.task: expected one of {', '.join(TASKS)}, got {quoted(name)}")
    splits = TASKS[name](configuration.run.seed).splits
    pairs = [(one.source, one.target) for one in splits["train"]]
    return _encoded(configuration, pairs, len(pairs), len(splits["valid"]), whole=True)


class _Reading:
    """The beginning of a corpus, or the whole corpus.

    `pairs` are the pairs with text on both sides, and `count` is the estimated number of such pairs in the corpus.
    """

    def __init__(self, corpus: Corpus, most_pairs: int) -> None:
        self._read, lines = 0, 0
        self.pairs: list[tuple[str, str]] = []
        self.whole = True
        begun = time.perf_counter()
        for block in (reader := PairReader(corpus, self._watch)):
            lines += block.lines
            self.pairs += _texts(block.source, block.target)
            if lines >= most_pairs or time.perf_counter() - begun > READ_SECONDS:
                self.whole = False
                break
        if self.whole:
            reader.check()
        stored = sum(map(stored_bytes, (*corpus.source, *corpus.target)))
        share = 1.0 if self.whole or not self._read else max(stored / self._read, 1.0)
        self.count = round(len(self.pairs) * share)

    def _watch(self, done: int) -> None:
        self._read = done


def _texts(source: bytes, target: bytes) -> Iterator[tuple[str, str]]:
    sides = (text.decode(errors="replace").split("\n")[:-1] for text in (source, target))
    return ((one, other) for one, other in zip(*sides, strict=True) if one.strip() and other.strip())


def _encoded(configuration: Configuration, pairs: TextPairs, count: int, valid_pairs: int, whole: bool) -> Sample:
    """Return the sample of these pairs, encoded by the run's tokenizers or by newly trained tokenizers."""
    configuration = fit(configuration, count, pairs)
    chosen = random.Random(configuration.run.seed).sample(pairs, min(SAMPLED, len(pairs)))
    source, target, origin = _tokenizers(configuration, pairs, chosen)
    limit = configuration.data.max_length
    examples, too_long = Examples.encode(chosen, source, target, max_length=limit)
    longest, _ = Examples.encode(
        nlargest(LONGEST_PAIRS, pairs, key=lambda pair: max(map(len, pair))), source, target, max_length=limit
    )
    exact = whole and (origin == RUN or len(chosen) == len(pairs))
    return Sample(
        configuration=configuration,
        examples=examples,
        longest=_sorted(longest if len(longest) else examples),
        source_vocabulary=_size(source, configuration, whole, exact),
        target_vocabulary=_size(target, configuration, whole, exact),
        pairs=round(count * (1 - len(too_long) / len(chosen))),
        valid_pairs=valid_pairs,
        too_long=len(too_long) / len(chosen),
        origin=f"{min(len(chosen), count):,} of {'' if whole else 'about '}{count:,} pairs, encoded by {origin}",
    )


def _tokenizers(configuration: Configuration, pairs: TextPairs, chosen: TextPairs) -> tuple[Tokenizer, Tokenizer, str]:
    """Return source and target tokenizers for the sample, and a description of their origin."""
    folder = Path(configuration.run.directory or ".")
    if (folder / CONFIG).exists() and (folder / TOKENIZER).exists():
        there = Bundle.load(folder)
        if there.configuration.tokenizer == configuration.tokenizer:
            return there.source_tokenizer, there.target_tokenizer, RUN
    subwords = configuration.tokenizer.has_subwords
    used = chosen if subwords else pairs  # learning subwords from all pairs could take minutes
    source, target = train_tokenizers(
        [source for source, _ in used], [target for _, target in used], configuration.tokenizer
    )
    return source, target, "a tokenizer trained on them" if subwords else "the configuration's tokenizer"


def _size(tokenizer: Tokenizer, configuration: Configuration, whole: bool, exact: bool) -> int:
    """Return the size of the vocabulary: at least the configured size if only a part of the corpus was read."""
    kind = TOKENIZER_KINDS[tokenizer.kind]
    grows = kind.subwords or (kind.open_ended and not whole)
    return max(len(tokenizer), configuration.tokenizer.vocab_size) if grows and not exact else len(tokenizer)


def _typical(configuration: Configuration, reason: str) -> Sample:
    """Return a sample of random sentences of typical lengths."""
    if is_open(configuration):
        raise ConfigError(
            f"{reason}; the configuration leaves settings open that are chosen from the corpus: give the corpus's "
            "folder with --data, or set all of tokenizer.kind, tokenizer.vocab_size, tokenizer.sampling, "
            "model.preset, training.batch_tokens, training.warmup, training.r_drop, training.optimiser and "
            "training.metric (`glassformer recipes` shows complete configurations)"
        )
    size, limit = configuration.tokenizer.vocab_size, configuration.data.max_length
    chance = np.random.default_rng(configuration.run.seed)
    lengths = chance.lognormal(np.log(TYPICAL) - SPREAD**2 / 2, SPREAD, SAMPLED)
    both = lengths, lengths * chance.lognormal(0, SPREAD / 4, SAMPLED)
    source, target = (
        [np.append(chance.integers(len(SPECIALS), size, int(n) - 1), EOS_ID) for n in side.clip(2, limit)]
        for side in both
    )
    examples = Examples(source=source, target=target)
    return Sample(
        configuration=configuration,
        examples=examples,
        longest=_sorted(examples),
        source_vocabulary=size,
        target_vocabulary=size,
        pairs=0,
        valid_pairs=0,
        too_long=0.0,
        origin=f"{reason}: assuming sentences of {TYPICAL} tokens on average (--data names the corpus's folder)",
    )


def _sorted(examples: Examples) -> Examples:
    """Return the examples, longest first."""
    pairs = sorted(zip(examples.source, examples.target, strict=True), key=lambda pair: -max(map(len, pair)))
    return Examples(source=[source for source, _ in pairs], target=[target for _, target in pairs])
