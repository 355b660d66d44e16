import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.batching import Examples, Position, stream
from glassformer.corpus.resampling import Resampler
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers

SOURCE = ["the black cat sat on the couch", "the brown dog slept on the rug", "a cat and a dog"] * 3
TARGET = ["le chat noir était assis sur le canapé", "le chien marron dormait sur le tapis", "un chat et un chien"] * 3
AMOUNTS = {"bpe": 0.3, "unigram": 0.2}


def tokenizers_of(kind, **settings):
    return train_tokenizers(SOURCE, TARGET, TokenizerConfig(**{"kind": kind, "vocab_size": 90, **settings}))


def examples_of(tokenizers, source=SOURCE, target=TARGET) -> Examples:
    examples, _ = Examples.encode(zip(source, target, strict=True), *tokenizers, max_length=1000)
    return examples


def resampler_of(tokenizers, amount: float, max_length: int = 1000) -> Resampler:
    return Resampler(*tokenizers, amount=amount, max_length=max_length)


def lists(sides):
    return [[ids.tolist() for ids in side] for side in sides]


@pytest.fixture(params=AMOUNTS)
def case(request: pytest.FixtureRequest):
    """Return tokenizers of a kind, examples, and the strength of the sampling."""
    tokenizers = tokenizers_of(request.param)
    return tokenizers, examples_of(tokenizers), AMOUNTS[request.param]


def test_a_new_segmentation_spells_the_same_text_and_ends_with_eos(case) -> None:
    tokenizers, examples, amount = case
    sides = lists(resampler_of(tokenizers, amount)(examples.source, examples.target, 5))
    assert sides != lists((examples.source, examples.target))
    for tokenizer, side, texts in zip(tokenizers, sides, (SOURCE, TARGET), strict=True):
        assert [tokenizer.decode(ids[:-1]) for ids in side] == texts
        assert all(ids[-1] == tokenizer.eos_id and min(ids[:-1]) > tokenizer.unk_id for ids in side)


def test_a_seed_decides_the_segmentations_in_every_thread(case) -> None:
    tokenizers, examples, amount = case
    cut = resampler_of(tokenizers, amount)
    first, second, other = (lists(cut(examples.source, examples.target, seed)) for seed in (5, 5, 6))
    elsewhere = []
    thread = threading.Thread(target=lambda: elsewhere.append(lists(cut(examples.source, examples.target, 5))))
    thread.start()
    thread.join()
    assert first == second == elsewhere[0]
    assert first != other


def test_the_segmentations_of_a_sentence_differ(case) -> None:
    tokenizers, examples, amount = case
    source, _ = lists(resampler_of(tokenizers, amount)(examples.source, examples.target, 1))
    assert len({tuple(ids) for ids in source[::3]}) > 1


@given(limit=st.integers(1, 30), seed=st.integers(0, 2**32 - 1))
def test_a_segmentation_that_is_too_long_is_not_used(limit: int, seed: int) -> None:
    tokenizers = tokenizers_of("bpe")
    examples = examples_of(tokenizers)
    source, target = resampler_of(tokenizers, 0.5, limit)(examples.source, examples.target, seed)
    for before, after in [*zip(examples.source, source, strict=True), *zip(examples.target, target, strict=True)]:
        assert len(after) <= limit or after is before


def test_a_sentence_with_an_unknown_character_is_not_resampled(case) -> None:
    tokenizers, _, amount = case
    examples = examples_of(tokenizers, ["the Щ cat", "the cat"], ["le chat Щ", "le chat"])
    cut = resampler_of(tokenizers, amount)
    source, target = zip(*(lists(cut(examples.source, examples.target, seed)) for seed in range(9)), strict=True)
    assert {tuple(ids) for ids, _ in source} == {tuple(examples.source[0].tolist())}
    assert {tuple(ids) for ids, _ in target} == {tuple(examples.target[0].tolist())}
    assert len({tuple(ids) for _, ids in source}) > 1


def test_symbols_stay_whole_and_bytes_are_decoded(case) -> None:
    kind = case[0][0].kind
    tokenizers = tokenizers_of(kind, vocab_size=360, symbols=("<de>",), byte_fallback=True)
    text = "<de> the Щ cat"
    examples = examples_of(tokenizers, [text] * 20, [text] * 20)
    source, _ = resampler_of(tokenizers, 0.5)(examples.source, examples.target, 3)
    assert {tokenizers[0].decode(ids[:-1].tolist()) for ids in source} == {text}
    assert all("<de>" in tokenizers[0].tokens(ids.tolist()) for ids in source)
    assert len({tuple(ids.tolist()) for ids in source}) > 1


def test_sides_without_subwords_are_not_resampled() -> None:
    config = TokenizerConfig(joint=False, kind="characters", target_kind="bpe", vocab_size=90)
    tokenizers = train_tokenizers(SOURCE, TARGET, config)
    examples = examples_of(tokenizers)
    source, target = resampler_of(tokenizers, 0.5)(examples.source, examples.target, 3)
    assert source is examples.source
    assert lists([target]) != lists([examples.target])


def test_a_resampled_stream_resumes_exactly(case) -> None:
    tokenizers, examples, amount = case
    cut = resampler_of(tokenizers, amount)
    whole = []
    for batch, after in stream(examples, 60, seed=1, resample=cut):
        whole.append((batch, after))
        if after.epoch == 2:
            break
    for place in range(len(whole)):
        start = whole[place - 1][1] if place else Position()
        batch, after = next(stream(examples, 60, seed=1, start=start, resample=cut))
        assert np.array_equal(batch.source, whole[place][0].source)
        assert np.array_equal(batch.target_output, whole[place][0].target_output)
        assert after == whole[place][1]


def test_more_sampling_makes_more_tokens() -> None:
    tokenizers = tokenizers_of("bpe")
    examples = examples_of(tokenizers)
    counts = [
        sum(map(len, resampler_of(tokenizers, amount)(examples.source, examples.target, 1)[0]))
        for amount in (0.0, 0.1, 0.5)
    ]
    assert counts == sorted(counts)
    assert counts[0] == sum(map(len, examples.source)) < counts[2]
