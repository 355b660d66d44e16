"""The kept pairs of a corpus, in blocks of any size."""

from itertools import compress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glassformer.corpus import files
from glassformer.corpus.kept_pairs import KeptBlock, PairsWithSources, kept_blocks, kept_pairs, only
from glassformer.corpus.readers import Corpus

PAIRS = [(f"source {number % 7}" * (number % 3), f"target\u2028 {number}") for number in range(60)]


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    """Return a corpus that is read in blocks of about five pairs."""
    monkeypatch.setattr(files, "READ_BYTES", 100)
    (tmp_path / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    return Corpus.of("pairs.tsv", directory=str(tmp_path))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.lists(st.booleans(), min_size=60, max_size=60), chosen=st.data())
def test_blocks_have_the_kept_pairs_and_those_chosen_among_them(corpus: Corpus, kept, chosen) -> None:
    expected = list(compress(PAIRS, kept))
    bits = np.packbits(kept)
    assert list(kept_pairs(corpus, bits)) == expected
    blocks = list(kept_blocks(corpus, bits))
    assert len(blocks) > 5
    assert sum(block.pairs for block in blocks) == len(expected)
    places = np.array(sorted(chosen.draw(st.sets(st.integers(0, max(len(expected) - 1, 0))))), np.int64)
    places = places[places < len(expected)]
    some = list(only(blocks, places))
    assert all(block.pairs for block in some)
    assert [pair for block in some for pair in zip(*block.texts(), strict=True)] == [expected[one] for one in places]


def test_pairs_are_found_by_their_sources(corpus: Corpus) -> None:
    find = PairsWithSources(frozenset({"source 3"}))
    kept = [number for number in range(60) if number % 2]
    bits = np.packbits([number in kept for number in range(60)])
    found, first = [], 0
    for count, pairs in map(find, kept_blocks(corpus, bits)):
        found += [(first + place, pair) for place, pair in pairs]
        first += count
    assert first == len(kept)
    assert found == [(place, PAIRS[one]) for place, one in enumerate(kept) if PAIRS[one][0] == "source 3"]
    assert found


def test_texts_make_a_block() -> None:
    block = KeptBlock.of(PAIRS)
    assert (block.pairs, list(zip(*block.texts(), strict=True))) == (60, PAIRS)
