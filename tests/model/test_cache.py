"""Decoding token by token gives the same logits as decoding the whole target at once."""

import pytest
import torch
from torch import Tensor

import glassformer as gf
from glassformer.model.cache import Cache

pytestmark = pytest.mark.usefixtures("seed", "float64")

SOURCE = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0], [10, 2, 0, 0, 0]])
TOKENS = torch.tensor([[1, 4, 5, 6], [1, 7, 8, 9], [1, 10, 11, 12]])


def assert_same(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def feed(model: gf.Transformer, tokens: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
    """Return the logits after the last of these tokens (R, T), and the cache after all tokens."""
    for column in tokens.unbind(1):
        logits, cache = model.advance(column, cache)
    return logits, cache


def tensors(cache: Cache) -> list[Tensor]:
    pairs = [pair for layer in cache.layers for pair in (layer.memory, layer.past) if pair is not None]
    return [cache.memory_mask, *(tensor for pair in pairs for tensor in pair)]


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["interleaved", "halves", "learned", "none"])
def test_every_step_gives_the_logits_of_the_whole_target(make_model, norm, positions):
    model = make_model(norm=norm, positions=positions)
    whole, cache = model(SOURCE, TOKENS), model.start(SOURCE)
    for t in range(TOKENS.shape[1]):
        assert cache.length == t
        logits, cache = model.advance(TOKENS[:, t], cache)
        assert_same(logits, whole[:, t])


def test_recorded_steps_are_equal_and_each_is_kept(make_model):
    model = make_model()
    with gf.record(model) as trace:
        cache = model.start(SOURCE)
        feed(model, TOKENS, cache)
    whole = model(SOURCE, TOKENS)
    for t, logits in enumerate(trace.history("logits")):
        assert_same(logits, whole[:, t])
    shapes = [w.shape for w in trace.history("decoder.layers.0.self_attention.weights")]
    assert shapes == [(3, 3, 1, t) for t in (1, 2, 3, 4)]


def test_a_sentence_may_have_several_rows(make_model):
    model = make_model()
    tokens = torch.cat([TOKENS, TOKENS.roll(1, 0)], dim=1).view(6, 4)  # two rows for each of three sentences
    logits, _ = feed(model, tokens, model.start(SOURCE))
    assert_same(logits, model(SOURCE.repeat_interleave(2, 0), tokens)[:, -1])


def test_one_row_can_become_several_reordered_rows(make_model):
    model = make_model()
    _, cache = feed(model, TOKENS[:, :2], model.start(SOURCE))
    rows, same = torch.tensor([0, 0, 1, 1, 2, 2]), torch.arange(3)
    new = torch.tensor([4, 5, 6, 7, 8, 9])
    _, cache = model.advance(new, cache.select(rows, same))
    prefixes = torch.cat([TOKENS[rows, :2], new[:, None]], dim=1)
    swapped = torch.tensor([1, 0, 3, 3, 5, 4])
    logits, _ = model.advance(new, cache.select(swapped, same))
    expected = model(SOURCE.repeat_interleave(2, 0), torch.cat([prefixes[swapped], new[:, None]], dim=1))
    assert_same(logits, expected[:, -1])


def test_sentences_may_leave_and_be_reordered(make_model):
    model = make_model()
    _, cache = feed(model, TOKENS[:, :3], model.start(SOURCE))
    left = torch.tensor([2, 0])
    logits, _ = model.advance(TOKENS[left, 3], cache.select(left, left))
    assert_same(logits, model(SOURCE[left], TOKENS[left])[:, -1])


def test_all_sentences_may_be_reordered(make_model):
    model, order = make_model(), torch.tensor([2, 0, 1])
    _, cache = feed(model, TOKENS[:, :3], model.start(SOURCE))
    logits, _ = model.advance(TOKENS[order, 3], cache.select(order, order))
    assert_same(logits, model(SOURCE[order], TOKENS[order])[:, -1])


def test_sentences_leave_with_all_their_rows(make_model):
    model = make_model()
    tokens = torch.cat([TOKENS, TOKENS.roll(1, 0)], dim=1).view(6, 4)
    _, cache = feed(model, tokens[:, :3], model.start(SOURCE))
    rows, sentences = torch.tensor([3, 2, 5, 5]), torch.tensor([1, 2])
    logits, _ = model.advance(tokens[rows, 3], cache.select(rows, sentences))
    assert_same(logits, model(SOURCE[sentences].repeat_interleave(2, 0), tokens[rows])[:, -1])


def test_sentences_of_an_empty_cache_can_be_selected(make_model):
    model, left = make_model(), torch.tensor([1])
    logits, _ = model.advance(TOKENS[left, 0], model.start(SOURCE).select(left, left))
    assert_same(logits, model(SOURCE[left], TOKENS[left, :1])[:, -1])


def test_advance_and_select_do_not_change_the_given_cache(make_model):
    model = make_model()
    _, cache = feed(model, TOKENS[:, :2], model.start(SOURCE))
    before, length = [tensor.clone() for tensor in tensors(cache)], cache.length
    first, _ = model.advance(TOKENS[:, 2], cache)
    model.advance(TOKENS[[2, 1], 3], cache.select(torch.tensor([2, 1]), torch.tensor([2, 1])))
    again, _ = model.advance(TOKENS[:, 2], cache)
    assert cache.length == length
    assert all(torch.equal(one, other) for one, other in zip(tensors(cache), before, strict=True))
    assert torch.equal(first, again)


def test_advance_does_not_change_an_empty_cache(make_model):
    model = make_model()
    cache = model.start(SOURCE)
    first, _ = model.advance(TOKENS[:, 0], cache)
    again, _ = model.advance(TOKENS[:, 0], cache)
    assert all(layer.past is None for layer in cache.layers)
    assert torch.equal(first, again)


def test_the_keys_of_the_memory_are_shared_and_not_copied(make_model):
    model = make_model()
    cache = model.start(SOURCE)
    _, following = model.advance(TOKENS[:, 0], cache)
    kept = following.select(torch.tensor([0, 0, 1, 1, 2, 2]), torch.arange(3))
    for old, new in zip(cache.layers, kept.layers, strict=True):
        assert new.memory.key is old.memory.key
        assert new.past.key.shape == (6, 3, 1, 5)
        assert new.past.value.shape == (6, 3, 1, 7)


@pytest.mark.parametrize("positions", ["interleaved", "learned"])
@pytest.mark.parametrize("rows", [1, 2])
def test_sentences_admitted_later_continue_as_if_alone(make_model, positions, rows):
    """A sentence is admitted after two tokens, when another sentence has left; positions are reused."""
    model = make_model(positions=positions)
    several = torch.arange(2).repeat_interleave(rows)
    _, cache = feed(model, TOKENS[:2, :2], model.start(SOURCE[:2]))
    cache = cache.select(several, torch.arange(2)).join(model.start(SOURCE[2:, :2]))
    assert cache.memory_mask.shape == (3, 1, 1, 5)
    newest = torch.cat([TOKENS[:2, 2], TOKENS[2:, 0]]).repeat_interleave(rows)
    logits, cache = model.advance(newest, cache)
    assert_same(logits[: 2 * rows], model(SOURCE[:2], TOKENS[:2, :3])[:, -1].repeat_interleave(rows, 0))
    assert_same(logits[2 * rows :], model(SOURCE[2:, :2], TOKENS[2:, :1])[:, -1].repeat_interleave(rows, 0))

    # the first sentence, which has the longest source, is dropped and then admitted again
    left = torch.arange(rows, 3 * rows)
    cache = cache.select(left, torch.tensor([1, 2])).join(model.start(SOURCE[:1]))
    assert cache.memory_mask.shape == (3, 1, 1, 5)
    newest = torch.cat([TOKENS[1:2, 3], TOKENS[2:, 1], TOKENS[:1, 0]]).repeat_interleave(rows)
    logits, _ = model.advance(newest, cache)
    whole = [model(SOURCE[[1]], TOKENS[1:2]), model(SOURCE[[2]], TOKENS[2:, :2]), model(SOURCE[[0]], TOKENS[:1, :1])]
    assert_same(logits, torch.cat([each[:, -1] for each in whole]).repeat_interleave(rows, 0))


def test_unused_positions_are_dropped(make_model):
    model = make_model()
    _, cache = feed(model, TOKENS[:, :3], model.start(SOURCE))
    cache = cache.select(torch.tensor([2]), torch.tensor([2])).join(model.start(SOURCE[2:, :2]))
    assert cache.memory_mask.shape == (2, 1, 1, 2)
    _, cache = feed(model, TOKENS[2:, :1].expand(2, 1), cache)
    cache = cache.select(torch.tensor([1]), torch.tensor([1])).join(model.start(SOURCE[2:, :2]))
    assert (cache.length, cache.entered.tolist()) == (1, [0, 1])
    assert all(layer.past.key.shape[2] == layer.past.value.shape[2] == 1 for layer in cache.layers)


def test_joining_changes_neither_cache(make_model):
    model = make_model()
    (_, cache), newcomers = feed(model, TOKENS[:2, :2], model.start(SOURCE[:2])), model.start(SOURCE[2:])
    before = [tensor.clone() for each in (cache, newcomers) for tensor in tensors(each)]
    cache.join(newcomers)
    after = [tensor for each in (cache, newcomers) for tensor in tensors(each)]
    assert all(map(torch.equal, before, after))
