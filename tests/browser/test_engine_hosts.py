"""Pages without weights: Python behind the page computes. `web/tests/hosts.test.ts` tests pages without Python."""

import base64
from typing import Any

import pytest
import torch

from browser.engine import PageEngine, assert_same
from glassformer.translator import Translator
from glassformer.watch.explorer.packing import number_bytes
from glassformer.watch.explorer.payload import PageLimits, payload, recorded_payload, rounded
from glassformer.watch.explorer.remote import Remote
from traces import python_trace

SENTENCE = "the black cat sleeps ."
CROSS = "decoder.layers.0.cross_attention"
LARGE: dict[str, Any] = {"limits": PageLimits(model=10), "host": "api"}
"""Arguments that make every model too large for the page, which Python then computes."""
HOST = """() => {
  globalThis.host = {
    async request(message) {
      const [header, parts] = await askPython(message);
      const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer;
      return { message: header, buffers: parts.map(bytes) };
    },
  };
}"""


def remote_page(page: Any, translator: Translator, shown: dict[str, Any]) -> PageEngine:
    """Return the engine of a page that asks Python through the test's own channel."""
    remote = Remote(translator)

    def ask(message: dict[str, Any]) -> list[Any]:
        header, arrays = remote.answer(message)
        return [header, [base64.b64encode(number_bytes(array)).decode() for array in arrays]]

    page.expose_function("askPython", ask)
    page.evaluate(HOST)
    return PageEngine(page, shown)


def ids(translator: Translator) -> list[int]:
    return [*translator.bundle.source_tokenizer.encode(SENTENCE), 2]


def test_python_behind_the_page_computes_the_same_as_the_page(engine_page, make_translator):
    translator = make_translator()
    engine = remote_page(engine_page, translator, payload(translator, SENTENCE, **LARGE))
    assert engine_page.evaluate("engine.live") == "remote"
    got = engine.trace(ids(translator), [1, 5, 6], ablated={CROSS: [1]})
    plain = python_trace(translator.model, ids(translator), [1, 5, 6])
    assert list(got) == list(plain)
    assert torch.equal(got["encoder.output"], plain["encoder.output"])
    assert not got[f"{CROSS}.heads"][1].any()
    assert engine_page.evaluate("module.parity(engine, payload)") < 1e-5
    assert engine.first_difference(ids(translator), [1, 5, 6], ablated={CROSS: [1]}) == f"{CROSS}.heads"


def test_python_behind_the_page_searches(engine_page, make_translator):
    translator = make_translator()
    engine = remote_page(engine_page, translator, payload(translator, SENTENCE, **LARGE))
    [expected] = translator.translate([SENTENCE], n_best=2)
    best, second = engine.search(ids(translator), nBest=2)["hypotheses"]
    assert best["text"] == expected.text
    assert best["tokenLogProbs"] == pytest.approx(expected.token_log_probs, abs=1e-5)
    assert second["score"] == pytest.approx(expected.alternatives[0].score, abs=1e-5)
    changes = {"patches": [{"point": "encoder.output", "sourceIds": [4, 2], "targetIds": [1], "positions": [[0, 0]]}]}
    found = engine.search(ids(translator), changes=changes | {"mistakes": ["no_scale"]})
    assert found["tree"][0].keys() == {
        *("id", "parent", "position", "token", "text", "tokenLogProb", "logProb", "state", "score")
    }


def test_page_python_and_recording_end_an_endless_output_at_the_same_token(engine_page, make_translator):
    translator = make_translator(extra_length=7)
    with torch.no_grad():
        translator.model.output.weight[2] *= -1  # makes <eos> improbable
    shown, recorded = (make(translator, SENTENCE) for make in (payload, recorded_payload))
    asked = ids(translator)
    by_page = PageEngine(engine_page, shown).search(asked)
    by_recording = PageEngine(engine_page, recorded).search(asked)
    by_python = remote_page(engine_page, translator, payload(translator, SENTENCE, **LARGE)).search(asked)
    found = [[one["ids"] for one in search["hypotheses"]] for search in (by_page, by_recording, by_python)]
    assert found[1] == found[2]
    assert [*map(len, found[0])] == [*map(len, found[1])]  # the weights in the page are rounded, so tokens may differ
    assert found[0][0] == [*shown["trace"]["target_ids"][1:], 2]
    assert max(map(len, found[0])) == len(asked) + 7


def test_a_checkpoint_can_be_fetched_from_python(engine_page, make_translator):
    from glassformer.training.snapshots import Snapshots

    translator, earlier = make_translator(), make_translator(seed=5)
    Snapshots(translator.bundle.folder / "snapshots", keep=6).save(earlier.model, 64)
    shown = payload(translator, SENTENCE, checkpoints=6, host="api")
    assert shown["checkpoints"] == [{"step": 64, "data": None}]
    engine = remote_page(engine_page, translator, shown)
    assert engine_page.evaluate("engine.live") is True
    expected = python_trace(rounded(earlier.model), [4, 5, 2], [1, 5])
    assert_same(engine.trace([4, 5, 2], [1, 5], checkpoint=64), expected)


def test_a_checkpoint_of_a_larger_model_runs_in_python(engine_page, make_translator):
    from glassformer.training.snapshots import Snapshots

    translator, earlier = make_translator(), make_translator(seed=5)
    Snapshots(translator.bundle.folder / "snapshots", keep=6).save(earlier.model, 64)
    shown = payload(translator, SENTENCE, checkpoints=6, **LARGE)
    assert shown["checkpoints"] == [{"step": 64, "data": None}]
    engine = remote_page(engine_page, translator, shown)
    expected = python_trace(rounded(earlier.model), [4, 5, 2], [1, 5])
    assert_same(engine.trace([4, 5, 2], [1, 5], checkpoint=64), expected)
