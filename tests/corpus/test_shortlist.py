"""Shortlists: candidates by IBM model 1, their file, and CTranslate2's vocabulary map."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.bundle import SHORTLIST
from glassformer.corpus.batching import Examples
from glassformer.corpus.shortlist import MODEL_1_ROUNDS, SUGGESTED, Shortlist
from glassformer.errors import CheckpointError, ConfigError
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers
from word_by_word import pairs

WORDS = {"the": "le", "cat": "chat", "dog": "chien", "sees": "voit", "a": "un", "big": "grand", "Paris": "Paris"}


@pytest.fixture(scope="module")
def tokenizers():
    corpus = pairs(300, 1, 1, 7, WORDS)
    return train_tokenizers(*map(list, zip(*corpus, strict=True)), TokenizerConfig(kind="words", vocab_size=60))


def encoded(tokenizers, corpus):
    return Examples.encode(corpus, *tokenizers, max_length=100)[0]


@pytest.fixture(scope="module")
def shortlist(tokenizers):
    return Shortlist.aligned(encoded(tokenizers, pairs(300, 1, 1, 7, WORDS)), *tokenizers)


def row(shortlist, id):
    return shortlist.candidates[shortlist.ends[id - 1] if id else 0 : shortlist.ends[id]].tolist()


def test_a_word_suggests_its_translation_first_or_after_itself(shortlist, tokenizers):
    source, target = tokenizers
    for word, translation in WORDS.items():
        [id], [wanted] = source.encode(word), target.encode(translation)
        candidates = [one for one in row(shortlist, id) if target.tokens([one]) != [word] or word == translation]
        assert candidates[0] == wanted, word


def translation_probabilities(corpus):
    """Return t(target token | source token) of IBM model 1, by loops over dictionaries. Brown et al. 1993."""
    table = defaultdict(lambda: 1.0)
    for _ in range(MODEL_1_ROUNDS):
        counts, totals = defaultdict(float), defaultdict(float)
        for source, target in corpus:
            for one in target:
                total = sum(table[other, one] for other in (None, *source))
                for other in (None, *source):
                    counts[other, one] += table[other, one] / total
                    totals[other] += table[other, one] / total
        table = {(other, one): count / totals[other] for (other, one), count in counts.items()}
    return table


def test_candidates_stand_in_the_order_of_ibm_model_1(shortlist, tokenizers):
    source, target = tokenizers
    examples = encoded(tokenizers, pairs(300, 1, 1, 7, WORDS))
    ids = [[one.tolist()[:-1] for one in side] for side in (examples.source, examples.target)]
    table = translation_probabilities(list(zip(*ids, strict=True)))
    written = dict(zip(target.tokens(range(len(target))), range(len(target)), strict=True))
    for id, token in enumerate(source.tokens(range(len(source)))):
        candidates = row(shortlist, id)
        own = [written[token]] if token in written else []
        expected = {one for other, one in table if other == id}
        assert candidates[: len(own)] == own
        assert set(candidates) == expected.union(own)
        chances = [table[id, one] for one in candidates[len(own) :]]
        assert all(one >= other - 1e-12 for one, other in pairwise(chances))


def test_the_most_frequent_tokens_come_first(shortlist, tokenizers):
    examples = encoded(tokenizers, pairs(300, 1, 1, 7, WORDS))
    counts = np.bincount(np.concatenate([one[:-1] for one in examples.target]), minlength=len(tokenizers[1]))
    ordered = counts[shortlist.frequent].tolist()
    assert ordered == sorted(ordered, reverse=True)
    assert sorted(shortlist.frequent.tolist()) == [*range(3, len(tokenizers[1]))]


def test_a_source_token_has_few_candidates(tokenizers, monkeypatch):
    monkeypatch.setattr("glassformer.corpus.shortlist.SUGGESTED", 2)
    found = Shortlist.aligned(encoded(tokenizers, pairs(300, 1, 1, 7, WORDS)), *tokenizers)
    assert np.diff(found.ends, prepend=0).max() == 2
    [cat], [chat] = tokenizers[0].encode("cat"), tokenizers[1].encode("chat")
    assert row(found, cat) == [cat, chat]


@given(st.lists(st.integers(0, 10), max_size=9), st.integers(1, 60))
def test_the_candidates_of_a_source_are_the_union_of_its_tokens_candidates(shortlist, source, count):
    expected = {2, 3, *shortlist.frequent[:count].tolist()}.union(*(row(shortlist, id) for id in source))
    assert shortlist.of(source, count, (2, 3)) == tuple(sorted(expected))


def test_a_large_corpus_is_sampled(tokenizers, monkeypatch):
    monkeypatch.setattr("glassformer.corpus.shortlist.MOST_LINKS", 2_000)
    found = Shortlist.aligned(encoded(tokenizers, pairs(2_000, 1, 1, 7, WORDS)), *tokenizers)
    assert len(found.ends) == len(tokenizers[0])
    [cat], [chat] = tokenizers[0].encode("cat"), tokenizers[1].encode("chat")
    assert row(found, cat)[:2] == [cat, chat]  # "cat" itself is a candidate because both languages share the vocabulary


def test_a_file_gives_the_same_shortlist_and_the_same_file_again(shortlist, tokenizers, tmp_path):
    path, again = tmp_path / SHORTLIST, tmp_path / "again"
    shortlist.save(path)
    found = Shortlist.load(path, *map(len, tokenizers))
    for name in ("frequent", "candidates", "ends"):
        assert np.array_equal(getattr(found, name), getattr(shortlist, name))
    found.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_a_missing_file_says_how_to_make_it(tmp_path):
    with pytest.raises(CheckpointError, match=r"does not exist; `glassformer calibrate .* --set decoding.shortlist=N`"):
        Shortlist.load(tmp_path / SHORTLIST, 9, 9)


def test_a_damaged_or_different_file_is_refused(shortlist, tokenizers, tmp_path):
    from safetensors.numpy import save_file

    path, sizes = tmp_path / SHORTLIST, tuple(map(len, tokenizers))
    shortlist.save(path)
    with pytest.raises(CheckpointError, match="expected a shortlist for"):
        Shortlist.load(path, sizes[0] + 1, sizes[1])
    with pytest.raises(CheckpointError, match="expected a shortlist for"):
        Shortlist.load(path, sizes[0], 5)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CheckpointError, match="damaged or cut short"):
        Shortlist.load(path, *sizes)
    parts = {"frequent": shortlist.frequent, "candidates": shortlist.candidates}
    for ends in (shortlist.ends[::-1].copy(), shortlist.ends + 1, shortlist.ends.astype(np.float64)):
        save_file({**parts, "ends": ends}, path, metadata={"format": "glassformer shortlist 1"})
        with pytest.raises(CheckpointError, match="expected a shortlist for"):
            Shortlist.load(path, *sizes)
    save_file({**parts, "ends": shortlist.ends}, path, metadata={"format": "a later one"})
    with pytest.raises(CheckpointError, match="expected a shortlist for"):
        Shortlist.load(path, *sizes)


def test_the_vocabulary_map_has_the_candidates_in_words(shortlist, tokenizers):
    tokens = [one.tokens(range(len(one))) for one in tokenizers]
    first, *lines = shortlist.lines(3, *tokens)
    assert first == "\t" + " ".join(tokenizers[1].tokens(shortlist.frequent[:3].tolist()))
    assert [line[:10] for line in lines if line.startswith("the\t")] == ["the\tthe le"]
    assert all(1 <= len(line.split("\t")[1].split(" ")) <= SUGGESTED for line in lines)


def test_a_vocabulary_map_cannot_have_tokens_with_spaces(shortlist):
    with pytest.raises(ConfigError, match=r"cannot express the token 'a b', got 3; set 0, or use the engine torch"):
        list(shortlist.lines(3, ["a b"], ["c"]))
