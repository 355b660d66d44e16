"""Targets from right to left: texts keep their order, ids are reversed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import VocabularyError
from glassformer.text.links import target_words
from glassformer.text.reversal import ReversedTokenizer, forward_of, from_right_to_left
from glassformer.text.tokenizer import (
    TOKENIZER_KINDS,
    SubwordTokenizer,
    Tokenizer,
    TokenizerConfig,
    load_tokenizers,
    save_tokenizers,
    train_tokenizers,
)

TRAINABLE = [kind for kind, row in TOKENIZER_KINDS.items() if row.trainable]
LINES = ["the black cat didn't sleep", "the brown dog slept", "a cat, a dog", "l'animal n'a pas dormi"]
TOKENIZERS = {kind: train_tokenizers(LINES, LINES, TokenizerConfig(kind=kind, vocab_size=200))[0] for kind in TRAINABLE}
texts = st.lists(st.sampled_from(["the", "cat", "dog", "didn't", "a,", "slept", "zzz", "l'animal"]), max_size=6).map(
    " ".join
)
each_kind = pytest.mark.parametrize("kind", TRAINABLE)


def backwards(kind: str) -> ReversedTokenizer:
    return from_right_to_left(TOKENIZERS[kind])


@each_kind
@given(text=texts)
def test_ids_and_tokens_are_reversed_and_texts_are_not(kind, text):
    forward, back = TOKENIZERS[kind], backwards(kind)
    ids = back.encode(text)
    assert ids == forward.encode(text)[::-1] == back.encode_all([text])[0]
    assert back.tokens(ids) == forward.tokens(ids)
    assert back.decode([*ids, back.eos_id]) == forward.decode(ids[::-1]) == back.decode_all([ids])[0]
    assert back.split(text) == forward.split(text)[::-1]
    assert back.join(back.split(text)) == forward.join(forward.split(text))


@each_kind
def test_it_is_a_tokenizer_with_the_same_vocabulary(kind):
    forward, back = TOKENIZERS[kind], backwards(kind)
    assert isinstance(back, Tokenizer)
    for name in ("kind", "pad_id", "bos_id", "eos_id", "unk_id"):
        assert getattr(back, name) == getattr(forward, name)
    assert len(back) == len(forward)
    assert isinstance(back, SubwordTokenizer) == isinstance(forward, SubwordTokenizer)


@pytest.mark.parametrize("kind", [kind for kind in TRAINABLE if TOKENIZER_KINDS[kind].subwords])
def test_texts_are_cut_at_random_in_reverse(kind):
    forward, back = TOKENIZERS[kind], backwards(kind)
    cuts = forward.resampled(LINES, 0.2, 7)
    assert len({tuple(cut) for seed in range(9) for cut in forward.resampled(LINES, 0.2, seed)}) > len(LINES)
    assert back.resampled(LINES, 0.2, 7) == [ids[::-1] for ids in cuts]


@each_kind
def test_the_tokenizer_of_the_normal_order_is_stored(kind, tmp_path):
    forward, back = TOKENIZERS[kind], backwards(kind)
    save_tokenizers(tmp_path, forward, back)
    source, target = load_tokenizers(tmp_path)
    assert source is target  # source and target still share one vocabulary
    assert target.encode(LINES[0]) == forward.encode(LINES[0])
    assert forward_of(back) is forward is forward_of(forward)


@each_kind
@given(text=texts)
def test_each_token_belongs_to_the_same_word_in_both_orders(kind, text):
    forward, back = TOKENIZERS[kind], backwards(kind)
    ids = [*back.encode(text), back.eos_id]
    assert target_words(back, ids) == [*target_words(forward, forward.encode(text))[::-1], range(0)]


@each_kind
def test_the_page_of_the_explorer_refuses_it(kind):
    with pytest.raises(VocabularyError, match=r"data\.reverse_target"):
        backwards(kind).to_dict()
