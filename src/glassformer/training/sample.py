"""A sample of a corpus: enough to know how long its sentences are, and how many there are, without preparing it."""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path

import numpy as np

from glassformer.bundle import CONFIG, TOKENIZER, Bundle
from glassformer.errors import ConfigError, DataError
from glassformer.recipes.configuration import Configuration, DataConfig
from glassformer.recipes.defaults import fit, is_open
from glassformer.tasks import TASKS
from glassformer.text.batching import Examples
from glassformer.text.corpus import Corpus, PairReader
from glassformer.text.files import stored_bytes
from glassformer.text.tokenizer import Tokenizer, train_tokenizers
from glassformer.text.vocabulary import EOS_ID, SPECIALS

__all__ = ["Sample", "read_sample"]

READ_PAIRS = 300_000
"""So many pairs of a corpus are read, and no more once READ_SECONDS are over."""
READ_SECONDS = 3.0
SAMPLED = 5_000
"""Pairs that are cut into tokens."""
LONGEST = 100
"""Pairs, of all that were read, that are looked at to find the longest."""
TYPICAL, SPREAD = 25, 0.6
"""Tokens of a sentence, and how much they vary, where nothing is known: newspapers and talks have about that."""

SUBWORDS = {"bpe", "unigram"}
RUN = "the run's tokenizer"

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Sentence pairs as a training will see them, and how many there will be."""

    configuration: Configuration
    """With all chosen that it left open."""
    examples: Examples
    """Some pairs, cut into tokens."""
    longest: Examples
    """The longest pairs that were found, the longest first: they take the most memory."""
    source_vocabulary: int
    target_vocabulary: int
    pairs: int
    """Training pairs in all; 0 = nobody knows."""
    valid_pairs: int
    """Validation pairs; 0 = nobody knows, or there are none."""
    too_long: float
    """The share of pairs that are longer than `data.max_length`."""
    origin: str
    """What the lengths are taken from, in words."""


def read_sample(configuration: Configuration) -> Sample:
    """Return a sample of a configuration's corpus; where the corpus is not there, one of typical lengths.

    Raises:
        DataError: the corpus cannot be read, or lacks some of its files.
        ConfigError: it is not there, and the configuration leaves open what only it could decide.
    """
    if configuration.data.task:
        return _of_task(configuration)
    data = configuration.data
    try:
        corpus = Corpus.of(data.source, data.target, data.directory, data.source_column, data.target_column)
    except DataError as error:
        if data.directory:
            raise
        return _typical(configuration, str(error).removesuffix(": correct the path"))
    reading = _Reading(corpus)
    if not reading.pairs:
        raise DataError(f"{corpus.names}: no pair with text on both sides: is it the right file?")
    if data.valid_source:
        return _cut(configuration, reading.pairs, reading.count, _lines(data), reading.whole)
    held_out = min(data.valid_lines, reading.count // 10)
    return _cut(configuration, reading.pairs, reading.count - held_out, held_out, reading.whole)


def _of_task(configuration: Configuration) -> Sample:
    name = configuration.data.task
    if name not in TASKS:
        raise ConfigError(f"data.task = {name!r}: expected one of {', '.join(TASKS)}")
    splits = TASKS[name](configuration.run.seed).splits
    pairs = [(one.source, one.target) for one in splits["train"]]
    return _cut(configuration, pairs, len(pairs), len(splits["valid"]), whole=True)


class _Reading:
    """The beginning of a corpus, or all of it: `pairs` with text on both sides, and the `count` of all there are."""

    def __init__(self, corpus: Corpus) -> None:
        self._read, lines = 0, 0
        self.pairs: list[tuple[str, str]] = []
        self.whole = True
        begun = time.perf_counter()
        for block in (reader := PairReader(corpus, self._watch)):
            lines += block.lines
            self.pairs += _texts(block.source, block.target)
            if lines >= READ_PAIRS or time.perf_counter() - begun > READ_SECONDS:
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


def _lines(data: DataConfig) -> int:
    """Return how many validation pairs there are."""
    corpus = Corpus.of(data.valid_source, data.valid_target, data.directory, data.source_column, data.target_column)
    return sum(block.lines for block in PairReader(corpus))


def _cut(configuration: Configuration, pairs: Pairs, count: int, valid_pairs: int, whole: bool) -> Sample:
    """Return the sample of pairs that were read, cut by the run's tokenizers or by such as they allow to train."""
    configuration = fit(configuration, count, pairs)
    chosen = random.Random(configuration.run.seed).sample(pairs, min(SAMPLED, len(pairs)))
    source, target, origin = _tokenizers(configuration, pairs, chosen)
    limit = configuration.data.max_length
    examples, too_long = Examples.encode(chosen, source, target, max_length=limit)
    longest, _ = Examples.encode(
        nlargest(LONGEST, pairs, key=lambda pair: max(map(len, pair))), source, target, max_length=limit
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
        origin=f"{min(len(chosen), count):,} of {'' if whole else 'about '}{count:,} pairs, cut by {origin}",
    )


def _tokenizers(configuration: Configuration, pairs: Pairs, chosen: Pairs) -> tuple[Tokenizer, Tokenizer, str]:
    """Return tokenizers for the sample, and where they come from."""
    folder = Path(configuration.run.directory or ".")
    if (folder / CONFIG).exists() and (folder / TOKENIZER).exists():
        there = Bundle.load(folder)
        if there.configuration.tokenizer == configuration.tokenizer:
            return there.source_tokenizer, there.target_tokenizer, RUN
    subwords = bool(SUBWORDS & set(configuration.tokenizer.kinds))
    used = chosen if subwords else pairs  # to learn subwords of all pairs could take minutes
    source, target = train_tokenizers(
        [source for source, _ in used], [target for _, target in used], configuration.tokenizer
    )
    return source, target, "a tokenizer trained on these" if subwords else "the configuration's tokenizer"


def _size(tokenizer: Tokenizer, configuration: Configuration, whole: bool, exact: bool) -> int:
    """Return how large the vocabulary will be: where not all has been seen, as large as was asked for."""
    grows = tokenizer.kind in SUBWORDS or (tokenizer.kind == "words" and not whole)
    return max(len(tokenizer), configuration.tokenizer.vocab_size) if grows and not exact else len(tokenizer)


def _typical(configuration: Configuration, reason: str) -> Sample:
    """Return random sentences, as long as sentences are."""
    if is_open(configuration):
        raise ConfigError(
            f"{reason}; and by the corpus is chosen what the configuration leaves open: give its folder by --data, or "
            "set all of tokenizer.kind, tokenizer.vocab_size, model.preset, training.batch_tokens, training.warmup "
            "and training.metric (`glassformer recipes` shows complete ones)"
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
        origin=f"{reason}: sentences of {TYPICAL} tokens on average are assumed (--data names the corpus's folder)",
    )


def _sorted(examples: Examples) -> Examples:
    """Return the examples by length, the longest first."""
    pairs = sorted(zip(examples.source, examples.target, strict=True), key=lambda pair: -max(map(len, pair)))
    return Examples(source=[source for source, _ in pairs], target=[target for _, target in pairs])
