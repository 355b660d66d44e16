import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.batching import Batch, Examples, batches, make_batch, plan_batches
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers

lengths = st.lists(st.tuples(st.integers(1, 13), st.integers(1, 17)), max_size=60)
budgets = st.integers(1, 100)


def examples_of(sizes) -> Examples:
    """Return examples of these lengths, whose ids tell which example and place they come from."""
    source, target = (
        [np.append(np.arange(4, pair[side] + 3) + 100 * row, 2).astype(np.int32) for row, pair in enumerate(sizes)]
        for side in (0, 1)
    )
    return Examples(source=source, target=target)


def equal(a: Batch, b: Batch) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("source", "target_input", "target_output", "rows")
    )


@given(sizes=lengths, budget=budgets, seed=st.integers(0, 7), epoch=st.integers(0, 3))
def test_every_example_comes_once_an_epoch_and_within_the_budget(sizes, budget: int, seed: int, epoch: int) -> None:
    examples = examples_of(sizes)
    made = list(batches(examples, budget, seed=seed, epoch=epoch))
    assert sorted(row for batch in made for row in batch.rows.tolist()) == list(range(len(sizes)))
    for batch in made:
        assert max(batch.source.size, batch.target_output.size) <= budget or len(batch.rows) == 1


@given(sizes=lengths, budget=budgets)
def test_batches_hold_their_examples_and_padding_and_nothing_else(sizes, budget: int) -> None:
    examples = examples_of(sizes)
    for batch in batches(examples, budget, seed=5, epoch=0):
        for place, row in enumerate(batch.rows):
            source, target = examples.source[row].tolist(), examples.target[row].tolist()
            assert [id for id in batch.source[place].tolist() if id] == source
            assert [id for id in batch.target_output[place].tolist() if id] == target
            assert [id for id in batch.target_input[place].tolist() if id] == [1, *target[:-1]]
        assert batch.target_input.shape == batch.target_output.shape
        assert not np.logical_xor(batch.target_input == 0, batch.target_output == 0).any()


def test_a_batch_looks_as_the_interface_says() -> None:
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
def test_starting_later_gives_the_rest_of_the_same_epoch(sizes, budget: int, start: int) -> None:
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


def test_examples_of_equal_length_are_mixed_anew_each_epoch() -> None:
    examples = examples_of([(5, 5)] * 100)
    first, second = ({frozenset(rows.tolist()) for rows in plan_batches(examples, 50, seed=1, epoch=e)} for e in (0, 1))
    assert first != second


def test_short_and_long_batches_are_mixed() -> None:
    examples = examples_of([(size, size) for size in range(1, 14) for _ in range(20)])
    widths = [batch.source.shape[1] for batch in batches(examples, 60, seed=1, epoch=0)]
    assert widths != sorted(widths)
    assert widths != sorted(widths, reverse=True)


def test_examples_are_encoded_with_eos_and_too_long_pairs_are_named() -> None:
    source, target = train_tokenizers(["abcd"], ["abcd"], TokenizerConfig(kind="characters"))
    pairs = [("ab", "c"), ("abcd", "a"), ("abc", "a"), ("a", "abcdabcd")]
    examples, too_long = Examples.encode(iter(pairs), source, target, max_length=4)
    assert [ids.tolist() for ids in examples.source] == [[4, 5, 2], [4, 5, 6, 2]]
    assert [ids.tolist() for ids in examples.target] == [[6, 2], [4, 2]]
    assert too_long == [1, 3]


def test_many_examples_are_batched_quickly_and_with_little_padding() -> None:
    random = np.random.default_rng(11)
    sizes = random.integers(2, 40, size=(120_000, 1)) + random.integers(0, 5, size=(120_000, 2))
    examples = examples_of(sizes.tolist())
    began = time.process_time()
    made = list(batches(examples, 4096, seed=1, epoch=0))
    assert time.process_time() - began < 5  # 0.5 s where this was written
    assert sum(batch.target_tokens for batch in made) / sum(batch.target_output.size for batch in made) > 0.9
