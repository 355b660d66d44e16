"""The page's searches against Python's: the same hypotheses, the same tree, with the cache and without."""

from itertools import cycle, product
from typing import Any

import pytest
import torch

from browser.engine import PageEngine, halved, payload_of
from glassformer.decoding import Hypothesis, beam_search, greedy
from glassformer.decoding.search_trace import SearchStep, SearchTree
from glassformer.decoding.transformer_step import TransformerStep
from glassformer.model.transformer import Transformer

SOURCES = [[4, 9, 5, 17, 3, 2], [18, 2], [5, 5, 6, 7, 8, 9, 10, 11, 12, 2]]
PREFIXES = [[], [7], [3, 20, 5]]
DECODER, CROSS = "decoder.layers.0.self_attention", "decoder.layers.1.cross_attention"
FAR = [200, 201, True]
"""A cell of a mask that no output reaches: it changes nothing, but forbids the cache."""

Found = tuple[list[Hypothesis], SearchTree]


def python_search(model: Transformer, source: list[int], prefix: list[int], beam_size: int, alpha: float) -> Found:
    """Return Python's hypotheses and tree."""
    longest = len(source) + 50
    if model.config.positions == "learned":
        longest = min(longest, model.config.max_length)
    seen: list[SearchStep] = []
    [found] = beam_search(
        TransformerStep(model, torch.tensor([source])),
        beam_size=beam_size,
        n_best=beam_size,
        length_penalty=alpha,
        max_lengths=[longest],
        prefixes=[prefix],
        watch=seen.append,
    )
    return found, SearchTree.of(seen, bos_id=model.config.bos_id)


def assert_found(got: dict[str, Any], expected: Found) -> None:
    """Check the page's result: ids and states equal, numbers to 1e-4."""
    hypotheses, tree = expected
    assert [one["ids"] for one in got["hypotheses"]] == [list(one.tokens) for one in hypotheses]
    for one, other in zip(got["hypotheses"], hypotheses, strict=True):
        assert one["tokenLogProbs"] == pytest.approx(other.token_log_probs, abs=1e-4)
        assert one["logProb"] == pytest.approx(other.log_prob, abs=1e-4)
        assert one["score"] == pytest.approx(other.score, rel=1e-6, abs=1e-4)  # a penalty below 1 enlarges it
    shape = [(node["id"], node["parent"], node["position"], node["token"], node["state"]) for node in got["tree"]]
    assert shape == [(node.id, node.parent, node.position, node.token, node.state) for node in tree.nodes]
    for node, other in zip(got["tree"], tree.nodes, strict=True):
        assert (node["tokenLogProb"], node["logProb"]) == pytest.approx(
            (other.token_log_prob, other.log_prob), abs=1e-4
        )
        assert (node["score"] is None) == (other.score is None)
        assert (node["score"] or 0) == pytest.approx(other.score or 0, rel=1e-6, abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3, 4])
@pytest.mark.parametrize("settings", [{}, {"norm": "pre", "positions": "learned", "max_length": 12}])
def test_beams_find_what_python_finds(page, make_model, beam_size, settings):
    model = halved(make_model, **settings)
    engine = PageEngine(page, payload_of(model))
    alphas = cycle([0.0, 0.6, 2.0, -1.0])
    for (source, prefix), alpha in zip(product(SOURCES, PREFIXES), alphas, strict=False):
        got = engine.search(source, prefixIds=prefix, beamSize=beam_size, lengthPenalty=alpha)
        assert_found(got, python_search(model, source, prefix, beam_size, alpha))


def test_a_beam_of_one_is_greedy_search(page, make_model):
    model = halved(make_model)
    engine = PageEngine(page, payload_of(model))
    for source in SOURCES:
        step = TransformerStep(model, torch.tensor([source]))
        [expected] = greedy(step, max_lengths=[len(source) + 50], prefixes=[[4]])
        [got] = engine.search(source, prefixIds=[4], beamSize=1)["hypotheses"]
        assert got["ids"] == list(expected.tokens)
        assert got["score"] == pytest.approx(expected.score, abs=1e-4)


def test_a_sharp_model_ends_its_outputs(page, make_model):
    # Random models hardly prefer a token; with a larger output matrix, searches end at different lengths.
    model = halved(make_model, tie_output=False)
    model.output.weight.data.mul_(4)
    engine = PageEngine(page, payload_of(model))
    for source in SOURCES:
        for beam_size in (2, 4, 7):
            expected = python_search(model, source, [], beam_size, 0.6)
            assert_found(engine.search(source, beamSize=beam_size, lengthPenalty=0.6), expected)


def test_the_tree_adds_up(page, make_model):
    got = PageEngine(page, payload_of(halved(make_model))).search(SOURCES[0], beamSize=4, lengthPenalty=0.6)
    tree = got["tree"]
    finished = [node for node in tree if node["state"] == "finished"]
    assert finished
    for node in finished:
        path = [node]
        while path[-1]["parent"] != 0:
            path.append(tree[path[-1]["parent"]])
        log_prob = sum(one["tokenLogProb"] for one in path)
        assert [one["position"] for one in path] == list(range(len(path)))[::-1]
        assert node["logProb"] == pytest.approx(log_prob, abs=1e-12)
        assert node["score"] == pytest.approx(log_prob / ((5 + len(path)) / 6) ** 0.6, abs=1e-12)
    assert got["hypotheses"][0]["score"] == max(node["score"] for node in finished)
    assert {node["state"] for node in tree} == {"kept", "finished", "pruned"}


CHANGES = {
    "nothing": {},
    "heads": {"ablated": {CROSS: [0], DECODER: [2], "encoder.layers.0.self_attention": [1]}},
    "cells": {"masks": {CROSS: [[query, 1, False] for query in range(60)], DECODER: [[3, 0, False], [4, 2, True]]}},
    "rows": {"overrides": {CROSS: [[1, 2, [0, 0, 1]]], DECODER: [[0, 3, [1]]]}},
    "positions and scale": {"positions": False, "scale": False},
    "a patched encoder": {
        "patches": [{"point": "encoder.output", "sourceIds": [6, 2], "targetIds": [1], "positions": [[0, 0]]}]
    },
    "mistakes": {
        "mistakes": ["norm_order", "residual_normed", "no_embedding_scale", "doubled_exponent", "unbiased_norm"]
    },
    "softmax twice": {"mistakes": ["double_softmax", "scale_d_model"]},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_the_cache_changes_nothing(page, make_model, changes):
    engine = PageEngine(page, payload_of(halved(make_model)))
    masks = {**changes.get("masks", {}), DECODER: [*changes.get("masks", {}).get(DECODER, []), FAR]}
    complete = {"ablated": {}, "masks": {}, "overrides": {}, "patches": [], "mistakes": [], **changes}
    causal = page.evaluate("(list) => list.map(module.isCausal)", [complete, complete | {"masks": masks}])
    assert causal == [True, False]
    cached = engine.search(SOURCES[0], beamSize=3, changes=changes)
    recomputed = engine.search(SOURCES[0], beamSize=3, changes={**changes, "masks": masks})
    assert [one["ids"] for one in cached["hypotheses"]] == [one["ids"] for one in recomputed["hypotheses"]]
    for one, other in zip(cached["tree"], recomputed["tree"], strict=True):
        assert one["logProb"] == pytest.approx(other["logProb"], abs=1e-5)


FUTURE = {
    "zero": {"mistakes": ["mask_zero"]},
    "late": {"mistakes": ["mask_after_softmax"]},
    "target's padding": {"mistakes": ["target_padding_mask"]},
    "future": {"mistakes": ["no_causal_mask"]},
    "decoder's keys": {"mistakes": ["decoder_keys"]},
    "transpose": {"mistakes": ["no_transpose"]},
    "cell": {"masks": {DECODER: [[0, 3, True]]}},
    "row": {"overrides": {DECODER: [[0, 1, [0, 0, 0, 1]]]}},
    "patch": {
        "patches": [{"point": f"{DECODER}.key", "sourceIds": [6, 2], "targetIds": [1, 5], "positions": [[1, 1]]}]
    },
}


@pytest.mark.parametrize("changes", FUTURE.values(), ids=FUTURE)
def test_decoding_under_changes_reruns_the_whole_prefix_at_each_step(page, make_model, changes):
    model = halved(make_model)
    engine = PageEngine(page, payload_of(model))
    source = SOURCES[1] if "target_padding_mask" in changes.get("mistakes", []) else SOURCES[0]
    [got] = engine.search(source, prefixIds=[5, 8, 13], beamSize=1, changes=changes)["hypotheses"]
    ids = got["ids"][:9]
    for length in range(len(ids)):
        trace = engine.trace(source, [1, *ids[:length]], **changes)
        log_probs = trace["log_probs"][length]
        assert got["tokenLogProbs"][length] == pytest.approx(log_probs[ids[length]].item(), abs=1e-6)
        log_probs[:2] = -torch.inf
        assert length < 3 or ids[length] == log_probs.argmax()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beamSize": 0}, "beamSize is 0: expected at least 1"),
        ({"beamSize": 1.5}, "beamSize is 1.5"),
        ({"lengthPenalty": 101}, "lengthPenalty is 101"),
        ({"prefixIds": [5] * 56}, "the prefix has 56 tokens: at most 55 leave room"),
        ({"prefixIds": [5, 2]}, "the prefix holds the id 2"),
        ({"prefixIds": [23]}, "the prefix holds the id 23"),
    ],
)
def test_a_search_that_cannot_be_made_says_why(page, make_model, options, message):
    PageEngine(page, payload_of(halved(make_model)))
    asked = {"sourceIds": SOURCES[0], **options}
    assert message in page.evaluate("(asked) => engine.search(asked).catch((error) => error.message)", asked)


def test_a_model_without_any_probability_has_no_output(page, make_model):
    PageEngine(page, payload_of(halved(make_model)))
    message = page.evaluate("""async () => {
      (await engine.model()).weight("output.weight").data.fill(NaN);
      return engine.search({ sourceIds: [4, 2] }).catch((error) => error.message);
    }""")
    assert message == "no output: every continuation has probability 0 or NaN"


def test_a_search_says_its_tokens_and_as_many_hypotheses_as_are_wanted(page, make_model):
    engine = PageEngine(page, payload_of(halved(make_model)))
    everything, two = engine.search(SOURCES[0]), engine.search(SOURCES[0], nBest=2)
    assert len(everything["hypotheses"]) == 4
    assert everything["hypotheses"][:2] == two["hypotheses"]
    best = two["hypotheses"][0]
    assert best["tokens"][-1] == "<eos>"
    assert best["text"] == " ".join(best["tokens"][:-1])
    assert two["tree"][0]["text"] == "<bos>"
    assert two["tree"][1]["text"] == f"w{two['tree'][1]['token']}"
