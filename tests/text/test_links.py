"""Links: words of both texts, chosen by the attention of their tokens."""

import math
from itertools import pairwise, product
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.links import (
    JUMP,
    LEAST,
    SHARED,
    Link,
    link_words,
    membership,
    source_words,
    target_words,
    word_path,
    word_spans,
)
from glassformer.text.normalisation import normalise
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers
from glassformer.text.word_edges import is_unspaced
from profiles import scaled

LINES = ["the animal didn't cross the street.", "l'animal n'a pas traversé « la rue »."]
KINDS = ("words", "characters", "bpe", "unigram")
TOKENIZERS = {
    kind: train_tokenizers(LINES * 20, [], TokenizerConfig(kind=kind, vocab_size=60 if kind != "words" else 8000))[0]
    for kind in KINDS
}
texts = st.text("the animl\u00a0▁\t.'’«☃�ü", max_size=40)


@given(st.text(max_size=50))
def test_a_word_is_what_normalisation_leaves_between_spaces(text):
    text = "".join(one for one in text if not is_unspaced(one))
    assert [text[begin:end] for begin, end in word_spans(text)] == normalise(text).split()


UNSPACED = st.text("猫在（「【(。，」!々カーっょเแมวที่น้ํขា២្កka1 ▁\u3000%{}<b/", max_size=20)


@given(UNSPACED)
@scaled(300)
def test_words_of_scripts_without_spaces_hold_all_characters_and_letters_of_one_kind(text):
    words = [text[begin:end] for begin, end in word_spans(text)]
    assert "".join(words) == "".join(normalise(text).split())
    assert all(len({is_unspaced(one) for one in word if one.isalnum()}) < 2 for word in words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("黑猫睡觉。", "黑 猫 睡 觉。"),
        ("他说：“猫（黑）”。", "他 说： “猫 （黑）”。"),
        ("用Python 3编程，很好", "用 Python 3 编 程， 很 好"),
        ("文件{name}已删除", "文 件 {name} 已 删 除"),
        ("人々はコーヒーを待っている。", "人々 は コーヒー を 待っ て い る。"),
        ("กีฬาที่ดีเกม", "กี ฬา ที่ ดี เก ม"),
        ("고양이가 잔다.", "고양이가 잔다."),
        ("(a) the cat.", "(a) the cat."),
        ("((((猫", "( (((猫"),
    ],
)
def test_words_of_scripts_without_spaces(text, expected):
    assert [text[begin:end] for begin, end in word_spans(text)] == expected.split()


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts)
@scaled(60)
def test_each_source_token_is_in_the_word_that_it_is_cut_from(kind, text):
    tokens, found = TOKENIZERS[kind].split(text), source_words(TOKENIZERS[kind], text)
    words: dict[int, str] = {}
    for token, some in zip(tokens, found, strict=True):
        letters = token.replace("▁", "")
        assert len(some) == (letters != "")
        for word in some:
            words[word] = words.get(word, "") + letters
    assert [words[word] for word in sorted(words)] == normalise(text).split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", ["\u00ad", "\u200b", "\u2060", "\u202b", "\ufeff"])
def test_invisible_characters_change_no_words_of_tokens_and_stay_in_the_spans(kind, hidden):
    clean, text = (
        "the animal's rue",
        f"{hidden} {hidden}t{hidden}he ani{hidden}mal's{hidden} {hidden}{hidden} {hidden}rue",
    )
    tokenizer, spans = TOKENIZERS[kind], word_spans(text)
    assert tokenizer.split(text) == tokenizer.split(clean)
    visible = [place for place, span in enumerate(spans) if text[slice(*span)].strip(hidden)]
    moved = [[visible[word] for word in some] for some in source_words(tokenizer, clean)]
    assert list(map(list, source_words(tokenizer, text))) == moved
    assert [text[slice(*spans[place])].replace(hidden, "") for place in visible] == clean.split()


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text("ab üç▁'.", max_size=20))
def test_decomposed_letters_change_no_words_of_tokens(kind, text):
    assert source_words(TOKENIZERS[kind], normalize("NFD", text)) == source_words(TOKENIZERS[kind], text)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@scaled(60)
def test_each_target_token_is_in_a_word_of_the_decoded_text(kind, data):
    tokenizer = TOKENIZERS[kind]
    ids = data.draw(st.lists(st.integers(0, len(tokenizer) - 1), max_size=12))
    found = target_words(tokenizer, ids)
    assert len(found) == len(ids)
    words = [word for some in found for word in some]
    assert {*words} == set(range(len(word_spans(tokenizer.decode(ids)))))
    assert words == sorted(words)
    special = {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id}
    assert not any(some for id, some in zip(ids, found, strict=True) if id in special)


OF_UNSPACED = [
    train_tokenizers(
        ["黑猫在地毯上睡觉。", "人々はコーヒーを待っている。", "กีฬาที่ดีเกม น้ำ", "the cat"] * 20,
        [],
        TokenizerConfig(kind=kind, vocab_size=size, byte_fallback=size > 256),
    )[0]
    for kind, size in (("bpe", 400), ("unigram", 400), ("unigram", 70), ("characters", 90))
]


@pytest.mark.parametrize("tokenizer", OF_UNSPACED)
@given(text=UNSPACED | st.text("黑猫在地毯上睡觉人々はコーヒーกีฬาที่ดีเกมน้ำ the", max_size=30))
@scaled(60)
def test_tokens_have_the_words_of_scripts_without_spaces_in_order(tokenizer, text):
    for found, count in (
        (source_words(tokenizer, text), len(word_spans(text))),
        (target_words(tokenizer, ids := tokenizer.encode(text)), len(word_spans(tokenizer.decode(ids)))),
    ):
        words = [word for some in found for word in some]
        assert words == sorted(words)
        assert {*words} in ({*range(count)}, set())
        assert len(words) <= count + len(found)


def test_a_token_has_all_words_of_its_letters():
    tokenizer = OF_UNSPACED[0]
    assert tokenizer.split("黑猫在地毯上睡觉。") == ["▁黑猫在地毯上睡觉", "。"]
    assert source_words(tokenizer, "黑猫在地毯上睡觉。") == [range(8), range(7, 8)]


def each(*words):
    """Return the words of tokens that have letters of one word at most."""
    return [range(0) if word is None else range(word, word + 1) for word in words]


def test_zero_width_spaces_and_invisible_characters_between_letters_of_scripts_without_spaces():
    characters = OF_UNSPACED[-1]
    text = "กี\u200b\u200bฬา\u00ad.\u200bno"
    spans = [text[begin:end] for begin, end in word_spans(text)]
    assert spans == ["กี", "\u200b\u200b", "ฬา", "\u00ad.\u200bno"]
    assert characters.split(text) == [*"กี\u200bฬา.no"]
    assert source_words(characters, text) == each(0, 0, None, 2, 2, 3, 3, 3)


def test_words_of_each_kind():
    text = "didn't  cross ."
    assert source_words(TOKENIZERS["words"], text) == each(0, 0, 1, 2)
    assert source_words(TOKENIZERS["characters"], text) == each(*[0] * 6, None, *[1] * 5, None, 2)


def test_bytes_belong_to_their_word():
    config = TokenizerConfig(kind="bpe", vocab_size=320, byte_fallback=True)
    tokenizer, _ = train_tokenizers(LINES * 20, [], config)
    ids = tokenizer.encode("the ☃☃ animal")
    words = [word for some in target_words(tokenizer, ids) for word in some]
    assert sorted(set(words)) == [0, 1, 2]
    assert source_words(tokenizer, "the ☃☃ animal")[-1] == range(2, 3)


def test_a_word_has_the_sum_of_its_pieces():
    """Neither piece of "cd" has the largest weight, but their sum 0.6 + 0.5 exceeds the 0.8 of "ab"."""
    sums = membership(each(0), 1).T @ np.array([[0.8, 0.6, 0.5]]) @ membership(each(0, 1, 1), 2)
    assert sums.tolist() == [[0.8, pytest.approx(1.1)]]
    assert link_words("ab cd", "x y", each(0, 1, 1), each(0, 1), [[0.4, 0.6, 0.5], [0.8, 0.0, 0.0]]) == (
        Link((3, 5), (0, 1)),
        Link((0, 2), (2, 3)),
    )
    # The target word "xy" gets the sum of its two rows: 0.4 + 0.7 and 0.6 + 0.3. "z" gets the last row.
    assert link_words("ab cd", "xy z", each(0, 1), each(0, 0, 1), [[0.6, 0.4], [0.3, 0.7], [0.9, 0.1]]) == (
        Link((3, 5), (0, 2)),
        Link((0, 2), (3, 4)),
    )


def test_the_end_of_the_source_does_not_count():
    weights = [[0.1, 0.2, 0.7], [0.3, 0.0, 0.7]]
    assert link_words("ab cd", "x y", each(0, 1), each(0, 1), weights) == (Link((3, 5), (0, 1)), Link((0, 2), (2, 3)))
    assert link_words("ab cd", "x", each(0, 1), each(0), [[0.0, 0.0, 1.0]]) == ()


def test_links_are_in_the_order_of_the_target():
    weights = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    links = link_words("ab cd", "x y", each(0, 1), each(0, 1, None), weights)
    assert links == (Link((3, 5), (0, 1)), Link((0, 2), (2, 3)))


def test_each_word_of_both_texts_has_a_link():
    """No word attends most to "b" and "d", but their positions decide their links."""
    weights = [[0.8, 0.2, 0.0, 0.0], [0.0, 0.1, 0.8, 0.1]]
    links = link_words("a b c d", "x y", each(0, 1, 2, 3), each(0, 1), weights)
    assert {link.source for link in links} == {*word_spans("a b c d")}
    assert {link.target for link in links} == {*word_spans("x y")}
    assert {Link((0, 1), (0, 1)), Link((4, 5), (2, 3)), Link((6, 7), (2, 3))} <= {*links}


def test_a_word_whose_attention_is_elsewhere_is_linked_by_its_place():
    """In a passive, the verb decides the forms around it: "a été peint par" attends to the words 1, 1, 0, 2."""
    sums = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    assert word_path(sums) == [0, 1, 1, 2]


BLACK_CAT = [[0.2, 0.4, 0.3, 0.1], [0.0, 0.1, 0.1, 0.8]]


def test_words_with_the_same_tokens_are_linked_together():
    """The tokens 黑猫 and 睡觉 stand for two words each."""
    links = link_words("the black cat sleeps", "黑猫睡觉", each(0, 1, 2, 3), [range(2), range(2, 4)], BLACK_CAT)
    assert {link for link in links if link.target[0] >= 2} == {Link((14, 20), (2, 3)), Link((14, 20), (3, 4))}
    assert {link.source for link in links} == {*word_spans("the black cat sleeps")}
    turned = np.array(BLACK_CAT).T.tolist()
    back = link_words("黑猫睡觉", "the black cat sleeps", [range(2), range(2, 4)], each(0, 1, 2, 3), turned)
    assert {link.source for link in back if link.target == (14, 20)} == {(2, 3), (3, 4)}
    assert {link.target for link in back} == {*word_spans("the black cat sleeps")}


@given(data=st.data())
@scaled(60)
def test_the_path_is_the_most_probable_of_all_paths(data):
    """Each path of a small matrix is scored by the formula."""
    rows, columns = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    weights = st.lists(st.floats(0, 1, width=32), min_size=columns, max_size=columns)
    sums = np.array(data.draw(st.lists(weights, min_size=rows, max_size=rows)))

    def score(path):
        shares = [sums[place, word] / (sums[:, word].sum() + SHARED) + LEAST for place, word in enumerate(path)]
        return math.prod(shares) / math.prod((1 + abs(word - before - 1)) ** JUMP for before, word in pairwise(path))

    best = max(map(score, product(range(columns), repeat=rows)))
    assert score(word_path(sums)) == pytest.approx(best, rel=1e-9)  # several paths may have the same probability
