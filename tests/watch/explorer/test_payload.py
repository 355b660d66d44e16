"""The data of a page: weights in half precision, PyTorch's numbers from these weights, the curve, and size limits."""

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import glassformer as gf
from glassformer.corpus.tasks import CLASSIC, TASKS
from glassformer.errors import ConfigError, DataError
from glassformer.recipes.toml import from_dict
from glassformer.training.snapshots import Snapshots
from glassformer.translator import Translator
from glassformer.watch.explorer.packing import as_base64, pack, quantised
from glassformer.watch.explorer.payload import FRAME, PageLimits, fits_page, payload, rounded
from models import new_bundle

SIZES = {"d_model": 12, "heads": 2, "d_ff": 14, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
LINES = ["the cat sees the dog", "the dog sleeps"]


@pytest.fixture
def make(tmp_path) -> Callable[..., Translator]:
    """Return a function that makes a translator with a random model."""

    def make_one(
        data: dict[str, Any] | None = None,
        tokenizer: dict[str, Any] | None = None,
        decoding: dict[str, Any] | None = None,
        **model: Any,
    ) -> Any:
        values = {
            "data": data or {"source": "a.tsv"},
            "tokenizer": {"kind": "words", "joint": False, **(tokenizer or {})},
            "model": {**SIZES, **model},
            "decoding": {"beam_size": 2, "length_penalty": 0.8, **(decoding or {})},
        }
        configuration = from_dict(values)
        bundle = new_bundle(tmp_path / "small", configuration, LINES, LINES)
        bundle.folder.mkdir(exist_ok=True)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            network = gf.Transformer(bundle.model_config).eval()
        return Translator(bundle, network)

    return make_one


def unpacked(layout: list[dict[str, Any]], data: str, dtype: str) -> dict[str, torch.Tensor]:
    numbers = np.frombuffer(base64.b64decode(data), f"<{dtype}").astype(np.float32)
    sizes = [int(np.prod(one["shape"])) for one in layout]
    assert [one["offset"] for one in layout] == [sum(sizes[:i]) for i in range(len(sizes))]
    assert len(numbers) == sum(sizes)
    return {
        one["name"]: torch.from_numpy(numbers[one["offset"] :][:size].copy()).view(one["shape"])
        for one, size in zip(layout, sizes, strict=True)
    }


def test_the_payload_is_plain_data_with_the_expected_parts(make):
    got = payload(make())
    assert json.loads(json.dumps(got)) == got
    assert list(got) == [
        *("format_version", "recorded", "name", "config", "points", "mistakes", "parameters", "decoding"),
        *("alignment", "sentence"),
        *(
            "examples",
            "openings",
            "languages",
            "label_smoothing",
            "story",
            "strings",
            "styles",
            "source",
            "target",
            "weights",
            "step",
            "curve",
            "trace",
            "search",
            "host",
            "checkpoints",
            "left_out",
        ),
    ]
    assert (got["name"], {**got["decoding"], "beam_size": 2, "length_penalty": 0.8}) == ("small", got["decoding"])
    assert (got["search"], got["host"], got["checkpoints"], got["left_out"]) == (None, None, [], [])


@pytest.mark.parametrize(
    ("source", "target", "kind", "has_pair"),
    [
        ("en", "fr", "words", True),
        ("de", "fr", "words", False),
        ("en", "", "words", False),
        ("en", "ru", "characters", False),
    ],
)
def test_the_story_has_its_two_sentences_if_the_model_translates_them(tmp_path, source, target, kind, has_pair):
    pair = [example.source for example in CLASSIC[1:3]]
    data = {"source": "a.tsv", "source_language": source, "target_language": target}
    configuration = from_dict({"data": data, "tokenizer": {"kind": kind, "joint": False}, "model": SIZES})
    bundle = new_bundle(tmp_path / "run", configuration, pair, pair)
    translator = Translator(bundle, gf.Transformer(bundle.model_config).eval())
    assert payload(translator, story="first")["story"] == {"opens": "first", "pair": pair if has_pair else []}


def test_a_model_that_does_not_know_a_word_of_the_story_has_no_pair(make):
    languages = {"source_language": "en", "target_language": "fr"}
    assert payload(make(data={"source": "a.tsv", **languages}))["story"] == {"opens": "never", "pair": []}


@pytest.mark.parametrize("joint", [True, False])
def test_weights_are_stored_as_halves_each_matrix_once(make, joint):
    translator = make(tokenizer={"joint": joint}, tie_output=joint)
    got = payload(translator)
    weights = unpacked(got["weights"]["tensors"], got["weights"]["data"], "f2")
    assert list(weights) == [name for name, _ in translator.model.named_parameters()]
    assert got["parameters"] == sum(weight.numel() for weight in weights.values())
    for name, parameter in translator.model.named_parameters():
        assert torch.equal(weights[name], parameter.detach().half().float())
    assert (got["target"] is None) == joint
    assert got["weights"]["dtype"] == "float16"


def test_the_trace_shows_the_rounded_model_and_its_own_translation(make):
    translator = make()
    got = payload(translator, "the cat sleeps")["trace"]
    points = unpacked(got["points"], got["data"], "f4")
    model = rounded(translator.model)
    assert got["source_ids"] == [*translator.bundle.source_tokenizer.encode("the cat sleeps"), 2]
    [found] = Translator(translator.bundle, model).translate(["the cat sleeps"])
    assert translator.bundle.target_tokenizer.tokens(got["target_ids"]) == ["<bos>", *found.tokens[:-1]]
    with torch.no_grad(), gf.record(model) as trace:
        model(torch.tensor([got["source_ids"]]), torch.tensor([got["target_ids"]]))
    assert all(torch.equal(value, trace[name][0]) for name, value in points.items())
    kinds = {name.rpartition(".")[2] for name in points}
    assert kinds == {"embedding", "input", "weights", "output", "normed", "logits"}


def test_the_embedded_translation_is_as_long_as_the_run_allows(make):
    translator = make(decoding={"extra_length": 7})
    got = payload(translator, "the cat sleeps")["trace"]
    model = rounded(translator.model)
    [found] = Translator(translator.bundle, model).translate(["the cat sleeps"])
    assert found.status == "max_length"
    assert len(got["target_ids"]) == len(found.tokens) == len(got["source_ids"]) + 7


@pytest.mark.slow
def test_only_the_fitting_part_of_a_long_sentence_is_compared(make):
    sentence = "the cat " * 30
    whole = payload(make(), sentence)["trace"]
    part = payload(make(), sentence, limits=PageLimits(comparison=60_000))["trace"]
    names = [one["name"] for one in part["points"]]
    assert len(part["data"]) <= 60_000 < len(whole["data"])
    assert {"logits", "encoder.output", "decoder.output"} <= {*names}
    assert "encoder.layers.0.self_attention.weights" not in names
    assert names == [one["name"] for one in whole["points"] if one["name"] in names]


def test_the_model_is_unchanged(make):
    translator = make()
    translator.model.double().train()
    before = {name: value.clone() for name, value in translator.model.state_dict().items()}
    payload(translator)
    after = translator.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert translator.model.training
    assert translator.model.output.weight is translator.model.target.tokens.weight


def test_a_model_that_is_too_large_for_a_page_needs_python_behind_it(make):
    count = sum(one.numel() for one in make().model.parameters())
    with pytest.raises(ConfigError, match=rf"at most 10 parameters for a page, got {count:,}.*0 MB; use --recorded"):
        payload(make(), limits=PageLimits(model=10))
    assert [fits_page(make(), PageLimits(model=most)) for most in (count - 1, count)] == [False, True]
    got = payload(make(), limits=PageLimits(model=10), host="api")
    assert (got["weights"], got["recorded"], got["trace"]["dtype"]) == (None, False, "float32")


def write_snapshots(translator: Translator, *steps: int) -> None:
    for step in steps:
        Snapshots(translator.bundle.folder / "snapshots", keep=99).save(translator.model, step)


@pytest.mark.slow
def test_snapshots_are_spread_logarithmically_over_the_training(make):
    translator = make()
    write_snapshots(translator, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
    assert [one["step"] for one in payload(translator, checkpoints=3)["checkpoints"]] == [8, 128, 2048]
    assert [one["step"] for one in payload(translator, checkpoints=1)["checkpoints"]] == [2048]
    (translator.bundle.folder / "metrics.jsonl").write_text(
        '{"type": "validation", "step": 3000, "loss": 1, "metric": null, "best": true}'
    )
    assert [one["step"] for one in payload(translator, checkpoints=2)["checkpoints"]] == [8, 128]
    got = payload(translator, checkpoints=99)
    assert len(got["checkpoints"]) == 6
    assert got["left_out"] == []
    parts = [part for weight in rounded(translator.model).parameters() for part in quantised(weight.detach().numpy())]
    assert all(one["data"] == as_base64(parts) for one in got["checkpoints"])


@pytest.mark.slow
def test_snapshots_that_do_not_fit_are_listed(make):
    translator = make()
    write_snapshots(translator, 8, 16, 32, 64)
    whole = payload(translator, checkpoints=4)
    size = len(json.dumps(whole)) - 2 * len(whole["checkpoints"][0]["data"])
    got = payload(translator, checkpoints=4, limits=PageLimits(page=size + FRAME))
    assert len(json.dumps(got)) <= size
    assert [one["step"] for one in got["checkpoints"]] == [8, 64]
    assert got["left_out"] == [16, 32]
    assert payload(translator, checkpoints=4, limits=PageLimits(page=0))["left_out"] == [8, 16, 32, 64]


def test_snapshots_stay_with_python_behind_the_page(make):
    translator = make()
    write_snapshots(translator, 8, 64)
    got = payload(translator, checkpoints=6, host="api")
    assert got["checkpoints"] == [{"step": 8, "data": None}, {"step": 64, "data": None}]
    assert got["host"] == {"url": "api"}
    got = payload(translator, checkpoints=6, host="api", limits=PageLimits(model=10))
    assert len(got["checkpoints"]) == 2


@pytest.mark.slow
def test_the_curve_is_thinned_and_includes_the_kept_step(make):
    translator = make()
    steps = [{"type": "step", "step": step, "loss": 9 / step, "epoch": 1, "seconds": 1} for step in range(1, 1002)]
    validations = [
        {"type": "validation", "step": s, "loss": 1.5, "metric": None, "best": s < 800} for s in (300, 600, 900)
    ]
    end = {"type": "end", "step": 1001, "reason": "steps", "seconds": 1}
    lines = [json.dumps(line) for line in [*steps, *validations, end]]
    (translator.bundle.folder / "metrics.jsonl").write_text("\n".join([*lines, '{"type": "st']), encoding="utf-8")
    got = payload(translator)
    loss = got["curve"]["loss"]
    assert len(loss) == 200
    assert (loss[0], loss[-1]) == ([1, 9.0], [1001, 9 / 1001])
    assert got["curve"]["validation"] == [[300, 1.5], [600, 1.5], [900, 1.5]]
    assert got["step"] == 600
    assert payload(make())["curve"]["loss"] == loss


def test_a_run_without_a_log_has_no_curve(make):
    got = payload(make())
    assert (got["step"], got["curve"]) == (None, {"loss": [], "validation": []})


@pytest.mark.slow
def test_the_first_sentence_suits_the_model(make):
    classic = payload(make(data={"task": "english-french"}))
    assert "because it was too tired" in classic["sentence"]
    assert classic["sentence"] == classic["examples"][0]
    assert sorted(classic["examples"]) == sorted(example.source for example in CLASSIC)
    assert payload(make(data={"task": "copy"}))["sentence"] == TASKS["copy"](1).splits["test"][0].source
    assert payload(make())["sentence"] == "the dog cat sees sleeps"
    assert payload(make(), "a dog")["sentence"] == "a dog"


def test_the_first_sentence_of_a_subword_model_has_words_not_bytes(make):
    translator = make(tokenizer={"kind": "unigram", "byte_fallback": True, "vocab_size": 300, "joint": True})
    sentence = payload(translator)["sentence"]
    assert sentence
    assert set(sentence) <= set(" ".join(LINES))


@pytest.mark.parametrize(("sentence", "message"), [(" ", "expected 1 to 7 tokens, got 0"), ("cat " * 8, "got 8")])
def test_a_sentence_that_cannot_be_translated_is_an_error(make, sentence, message):
    translator = make(data={"source": "a.tsv", "max_length": 8}, positions="learned", max_length=8)
    with pytest.raises(DataError, match=message):
        payload(translator, sentence)


def test_packing_keeps_numbers_in_order():
    tensors = {"a": torch.arange(6.0).view(2, 3).T, "b": torch.tensor([-0.5])}
    got = pack(tensors, "float32")
    assert got["tensors"][1] == {"name": "b", "shape": [1], "offset": 6}
    assert unpacked(got["tensors"], got["data"], "f4")["a"].tolist() == [[0, 3], [1, 4], [2, 5]]
