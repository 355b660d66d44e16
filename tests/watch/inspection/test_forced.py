"""Under changes, scores and searches equal complete forward passes without a cache."""

import pytest
import torch

import glassformer as gf
from glassformer.decoding import beam_search, greedy
from glassformer.decoding.transformer_step import TransformerStep
from glassformer.watch.inspection.changes import Changes, changed
from glassformer.watch.inspection.forced import RecomputingStep, compare, decoding, first_difference, log_prob, outputs
from glassformer.watch.inspection.mistakes import MISTAKES
from models import random_translator

CROSS, SELF = "decoder.layers.0.cross_attention", "decoder.layers.0.self_attention"
SOURCES = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0], [10, 2, 0, 0, 0]])


def same(one, other):
    return [each.tokens for each in one] == [each.tokens for each in other] and [
        each.log_prob for each in one
    ] == pytest.approx([each.log_prob for each in other], abs=1e-10)


def test_recomputing_without_changes_equals_cached_decoding(make_model):
    model = make_model()
    lengths = {"max_lengths": [9, 7, 8], "prefixes": [[], [5, 6], [4]]}
    cached, recomputed = TransformerStep(model, SOURCES), RecomputingStep(model, SOURCES)
    assert same(greedy(cached, **lengths), greedy(recomputed, **lengths))
    beams = [beam_search(step, beam_size=3, n_best=3, **lengths) for step in (cached, recomputed)]
    for one, other in zip(*beams, strict=True):
        assert same(one, other)


@pytest.mark.parametrize(
    "changes",
    [
        Changes(masks={SELF: [(0, 3, True), (2, 1, False)], CROSS: [(1, 0, False)]}),
        Changes(overrides={CROSS: [(0, 2, [0, 1.0])]}, ablated={CROSS: [1]}),
        Changes(mistakes=["no_causal_mask"]),
        Changes(mistakes=["decoder_keys", "no_transpose"]),
        Changes(mistakes=["target_padding_mask"]),
        Changes(mistakes=["mask_zero", "norm_order"]),
    ],
)
def test_each_step_equals_a_whole_pass_over_its_prefix(make_model, changes):
    model, source = make_model(), SOURCES[:1]
    [found] = greedy(RecomputingStep(model, source, changes), max_lengths=[9])
    for length, token in enumerate(found.tokens, start=1):
        target = torch.tensor([[1, *found.tokens[: length - 1]]])
        with torch.no_grad(), changed(model, changes):
            log_probs = model(source, target)[0, -1].log_softmax(-1)
        assert found.token_log_probs[length - 1] == pytest.approx(log_probs[token].item(), abs=1e-10)


@pytest.mark.parametrize(
    "changes",
    [
        Changes(ablated={CROSS: [0], SELF: [2]}, positions=False, scale=False),
        Changes(masks={"encoder.layers.1.self_attention": [(0, 2, False)]}, mistakes=["norm_order", "unbiased_norm"]),
        Changes(mistakes=["residual_normed", "scale_d_model", "no_embedding_scale", "doubled_exponent"]),
        Changes(mistakes=["double_softmax"]),
    ],
)
def test_a_cache_gives_the_same_results(make_model, changes):
    model = make_model()
    assert changes.cacheable
    with decoding(model, SOURCES, changes) as step:
        assert isinstance(step, TransformerStep)
        cached = beam_search(step, beam_size=2, max_lengths=[8, 8, 8])
    recomputed = beam_search(RecomputingStep(model, SOURCES, changes), beam_size=2, max_lengths=[8, 8, 8])
    assert all(same(one, other) for one, other in zip(cached, recomputed, strict=True))


@pytest.mark.parametrize(
    "changes",
    [
        Changes(overrides={CROSS: [(0, 1, [1.0]), (1, 3, [0, 0.5, 0.5])]}),
        Changes(masks={SELF: [(0, 3, True), (2, 1, False)]}, ablated={CROSS: [1]}),
        *(Changes(mistakes=[one.id]) for one in MISTAKES.values() if not one.causal),
    ],
)
def test_a_search_within_a_change_applies_it_at_positions_of_the_target(make_model, changes):
    """Each sentence of the batch equals the recomputed search of this sentence alone, without padding."""
    model = make_model()
    alone = [source[source != 0][None] for source in SOURCES]
    with changed(model, changes):
        step = TransformerStep(model, SOURCES)
        beams = beam_search(step, beam_size=3, n_best=3, max_lengths=[9, 7, 8])
        lines = greedy(step, max_lengths=[9, 7, 8])
    for source, length, beam, line in zip(alone, [9, 7, 8], beams, lines, strict=True):
        whole = RecomputingStep(model, source, changes)
        assert same(beam, beam_search(whole, beam_size=3, n_best=3, max_lengths=[length])[0])
        assert same([line], greedy(whole, max_lengths=[length]))


def test_a_forced_output_has_the_sum_of_its_tokens(make_model, source):
    model, output = make_model(), [4, 5, 9, 2]
    with (
        torch.no_grad(),
        gf.intervene(model, {f"{CROSS}.heads": lambda heads: heads * torch.tensor([0, 1, 1])[:, None, None]}),
    ):
        log_probs = model(source, torch.tensor([[1, *output[:-1]]])).log_softmax(-1)[0]
    expected = sum(log_probs[place, token].item() for place, token in enumerate(output))
    assert log_prob(model, source[0].tolist(), output, Changes(ablated={CROSS: [0]})) == pytest.approx(
        expected, abs=1e-10
    )
    assert log_prob(model, source[0].tolist(), output) != pytest.approx(expected)


def test_outputs_are_compared_with_greedy_search(make_model):
    model = make_model()
    sources = [[4, 5, 6, 7, 2], [8, 9, 2], [10, 2]]
    written = greedy(TransformerStep(model, SOURCES), max_lengths=[60] * 3)
    pairs = [(source, one.tokens) for source, one in zip(sources, written, strict=True)]
    wrong = [(source, (*output[:-1], (output[-2] + 1) % 19 + 4, 2)) for source, output in pairs]
    forced = outputs(model, pairs + wrong)
    assert [one.greedy for one in forced] == [len(one.tokens) < 60 for one in written] + [False] * 3
    assert [one.log_prob for one in forced[:3]] == pytest.approx([one.log_prob for one in written], abs=1e-9)


def test_many_outputs_keep_the_budget_and_their_order(make_model):
    model = make_model()
    pairs = [([4] * length + [2], [5] * (9 - length) + [2]) for length in range(1, 9)]
    alone = [outputs(model, [pair])[0].log_prob for pair in pairs]
    assert [one.log_prob for one in outputs(model, pairs, budget=20)] == pytest.approx(alone, abs=1e-10)


def test_two_recordings_of_one_sentence_can_be_compared(make_model):
    model = make_model()
    assert compare(model, [4, 5, 6, 2], [1, 9], Changes()).first is None
    assert compare(model, [4, 5, 6, 2], [1, 9], Changes(ablated={CROSS: [0]})).first == f"{CROSS}.heads"
    padded = compare(model, [4, 5, 6, 2], [1, 9], Changes(mistakes=["target_padding_mask"]))
    assert padded.first == f"{CROSS}.weights"
    assert padded.unchanged["logits"].shape == padded.changed["logits"].shape == (1, 4, 23)


def test_recordings_differ_by_shape_or_by_more_than_the_tolerance():
    one = {"a": torch.zeros(2), "b": torch.zeros(2)}
    assert first_difference(one, {"a": torch.zeros(2), "b": torch.full((2,), 1e-9)}) == "b"
    assert first_difference(one, {"a": torch.zeros(2), "b": torch.full((2,), 1e-9)}, tolerance=1e-8) is None
    assert first_difference(one, {"a": torch.zeros(1), "b": torch.zeros(2)}) == "a"
    assert first_difference(one, {"a": torch.tensor([0, torch.nan]), "b": torch.zeros(2)}, tolerance=1) == "a"


def test_a_translator_applies_changes_at_positions_of_the_target(tmp_path):
    """Texts enter the batch one after another; each output has the same probability as in a complete forward pass."""
    translator = random_translator(tmp_path, extra_length=2)
    model, bundle = translator.model, translator.bundle
    texts = ["the cat sees a big black dog .", "a dog sleeps .", "the big dog", "a cat", "the black cat sees the dog ."]
    changes = Changes(overrides={CROSS: [(0, 1, [0.0, 1.0]), (1, 2, [1.0])]}, masks={SELF: [(1, 0, False)]})
    before = translator.translate(texts)
    with changed(model, changes):
        found = translator.translate(texts)
    assert max(abs(one.log_prob - plain.log_prob) for one, plain in zip(found, before, strict=True)) > 0.1
    for text, result in zip(texts, found, strict=True):
        source = [*bundle.source_tokenizer.encode(text), model.config.eos_id]
        output = [*bundle.target_tokenizer.encode(result.text), model.config.eos_id]
        assert result.log_prob == pytest.approx(log_prob(model, source, output, changes), abs=1e-4)  # float32
