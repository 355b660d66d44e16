"""Python's answers to a page: numbers from the model, from the changed model, and from snapshots."""

import threading
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pytest
import torch

import glassformer as gf
from glassformer.errors import DecodingError, GlassformerError
from glassformer.training.snapshots import Snapshots
from glassformer.watch.explorer.payload import payload
from glassformer.watch.explorer.remote import Remote
from glassformer.watch.inspection.changes import Changes, changed

SENTENCE = "the black cat sleeps ."
CROSS = "decoder.layers.1.cross_attention"
IDS = {"source_ids": [4, 5, 6, 2], "target_ids": [1, 7, 8]}
SEARCH = {"kind": "search", "source_ids": [4, 5, 6, 2], "beam_size": 3, "length_penalty": 0.6, "n_best": 2}
GRADIENT = {"kind": "gradient", **IDS, "row": 1, "word": 8, "rival": 4}
CHANGES = {"ablated": {CROSS: [0, 2]}, "masks": {CROSS: [[1, 0, False]]}, "mistakes": ["no_scale"]}


def values(header, arrays):
    """Return the arrays in an answer, by point."""
    numbers = np.concatenate([array.ravel() for array in arrays])
    sizes = {one["name"]: (one["offset"], one["shape"]) for one in header["points"]}
    return {name: numbers[at : at + np.prod(shape)].reshape(shape) for name, (at, shape) in sizes.items()}


def recorded(model, changes=None):
    """Return all points of the model reading IDS under changes."""
    with torch.no_grad(), changed(model, Changes.from_dict(changes or {})), gf.record(model) as trace:
        model(torch.tensor([IDS["source_ids"]]), torch.tensor([IDS["target_ids"]]))
    return trace


@pytest.fixture
def with_snapshot(make_translator):
    """Return a translator of a run, and its model at step 16."""
    translator, early = make_translator(), make_translator(seed=5).model
    Snapshots(translator.bundle.folder / "snapshots", keep=3).save(early, 16)
    return translator, early


def test_weights_are_those_of_the_model_or_of_a_snapshot(with_snapshot):
    translator, early = with_snapshot
    names = ["output.weight", "encoder.layers.0.feed_forward.contract.weight"]
    for step, model in ((None, translator.model), (16, early.half().float())):  # snapshots are stored in half precision
        header, arrays = Remote(translator).answer({"kind": "parameters", "names": names, "checkpoint": step})
        got = values({"points": header["parameters"]}, arrays)
        assert list(got) == names
        for name in names:
            np.testing.assert_array_equal(got[name], model.get_parameter(name).detach())


def test_some_rows_of_a_matrix_are_sent_alone(make_translator):
    translator = make_translator()
    asked = {"kind": "parameters", "names": ["output.weight"], "rows": [7, 4, 7]}
    header, [array] = Remote(translator).answer(asked)
    assert header["parameters"] == [{"name": "output.weight", "shape": [3, 24], "offset": 0}]
    np.testing.assert_array_equal(array, translator.model.output.weight.detach()[[7, 4, 7]])


@pytest.mark.parametrize("changes", [{}, CHANGES, {"mistakes": ["double_softmax"]}, {"mistakes": ["decoder_keys"]}])
def test_gradient_times_input_is_the_slope_when_an_input_grows(make_translator, changes):
    translator = make_translator()
    translator.model.source.tokens.weight.requires_grad_(False)  # vectors that were loaded may be frozen
    model = deepcopy(translator.model).double()

    def margin(position, factor):
        def grown(x):
            sizes = torch.ones(x.shape[1], 1, dtype=x.dtype)
            sizes[position] = factor
            return x * sizes

        with gf.intervene(model, {"source.input": grown}):
            return np.subtract(*recorded(model, changes)["log_probs"][0, 1, [8, 4]].tolist())

    step, (header, arrays) = 1e-5, Remote(translator).answer({**GRADIENT, "changes": changes})
    slopes = [(margin(at, 1 + step) - margin(at, 1 - step)) / (2 * step) for at in range(len(IDS["source_ids"]))]
    assert header["effects"] == pytest.approx(slopes, abs=1e-4)
    assert arrays == []
    # all gradients are 0 if a mistake makes the decoder read only itself
    assert any(slopes) == (changes.get("mistakes") != ["decoder_keys"])


@pytest.mark.parametrize("changes", [{}, CHANGES])
def test_a_trace_has_the_models_numbers_at_every_point(make_translator, changes):
    model = make_translator().model
    remote, expected = Remote(make_translator()), recorded(model, changes)
    names = remote.answer({"kind": "trace", **IDS, "changes": changes})[0]["names"]
    got = values(*remote.answer({"kind": "trace", **IDS, "changes": changes, "names": names}))
    assert names == list(expected)
    for name in names:
        tensor = expected[name]
        np.testing.assert_array_equal(got[name], tensor if tensor.dim() == 2 else tensor[0])


def test_attention_weights_are_sent_by_default(make_translator):
    got = values(*Remote(make_translator()).answer({"kind": "trace", **IDS}))
    assert {name.rpartition(".")[2] for name in got} == {"weights"}
    assert got[f"{CROSS}.weights"].shape == (4, 3, 4)


def test_python_compares_traces_and_scores_outputs(make_translator):
    translator = make_translator()
    remote, plain, mine = Remote(translator), {**IDS, "changes": {}}, {**IDS, "changes": {"ablated": {CROSS: [1]}}}
    asked = {"kind": "difference", "unchanged": plain}
    assert remote.answer({**asked, "changed": mine}) == ({"first": f"{CROSS}.heads"}, [])
    assert remote.answer({**asked, "changed": plain})[0] == {"first": None}
    log_probs = recorded(translator.model)["log_probs"][0]
    score = {"kind": "score", **plain, "output_ids": [7, 8, 2]}
    assert remote.answer(score)[0]["log_prob"] == pytest.approx(log_probs[range(3), [7, 8, 2]].sum().item(), abs=1e-5)
    for wrong in ([7, 8, 2, 2], [-1], [len(log_probs[0])]):
        with pytest.raises(GlassformerError, match="score: output_ids: expected up to 3 numbers from 0 to 13"):
            remote.answer({**score, "output_ids": wrong})


def test_traces_that_are_used_are_kept(make_translator, monkeypatch):
    translator, passes = make_translator(), []
    translator.model.register_forward_hook(lambda *_: passes.append(1))
    remote = Remote(translator)
    for target in range(4, 12):
        remote.answer({"kind": "trace", **IDS})
        remote.answer({"kind": "trace", **IDS, "target_ids": [1, target]})
    assert len(passes) == 9


def test_a_single_position_keeps_its_axis(make_translator):
    asked = {"kind": "trace", "source_ids": [2], "target_ids": [1], "names": ["target.positions", "logits"]}
    header, _ = Remote(make_translator()).answer(asked)
    assert [one["shape"] for one in header["points"]] == [[1, 24], [1, 14]]


def test_a_text_is_encoded_by_the_models_tokenizer(make_translator):
    translator = make_translator()
    header, _ = Remote(translator).answer({"kind": "encode", "side": "source", "text": SENTENCE})
    assert header["ids"] == translator.bundle.source_tokenizer.encode(SENTENCE)
    assert header["tokens"] == translator.bundle.source_tokenizer.split(SENTENCE)


def test_a_search_finds_the_same_as_the_translator(make_translator):
    translator = make_translator()
    source_ids = [*translator.bundle.source_tokenizer.encode(SENTENCE), 2]
    found, _ = Remote(translator).answer({**SEARCH, "source_ids": source_ids})
    [best] = translator.translate([SENTENCE], n_best=2, beam_size=3, length_penalty=0.6)
    for one, expected in zip(found["hypotheses"], (best, *best.alternatives), strict=True):
        assert one["text"] == expected.text
        assert one["tokens"] == list(expected.tokens)
        assert one["log_prob"] == pytest.approx(expected.log_prob, abs=1e-4)
    assert found["tree"][0]["text"] == "<bos>"
    assert sum(node["state"] == "finished" for node in found["tree"]) >= 2


@pytest.mark.parametrize("extra_length", [7, 60])
def test_the_run_limits_the_length_of_ids_and_searches(make_translator, extra_length):
    translator = make_translator(extra_length=extra_length)
    remote, longest = Remote(translator), 1024 + extra_length + 1
    prefix = [9] * (len(SEARCH["source_ids"]) + extra_length - 1)
    found, _ = remote.answer({**SEARCH, "prefix_ids": prefix})
    assert [one["ids"] for one in found["hypotheses"]] == [[*prefix, 2]]
    with pytest.raises(GlassformerError, match="prefix"):
        remote.answer({**SEARCH, "prefix_ids": [*prefix, 9]})
    with pytest.raises(GlassformerError, match=f"expected 1 to {longest}, got {longest + 1}"):
        remote.answer({**IDS, "kind": "trace", "target_ids": [4] * (longest + 1)})


def steps_of(translator):
    """Return a list that grows by one entry at each step of a search."""
    steps = []
    translator.model.output.register_forward_hook(lambda *_: steps.append(1))
    return steps


def test_a_search_that_takes_too_long_is_stopped_with_advice(make_translator):
    translator = make_translator()
    remote, steps = Remote(translator, search_seconds=0), steps_of(translator)
    with pytest.raises(DecodingError, match=r"after 0 seconds: a beam of 3 over 4 source tokens .* use a smaller beam"):
        remote.answer(SEARCH)
    assert not steps
    assert remote.answer({"kind": "encode", "side": "source", "text": "cat"})[0]["tokens"] == ["cat"]


@pytest.mark.parametrize("changes", [{}, {"mistakes": ["no_scale"]}, {"masks": {CROSS: [[1, 0, False]]}}])
def test_other_questions_are_answered_between_the_steps_of_a_search(make_translator, changes):
    translator = make_translator()
    remote, steps, answers = Remote(translator), steps_of(translator), []
    expected = Remote(make_translator()).answer({"kind": "score", **IDS, "output_ids": [7, 8, 2]})
    answered = threading.Event()

    def ask():
        answers.append((remote.answer({"kind": "score", **IDS, "output_ids": [7, 8, 2]}), len(steps)))
        answered.set()

    other = threading.Thread(target=ask)

    def wait_for_the_other(*_):
        if len(steps) == 3:
            other.start()
        elif len(steps) > 3 and threading.current_thread() is not other:
            answered.wait(0.05)  # if requests did not take turns, this one would be answered only after the last step

    translator.model.output.register_forward_hook(wait_for_the_other)
    alone = Remote(make_translator()).answer({**SEARCH, "prefix_ids": [9] * 40, "changes": changes})
    assert remote.answer({**SEARCH, "prefix_ids": [9] * 40, "changes": changes}) == alone
    other.join()
    [(answer, at)] = answers
    assert answer == expected  # between the steps of a search under changes, the model is unchanged
    assert at < len(steps)


def test_a_search_begins_with_its_prefix(make_translator):
    found, _ = Remote(make_translator()).answer({**SEARCH, "prefix_ids": [9, 4]})
    assert all(one["ids"][:2] == [9, 4] for one in found["hypotheses"])


@pytest.mark.slow
def test_a_search_under_changes_rescores_as_a_trace_under_changes(make_translator):
    remote = Remote(make_translator())
    best = remote.answer({**SEARCH, "changes": CHANGES})[0]["hypotheses"][0]
    asked = {"kind": "trace", "names": ["log_probs"], "source_ids": SEARCH["source_ids"]}
    asked["target_ids"] = [1, *best["ids"][:-1]]
    log_probs = values(*remote.answer({**asked, "changes": CHANGES}))["log_probs"]
    assert best["token_log_probs"] == pytest.approx(log_probs[range(len(best["ids"])), best["ids"]], abs=1e-4)


def test_a_snapshot_is_sent_in_the_order_of_the_payload(with_snapshot):
    translator, early = with_snapshot
    header, arrays = Remote(translator).answer({"kind": "checkpoint", "step": 16})
    numbers, parameters = np.concatenate([one.ravel() for one in arrays]), dict(early.named_parameters())
    assert header == {"step": 16}
    assert numbers.dtype == np.float16
    for tensor in payload(translator)["weights"]["tensors"]:
        expected = parameters[tensor["name"]].detach().half().numpy()
        got = numbers[tensor["offset"] :][: expected.size].reshape(tensor["shape"])
        np.testing.assert_array_equal(got, expected)


def test_a_trace_can_be_of_a_snapshot(with_snapshot):
    translator, early = with_snapshot
    asked = {"kind": "trace", **IDS, "changes": {"checkpoint": 16}, "names": ["logits"]}
    got = values(*Remote(translator).answer(asked))["logits"]
    np.testing.assert_allclose(got, recorded(early.half().float())["logits"][0], atol=1e-5)
    now = values(*Remote(translator).answer({**asked, "changes": {}}))["logits"]
    np.testing.assert_array_equal(now, recorded(translator.model)["logits"][0])


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({}, "kind: .*got None"),
        ({"kind": ["trace"]}, "kind: "),
        ({"kind": "encode", "side": "left", "text": ""}, "encode: side"),
        ({"kind": "encode", "side": "source", "text": 3}, "encode: text"),
        ({"kind": "encode", "side": "source", "text": "", "more": 1}, "encode: more"),
        ({"kind": "trace", "source_ids": [4.5], "target_ids": [1]}, "trace: source_ids.0"),
        ({"kind": "trace", "source_ids": [], "target_ids": [1]}, r"ids: expected 1 to \d+, got 0"),
        ({"kind": "trace", "source_ids": [4] * 1076, "target_ids": [1]}, r"ids: expected 1 to \d+, got 1076"),
        ({"kind": "trace", "source_ids": [999], "target_ids": [1]}, "999"),
        ({"kind": "trace", "source_ids": [1 << 63], "target_ids": [1]}, "expected numbers from 0"),
        ({"kind": "trace", "source_ids": [4], "target_ids": [-1]}, "expected numbers from 0"),
        ({**SEARCH, "prefix_ids": [1 << 63]}, "expected numbers from 0"),
        ({"kind": "trace", **IDS, "names": ["logits"] * 2}, "each point once"),
        ({"kind": "trace", **IDS, "names": ["logit"]}, "did you mean 'logits'"),
        ({"kind": "trace", **IDS, "changes": {"ablate": {}}}, "did you mean 'ablated'"),
        ({"kind": "trace", **IDS, "changes": {"checkpoint": [1]}}, "checkpoint"),
        ({"kind": "trace", **IDS, "changes": {"checkpoint": 3}}, "no snapshot of step 3"),
        ({"kind": "trace", **IDS, "changes": {"masks": {CROSS: [[1075, 0, True]]}}}, "masks.*0 to 1074, got 1075"),
        ({**SEARCH, "changes": {"masks": {CROSS: [[0, 1075, True]]}}}, "masks: a position: expected 0 to 1074"),
        (
            {**SEARCH, "changes": {"overrides": {CROSS: [[0, 1075, [1.0]]]}}},
            "overrides: a position: expected 0 to 1074",
        ),
        ({**SEARCH, "beam_size": 65}, "beam_size: expected 1 to 64, got 65"),
        ({**SEARCH, "beam_size": 0}, r"decoding\.beam_size: expected"),
        ({"kind": "checkpoint", "step": 3}, "no snapshot of step 3; it has none"),
        ({"kind": "parameters", "names": ["output.wight"]}, "no weights 'output.wight'.*output.weight"),
        ({"kind": "parameters", "names": ["output.weight"], "rows": [14]}, r"rows of output.weight.* \[14, 24\]"),
        (
            {"kind": "parameters", "names": ["encoder.layers.0.feed_forward.expand.bias"], "rows": [0]},
            r"rows: expected rows of .*expand.bias, which has the shape \[32\]",
        ),
        ({**GRADIENT, "row": 3}, "gradient: expected a row below 3, and a word and a rival below 14"),
        ({**GRADIENT, "rival": -1}, "gradient: expected a row below 3"),
        ({**GRADIENT, "word": "le"}, "gradient: word"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_an_invalid_question_is_an_error_with_the_reason(make_translator, question, message):
    with pytest.raises(GlassformerError, match=message):
        Remote(make_translator()).answer(question)


@pytest.mark.slow
def test_questions_from_many_threads_are_independent(make_translator):
    remote = Remote(make_translator())
    questions = [{**SEARCH, "changes": {"mistakes": mistakes}} for mistakes in ([], ["no_causal_mask"], ["mask_zero"])]
    alone = [remote.answer(question)[0] for question in questions]
    with ThreadPoolExecutor(6) as threads:
        together = list(threads.map(lambda question: remote.answer(question)[0], questions * 4))
    assert together == alone * 4
    assert alone[0] != alone[1]
