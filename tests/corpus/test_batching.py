import time
from collections.abc import Sequence
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus import batching
from glassformer.corpus.batching import Batch, Examples, Position, batches, make_batch, plan_batches, stream
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers

lengths = st.lists(st.tuples(st.integers(1, 13), st.integers(1, 17)), max_size=60)
budgets = st.integers(1, 100)


def examples_of(sizes) -> Examples:
    """Return examples of these lengths, whose ids encode their example and position."""
    source, target = (
        [np.append(np.arange(4, pair[side] + 3) + 100 * row, 2).astype(np.int32) for row, pair in enumerate(sizes)]
        for side in (0, 1)
    )
    return Examples(source=source, target=target)


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make windows of 12 pairs from blocks of 3 pairs, so that a corpus of some dozens of pairs has several windows."""
    monkeypatch.setattr(batching, "SORTED_PAIRS", 12)
    monkeypatch.setattr(batching, "BLOCK", 3)


class Watched(Sequence):
    """Sentences that record which of them were read."""

    def __init__(self, sentences) -> None:
        self.sentences, self.seen = sentences, set()

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, row):
        self.seen |= set(range(*row.indices(len(self)))) if isinstance(row, slice) else {int(row)}
        return self.sentences[row]


def equal(a: Batch, b: Batch) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("source", "target_input", "target_output", "rows")
    )


@given(sizes=lengths, budget=budgets, seed=st.integers(0, 7), epoch=st.integers(0, 3))
def test_every_example_comes_once_per_epoch_within_the_budget(sizes, budget: int, seed: int, epoch: int) -> None:
    examples = examples_of(sizes)
    made = list(batches(examples, budget, seed=seed, epoch=epoch))
    assert sorted(row for batch in made for row in batch.rows.tolist()) == list(range(len(sizes)))
    for batch in made:
        assert max(batch.source.size, batch.target_output.size) <= budget or len(batch.rows) == 1


@given(sizes=lengths, budget=budgets)
def test_batches_contain_only_their_examples_and_padding(sizes, budget: int) -> None:
    examples = examples_of(sizes)
    for batch in batches(examples, budget, seed=5, epoch=0):
        for place, row in enumerate(batch.rows):
            source, target = examples.source[row].tolist(), examples.target[row].tolist()
            assert [id for id in batch.source[place].tolist() if id] == source
            assert [id for id in batch.target_output[place].tolist() if id] == target
            assert [id for id in batch.target_input[place].tolist() if id] == [1, *target[:-1]]
        assert batch.target_input.shape == batch.target_output.shape
        assert not np.logical_xor(batch.target_input == 0, batch.target_output == 0).any()


def test_a_batch_has_the_documented_format() -> None:
    examples = Examples(
        source=[np.array([5, 6, 2], np.int32), np.array([7, 2], np.int32)],
        target=[np.array([8, 2]), np.array([9, 10, 11, 2])],
    )
    batch = make_batch(examples, np.array([1, 0]))
    assert batch.source.tolist() == [[7, 2, 0], [5, 6, 2]]
    assert batch.target_input.tolist() == [[1, 9, 10, 11], [1, 8, 0, 0]]
    assert batch.target_output.tolist() == [[9, 10, 11, 2], [8, 2, 0, 0]]
    assert (batch.source.dtype, batch.target_input.dtype, batch.target_output.dtype) == (np.int64,) * 3
    assert (batch.source_tokens, batch.target_tokens) == (5, 6)


@given(sizes=lengths, budget=budgets, start=st.integers(0, 70))
def test_starting_at_a_later_batch_gives_the_rest_of_the_epoch(sizes, budget: int, start: int) -> None:
    examples = examples_of(sizes)
    whole = list(batches(examples, budget, seed=3, epoch=2))
    rest = list(batches(examples, budget, seed=3, epoch=2, start=start))
    assert len(rest) == len(whole[start:])
    assert all(equal(a, b) for a, b in zip(whole[start:], rest, strict=True))


def test_seed_and_epoch_decide_the_order() -> None:
    examples = examples_of([(1 + row % 11, 1 + row % 7) for row in range(300)])

    def order(seed: int, epoch: int) -> list[int]:
        return [row for rows in plan_batches(examples, 64, seed=seed, epoch=epoch) for row in rows.tolist()]

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(seed, epoch)) for seed, epoch in [(1, 0), (1, 1), (0, 1), (2, 0)]}) == 4


def test_examples_of_equal_length_are_shuffled_in_each_epoch() -> None:
    examples = examples_of([(5, 5)] * 100)
    first, second = ({frozenset(rows.tolist()) for rows in plan_batches(examples, 50, seed=1, epoch=e)} for e in (0, 1))
    assert first != second


def test_short_and_long_batches_are_mixed() -> None:
    examples = examples_of([(size, size) for size in range(1, 14) for _ in range(20)])
    widths = [batch.source.shape[1] for batch in batches(examples, 60, seed=1, epoch=0)]
    assert widths != sorted(widths)
    assert widths != sorted(widths, reverse=True)


def test_examples_end_with_eos_and_too_long_pairs_are_listed() -> None:
    source, target = train_tokenizers(["abcd"], ["abcd"], TokenizerConfig(kind="characters"))
    pairs = [("ab", "c"), ("abcd", "a"), ("abc", "a"), ("a", "abcdabcd")]
    examples, too_long = Examples.encode(iter(pairs), source, target, max_length=4)
    assert [ids.tolist() for ids in examples.source] == [[4, 5, 2], [4, 5, 6, 2]]
    assert [ids.tolist() for ids in examples.target] == [[6, 2], [4, 2]]
    assert too_long == [1, 3]


@pytest.mark.slow
def test_many_examples_are_batched_quickly_and_with_little_padding() -> None:
    random = np.random.default_rng(11)
    sizes = random.integers(2, 40, size=(120_000, 1)) + random.integers(0, 5, size=(120_000, 2))
    examples = examples_of(sizes.tolist())
    began = time.process_time()
    made = list(batches(examples, 4096, seed=1, epoch=0))
    assert time.process_time() - began < 5  # it took 0.5 s when this test was written
    assert sum(batch.target_tokens for batch in made) / sum(batch.target_output.size for batch in made) > 0.9


def epochs(sizes, budget: int, seed: int, count: int) -> list[tuple[Batch, Position]]:
    """Return the stream's batches of the first epochs, with the positions after them."""
    taken = []
    for batch, after in stream(examples_of(sizes), budget, seed=seed):
        taken.append((batch, after))
        if after.epoch == count:
            return taken
    raise AssertionError("the stream has ended")


@given(sizes=lengths.filter(len), budget=budgets, seed=st.integers(0, 7))
def test_the_stream_has_every_example_once_per_epoch_within_the_budget(
    small_windows: None, sizes, budget: int, seed: int
) -> None:
    before = Position()
    rows: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for batch, after in epochs(sizes, budget, seed, 3):
        rows[before.epoch] += batch.rows.tolist()
        assert max(batch.source.size, batch.target_output.size) <= budget or len(batch.rows) == 1
        assert before < after
        before = after
    assert before == Position(3, 0, 0)
    assert all(sorted(some) == list(range(len(sizes))) for some in rows.values())


@given(sizes=lengths.filter(len), budget=budgets, data=st.data())
def test_the_stream_resumes_exactly_from_every_position(small_windows: None, sizes, budget: int, data) -> None:
    whole = epochs(sizes, budget, 5, 2)
    place = data.draw(st.integers(0, len(whole) - 1))
    rest = stream(examples_of(sizes), budget, seed=5, start=whole[place - 1][1] if place else Position())
    for (batch, after), (again, again_after) in zip(whole[place:], rest, strict=False):
        assert equal(batch, again)
        assert after == again_after


def test_the_stream_of_a_corpus_in_one_window_equals_its_epochs() -> None:
    sizes = [(1 + row % 11, 1 + row % 7) for row in range(97)]
    examples = examples_of(sizes)
    planned = [batch for epoch in (0, 1) for batch in batches(examples, 64, seed=3, epoch=epoch)]
    assert all(equal(a, b) for a, (b, _) in zip(planned, epochs(sizes, 64, 3, 2), strict=True))


def test_the_order_of_a_corpus_in_one_window_never_changes() -> None:
    """If the order changed, a run would not resume exactly with the next version."""
    sizes = [(1 + row % 5, 1 + row % 3) for row in range(17)]
    plan = plan_batches(examples_of(sizes), 13, seed=7, epoch=2)
    assert [rows.tolist() for rows in plan] == [[15, 0, 6, 1, 16, 10], [12, 7, 5, 2], [8, 9], [11, 3, 13], [4, 14]]


def test_a_position_after_the_last_batch_is_the_next_epoch() -> None:
    sizes = [(3, 2)] * 7
    count = len(plan_batches(examples_of(sizes), 9, seed=1, epoch=0))
    behind = next(stream(examples_of(sizes), 9, seed=1, start=Position(batch=count)))
    expected = next(stream(examples_of(sizes), 9, seed=1, start=Position(epoch=1)))
    assert equal(behind[0], expected[0])
    assert behind[1] == expected[1] == Position(epoch=1, batch=1)


@pytest.mark.usefixtures("small_windows", "unchecked")  # the type checks would read a random sentence
def test_seeking_reads_one_window_only() -> None:
    examples = examples_of([(1 + row % 11, 1 + row % 7) for row in range(200)])
    watched = Examples(source=Watched(examples.source), target=Watched(examples.target))
    next(stream(watched, 30, seed=1, start=Position(epoch=4, window=9, batch=1)))
    assert len(watched.source.seen) == len(watched.target.seen) == 12


def test_windows_have_blocks_from_the_whole_corpus(small_windows: None) -> None:
    sizes = [(3, 2)] * 240
    windows: dict[int, list[int]] = {}
    before = Position()
    for batch, after in epochs(sizes, 9, 1, 1):
        windows.setdefault(before.window, []).extend(batch.rows.tolist())
        before = after
    assert [len(rows) for rows in windows.values()] == [12] * 20
    for rows in windows.values():
        assert len({row // 3 for row in rows}) == 4
    spans = [max(rows) - min(rows) for rows in windows.values()]
    assert np.mean(spans) > 100  # of at most 239; shuffling only neighbouring blocks would give 11
    first, second = ([batch.rows.tolist() for batch, _ in epochs(sizes, 9, seed, 1)] for seed in (1, 2))
    assert first != second


def longer(sources, targets, seed: int):
    """Append a random number of ids, which depends on the seed, to each sentence."""
    random = np.random.default_rng(seed)
    return [
        [np.concatenate([random.integers(4, 9, random.integers(0, 9)), ids]).astype(np.int32) for ids in side]
        for side in (sources, targets)
    ]


@given(sizes=lengths.filter(len), budget=budgets, data=st.data())
def test_a_resampled_stream_keeps_the_budget_and_resumes_exactly(small_windows: None, sizes, budget: int, data) -> None:
    examples = examples_of(sizes)
    whole = []
    for batch, after in stream(examples, budget, seed=5, resample=longer):
        assert max(batch.source.size, batch.target_output.size) <= budget or len(batch.rows) == 1
        whole.append((batch, after))
        if after.epoch == 2:
            break
    place = data.draw(st.integers(0, len(whole) - 1))
    start = whole[place - 1][1] if place else Position()
    for (batch, after), (again, again_after) in zip(
        whole[place:], stream(examples, budget, seed=5, start=start, resample=longer), strict=False
    ):
        assert equal(batch, again)
        assert after == again_after


def test_texts_are_resampled_in_every_epoch() -> None:
    examples = examples_of([(5, 5)] * 20)
    taken = list(islice(stream(examples, 10**6, seed=1, resample=longer), 3))
    assert len({batch.source_tokens for batch, _ in taken}) == 3


def test_the_positions_of_a_batch_count_both_sides() -> None:
    examples = Examples(source=[np.array([5, 6, 2]), np.array([7, 2])], target=[np.array([8, 2])] * 2)
    batch = make_batch(examples, np.array([0, 1]))
    assert batch.places == 6 + 4
