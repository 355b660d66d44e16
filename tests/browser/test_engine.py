"""The page's forward pass against PyTorch's, at every point: the numbers on screen are the model's."""

import json

import pytest
import torch

from browser.engine import PageEngine, assert_same, decoded, halved, payload_of, python_trace
from glassformer.explorer.payload import pack

SOURCE, TARGET = [4, 9, 5, 17, 3, 2], [1, 7, 20, 5, 11]
JOINT = {"source_vocab_size": 23, "target_vocab_size": 23}

KINDS = {
    "paper": {},
    "post, halves, gelu, output of its own": {"positions": "halves", "activation": "gelu", "tie_output": False},
    "post, learned, silu, one matrix": {
        **JOINT,
        "positions": "learned",
        "activation": "silu",
        "tie_embeddings": True,
        "max_length": 29,
    },
    "post, no positions, joint, output of its own": {
        **JOINT,
        "positions": "none",
        "tie_embeddings": True,
        "tie_output": False,
    },
    "pre, interleaved, silu": {"norm": "pre", "activation": "silu"},
    "pre, halves, one matrix": {**JOINT, "norm": "pre", "positions": "halves", "tie_embeddings": True},
    "pre, learned, gelu": {"norm": "pre", "positions": "learned", "activation": "gelu", "max_length": 7},
    "pre, no positions, one head": {"norm": "pre", "positions": "none", "heads": 1, "encoder_layers": 1},
    "even width, three layers": {"d_model": 12, "positions": "halves", "decoder_layers": 3},
}


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_every_point_is_pytorchs(page, make_model, settings):
    model = halved(make_model, **settings)
    got = PageEngine(page, payload_of(model)).trace(SOURCE, TARGET)
    assert len(got) >= 30
    assert_same(got, python_trace(model, SOURCE, TARGET))


def test_padding_is_masked_as_in_pytorch(page, make_model):
    model = halved(make_model)
    padded = [4, 0, 9, 2, 0, 0], [1, 7, 0, 5, 0]
    assert_same(PageEngine(page, payload_of(model)).trace(*padded), python_trace(model, *padded))


def test_a_source_of_nothing_but_padding_attends_to_nothing(page, make_model):
    model = halved(make_model)
    got = PageEngine(page, payload_of(model)).trace([0, 0], [1, 4])
    assert_same(got, python_trace(model, [0, 0], [1, 4]))
    assert not got["decoder.layers.0.cross_attention.weights"].any()


def test_a_long_sentence_of_large_numbers_is_pytorchs(page, make_model):
    model = halved(make_model, d_model=31, d_ff=37)
    source, target = [4 + 3 * i % 15 for i in range(97)], [1, *(4 + 5 * i % 19 for i in range(88))]
    assert_same(PageEngine(page, payload_of(model)).trace(source, target), python_trace(model, source, target))


def test_the_page_knows_how_far_it_is_from_pytorch(page, make_model):
    model = halved(make_model)
    packed = pack(python_trace(model, SOURCE, TARGET), "float32")
    trace = {"source_ids": SOURCE, "target_ids": TARGET, "points": packed["tensors"], "data": packed["data"]}
    engine = PageEngine(page, payload_of(model) | {"trace": trace})
    assert page.evaluate("module.parity(engine, payload)") <= 1e-5
    page.evaluate("async () => (await engine.model()).weight('encoder.layers.1.feed_forward.contract.bias').data[3]++")
    assert page.evaluate("module.parity(engine, payload)") > 0.01
    assert engine.page.evaluate("engine.live") is True


def test_a_number_that_is_none_shows_in_the_parity(page, make_model):
    model = halved(make_model)
    packed = pack(python_trace(model, SOURCE, TARGET), "float32")
    trace = {"source_ids": SOURCE, "target_ids": TARGET, "points": packed["tensors"], "data": packed["data"]}
    PageEngine(page, payload_of(model) | {"trace": trace})
    page.evaluate("async () => { (await engine.model()).weight('output.weight').data[3] = NaN; }")
    assert page.evaluate("module.parity(engine, payload)") == float("inf")


def test_weights_may_come_as_bytes_that_are_not_aligned(page, make_model):
    engine = PageEngine(page, payload_of(halved(make_model)))
    expected = engine.trace(SOURCE, TARGET)
    page.evaluate("""async () => {
      const bytes = Uint8Array.from(atob(payload.weights.data), (character) => character.charCodeAt(0));
      const shifted = new Uint8Array(bytes.length + 1);
      shifted.set(bytes, 1);
      payload.weights.data = new DataView(shifted.buffer, 1);
      globalThis.engine = await module.createEngine(payload, null);
    }""")
    assert all(torch.equal(value, expected[name]) for name, value in engine.trace(SOURCE, TARGET).items())


def test_a_checkpoint_has_weights_of_its_own(page, make_model):
    model, earlier = halved(make_model), halved(make_model, dropout=0.5)
    checkpoint = {"step": 64, "data": pack(dict(earlier.named_parameters()), "float16")["data"]}
    engine = PageEngine(page, payload_of(model) | {"checkpoints": [checkpoint]})
    assert_same(engine.trace(SOURCE, TARGET, checkpoint=64), python_trace(earlier, SOURCE, TARGET))
    assert_same(engine.trace(SOURCE, TARGET, checkpoint=None), python_trace(model, SOURCE, TARGET))


@pytest.mark.parametrize("wrong", [{"checkpoint": 65}, {"sourceIds": [19]}, {"targetIds": [23]}])
def test_what_the_model_does_not_have_is_an_error(page, make_model, wrong):
    PageEngine(page, payload_of(halved(make_model)))
    asked = {"sourceIds": SOURCE, "targetIds": TARGET, "changes": {}, **wrong}
    if "checkpoint" in wrong:
        asked["changes"] = {"checkpoint": asked.pop("checkpoint")}
    message = page.evaluate("(asked) => engine.trace(asked).then(() => '', (error) => error.message)", asked)
    assert str(next(iter(wrong.values()))).strip("[]") in message


def test_more_positions_than_were_learned_are_an_error(page, make_model):
    PageEngine(page, payload_of(halved(make_model, positions="learned", max_length=5)))
    asked = {"sourceIds": SOURCE, "targetIds": TARGET}
    message = page.evaluate("(asked) => engine.trace(asked).catch((error) => error.message)", asked)
    assert message == "the source has 6 positions, the model has learned 5"


def test_a_point_that_is_not_there_is_an_error(page, make_model):
    PageEngine(page, payload_of(halved(make_model)))
    message = page.evaluate("""async () => {
      const trace = await engine.trace({ sourceIds: [4, 2], targetIds: [1] });
      return [trace.has("logits"), trace.has("logit"), await trace.get("logit").catch((error) => error.message)];
    }""")
    assert message == [True, False, 'there is no point "logit" in this trace']


def test_halves_are_decoded_exactly(page, make_model):
    PageEngine(page, payload_of(halved(make_model)))
    patterns = torch.arange(65536).to(torch.uint16)
    got = page.evaluate("""() => {
      const bytes = new Uint8Array(new Uint16Array(65536).map((_, i) => i).buffer);
      return base64(module.floatsOfHalves(bytes));
    }""")
    expected = patterns.view(torch.float16).float()
    values = decoded({"data": got, "shape": [65536]})
    assert torch.equal(values.isnan(), expected.isnan())
    assert torch.equal(values[~values.isnan()], expected[~expected.isnan()])


def test_the_error_function_is_exact_to_fifteen_digits(page, make_model):
    PageEngine(page, payload_of(halved(make_model)))
    x = torch.linspace(-7, 7, 2001, dtype=torch.float64)
    got = torch.tensor(json.loads(page.evaluate("(x) => JSON.stringify(x.map(module.erf))", x.tolist())))
    assert (got - torch.erf(x)).abs().max() < 2e-15


def test_words_are_cut_and_joined(page, make_model):
    PageEngine(page, payload_of(halved(make_model)))
    assert page.evaluate("engine.encode('source', 'w5 w18 cat')") == {
        "ids": [5, 18, 3],
        "tokens": ["w5", "w18", "<unk>"],
    }
    assert page.evaluate("engine.tokens('target', [22, 2])") == ["w22", "<eos>"]
    assert page.evaluate("engine.decode([22, 4, 2])") == "w22 w4"


def test_a_run_that_is_aborted_stops(page, make_model):
    PageEngine(page, payload_of(halved(make_model)))
    reason = page.evaluate("""() => {
      const asked = { sourceIds: [4, 2], targetIds: [1], signal: AbortSignal.abort("no longer") };
      return engine.trace(asked).catch((reason) => reason);
    }""")
    assert reason == "no longer"
