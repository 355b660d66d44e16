"""The pairs that each epoch adds from another corpus."""

import numpy as np
import pytest

from glassformer.corpus import batching
from glassformer.corpus.batching import Examples, Position, stream
from glassformer.corpus.mixture import MixedExamples, drawn


def sentences(first, count):
    return [np.array([first + number, 2], np.int32) for number in range(count)]


def mixture(new, old, share):
    both = sentences(10, new), sentences(10_000, old)
    other = Examples(source=both[1], target=both[1])
    return MixedExamples(source=both[0], target=both[0], other=other, share=share)


def firsts(batches):
    return np.concatenate([batch.source[:, 0] for batch in batches])


@pytest.mark.parametrize(("new", "old", "share"), [(70, 200, 0.3), (97, 11, 0.5), (13, 5, 0.0), (13, 5, 0.9)])
def test_each_epoch_has_all_new_pairs_and_the_share_of_old_ones(new, old, share):
    examples, batches, epochs = mixture(new, old, share), [], []
    for batch, after in stream(examples, 50, seed=3):
        batches.append(batch)
        if after.epoch > len(epochs):
            epochs.append(firsts(batches))
            batches = []
        if len(epochs) == 3:
            break
    for ids in epochs:
        assert sorted(ids[ids < 10_000]) == list(range(10, 10 + new))
        assert abs((ids >= 10_000).sum() - share * len(ids)) <= 0.5
        counts = np.bincount(ids[ids >= 10_000] - 10_000, minlength=old)
        assert counts.max() - counts.min() <= 1
    if share > 0 and old > new:
        assert set(epochs[0]) != set(epochs[1])


@pytest.mark.parametrize("small", [False, True])
def test_a_stream_from_a_later_position_is_the_rest_of_the_stream(monkeypatch, small):
    if small:  # each epoch then has several windows
        monkeypatch.setattr(batching, "SORTED_PAIRS", 32)
        monkeypatch.setattr(batching, "BLOCK", 8)
    examples, seen = mixture(70, 90, 0.3), []
    for batch, after in stream(examples, 50, seed=3):
        seen.append((batch.source, after))
        if after >= Position(3):
            break
    for place in range(0, len(seen) - 1, 3):
        coming = stream(examples, 50, seed=3, start=seen[place][1])
        for (source, after), (batch, position) in zip(seen[place + 1 :], coming, strict=False):
            assert np.array_equal(batch.source, source)
            assert position == after


def test_the_draw_depends_on_seed_and_epoch_alone():
    assert np.array_equal(drawn(100, 30, 1, 2), drawn(100, 30, 1, 2))
    assert not np.array_equal(drawn(100, 30, 1, 2), drawn(100, 30, 1, 3))
    assert not np.array_equal(drawn(100, 30, 1, 2), drawn(100, 30, 2, 2))
