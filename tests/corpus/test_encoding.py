import os

import numpy as np
import pytest

from glassformer.corpus import encoding
from glassformer.corpus.batching import Examples
from glassformer.corpus.encoding import PairEncoder, encode
from glassformer.corpus.kept_pairs import KeptBlock
from glassformer.corpus.shards import Encoded
from glassformer.system.machine import cores
from glassformer.text.tokenizer import TOKENIZER_KINDS, TokenizerConfig, train_tokenizers

TRAINABLE = [kind for kind, row in TOKENIZER_KINDS.items() if row.trainable]
SOURCE = [
    "the black cat didn't sleep",
    "",
    "the brown  dog slept",
    "a cat, a\u00a0dog",
    "Щ▁the cat",
    "the dog's dog " * 9,
]
TARGET = ["le chat noir", "le chien", "n'a pas dormi", "un chat, un chien", "", "\u2028"]


def tokenizers_of(kind):
    return train_tokenizers(SOURCE, TARGET, TokenizerConfig(kind=kind, vocab_size=150, joint=kind == "bpe"))


def lists(encoded: Encoded):
    examples = encoded.examples()
    return [(source.tolist(), target.tolist()) for source, target in zip(examples.source, examples.target, strict=True)]


def expected(source, target, tokenizers, max_length: int):
    examples, _ = Examples.encode(zip(source, target, strict=True), *tokenizers, max_length=max_length)
    return [(one.tolist(), other.tolist()) for one, other in zip(examples.source, examples.target, strict=True)]


@pytest.mark.parametrize("kind", TRAINABLE)
@pytest.mark.parametrize("max_length", [1, 9, 23, 1000])
def test_many_pairs_are_encoded_like_single_pairs(kind, max_length: int) -> None:
    tokenizers = tokenizers_of(kind)
    encoded, too_long = encode((SOURCE, TARGET), *tokenizers, max_length)
    pairs = expected(SOURCE, TARGET, tokenizers, max_length)
    assert lists(encoded) == pairs
    assert too_long == len(SOURCE) - len(pairs)
    assert encoded.source.dtype == np.uint16


def test_no_pairs_give_no_examples() -> None:
    encoded, too_long = encode(([], []), *tokenizers_of("words"), 10)
    assert (lists(encoded), too_long, encoded.pairs) == ([], 0, 0)


@pytest.mark.parametrize("at_once", [2, 7, 1000])
def test_the_pairs_of_a_block_are_encoded_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(encoding, "AT_ONCE", at_once)
    tokenizers, pairs = tokenizers_of("unigram"), list(zip(SOURCE, [*TARGET, "chat"][: len(SOURCE)], strict=True))
    block = KeptBlock.of(pairs).only(np.array([0, 2, 3, 5]))
    encoded, too_long = PairEncoder(*tokenizers, 30)(block)
    kept = [pairs[place] for place in (0, 2, 3, 5)]
    assert lists(encoded) == expected(*zip(*kept, strict=True), tokenizers, 30)
    assert too_long == 4 - encoded.pairs == 1


def test_a_block_without_kept_pairs_gives_no_examples() -> None:
    nothing = KeptBlock.of([("a cat", "un chat")]).only(np.zeros(0, np.int64))
    encoded, too_long = PairEncoder(*tokenizers_of("unigram"), 30)(nothing)
    assert (encoded.pairs, too_long) == (0, 0)


def test_the_number_of_cores_is_positive() -> None:
    assert 1 <= cores() <= os.cpu_count()
