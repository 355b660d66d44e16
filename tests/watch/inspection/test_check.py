"""The self-test passes correct models of every kind, and names every mistake."""

import copy
import math

import pytest
import torch
from torch.nn import functional as F

import glassformer as gf
from glassformer import bundle
from glassformer.model import attention, cache, embedding, positions, residual, transformer
from glassformer.watch.inspection import check as checking
from glassformer.watch.inspection.mistakes import MISTAKES, plant

SETTINGS = [
    {},
    {"norm": "pre"},
    {"positions": "halves", "activation": "gelu"},
    {"positions": "learned", "activation": "silu", "norm": "pre", "max_length": 12},
    {"positions": "none", "heads": 1, "d_model": 12},
    {"source_vocab_size": 23, "vocab_size": 23, "encoder_layers": 1, "decoder_layers": 3},
    {"tie_output": False, "pad_id": 5, "bos_id": 3, "eos_id": 0},
    {"source_vocab_size": 4, "target_vocab_size": 4, "attention_dropout": 0.5},
]


@pytest.fixture
def model(make_model):
    """A model in the usual float32, in training mode."""
    return make_model().float().train()


def failed(report):
    return {one.name: one for one in report.failures}


# Correct models


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_correct_model_passes_in_every_configuration(make_model, settings):
    report = gf.check(make_model(**settings).float())
    assert report.passed, str(report)
    assert [one.status for one in report.checks] == ["passed"] * 12


def test_a_check_leaves_the_model_unchanged(model):
    before, random_state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    gf.check(model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert {value.dtype for value in model.state_dict().values()} == {torch.float32}
    assert all(part.training for part in model.modules())
    assert torch.equal(torch.get_rng_state(), random_state)
    assert model.output.weight is model.target.tokens.weight


@pytest.mark.slow
def test_the_measured_differences_are_rounding_errors(model):
    measured = {one.name: one.measured for one in gf.check(model).checks}
    assert all(measured[name] < 1e-11 for name in ("recording", "causality", "padding", "batch", "cache", "attention"))
    assert measured["source"] > 1e-3


# The classic mistakes


@pytest.mark.parametrize(
    ("mistake", "norm"),
    [
        *((one, "post") for one in MISTAKES),
        *((one, "pre") for one in ("norm_order", "residual_normed", "unbiased_norm")),
    ],
)
@pytest.mark.slow
def test_each_classic_mistake_is_named(make_model, mistake, norm):
    model = make_model(norm=norm)
    with plant(model, mistake):
        report = gf.check(model)
    reference = failed(report)["reference"]
    assert reference.likely == (MISTAKES[mistake].title,)
    assert reference.note == f"first difference at {MISTAKES[mistake].first(model.config)}"
    others = failed(report).keys() - {"reference"}  # mistakes that are also found without the reference
    assert ("causality" in others) == ("cache" in others) == bool(others) == (not MISTAKES[mistake].causal)
    assert others <= set(MISTAKES[mistake].fails)


def without_scale(query, key):
    return query @ key.mT


def half_masked(scores, mask=None):
    return scores.softmax(-1) if mask is None else scores.masked_fill(~mask, 0.0).softmax(-1)


def padding_alone(ids, pad_id):
    return (ids != pad_id)[:, None, None, :].expand(-1, 1, ids.shape[1], -1)


def viewed(x, heads):
    return x.reshape(len(x), heads, x.shape[1], -1)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("module", "name", "wrong", "mistake"),
    [
        (attention, "attention_scores", without_scale, "no_scale"),
        (attention, "attention_weights", half_masked, "mask_zero"),
        (attention, "split_heads", viewed, "no_transpose"),
        (transformer, "target_mask", padding_alone, "no_causal_mask"),
    ],
)
def test_a_wrong_function_of_the_package_is_named(model, monkeypatch, module, name, wrong, mistake):
    monkeypatch.setattr(module, name, wrong)
    assert failed(gf.check(model))["reference"].likely == (MISTAKES[mistake].title,)


@pytest.mark.usefixtures("unchecked")
def test_wrong_methods_of_the_model_are_named(model, monkeypatch):
    monkeypatch.setattr(embedding.math, "sqrt", math.sqrt)  # the factor is computed when a model is made:
    for side in (model.source, model.target):
        side.scale = 1.0
    assert failed(gf.check(model))["reference"].likely == ("embedding not multiplied by √d_model",)


def test_a_doubled_exponent_in_the_table_is_named(model, monkeypatch):
    def table(length, d_model, layout, dtype, device):
        i = torch.arange(d_model, dtype=torch.float64)
        angles = torch.arange(length)[:, None] / 10000 ** (2 * i / d_model)
        return torch.where(i % 2 == 0, angles.sin(), angles.cos()).to(dtype).to(device)

    monkeypatch.setattr(positions, "_sinusoid_table", table)
    assert failed(gf.check(model))["reference"].likely == ("exponent of the positions doubled",)


@pytest.mark.slow
def test_a_mistake_in_one_layer_is_located(model):
    model.decoder.layers[1].feed_forward_residual.norm.eps = 1e-3
    reference = failed(gf.check(model))["reference"]
    assert reference.note.startswith("first difference at decoder.layers.1.feed_forward.normed")
    assert "eps" in " ".join(reference.likely)


@pytest.mark.slow
def test_of_two_mistakes_the_first_is_named(model):
    with plant(model, "no_embedding_scale", "no_causal_mask"):
        reference = failed(gf.check(model))["reference"]
    assert reference.likely == ("embedding not multiplied by √d_model",)
    assert "no single known mistake" in reference.note


# Other mistakes


def test_a_cache_that_does_not_follow_the_beam_is_found(model, monkeypatch):
    def select(self, rows, sentences):
        layers = tuple(
            cache.LayerCache(one.memory.select(sentences), one.past and one.past.select(rows.sort().values))
            for one in self.layers
        )
        return cache.Cache(layers, self.memory_mask[sentences], self.length)

    monkeypatch.setattr(cache.Cache, "select", select)
    failures = failed(gf.check(model))
    assert list(failures) == ["cache"]
    assert "does not follow the beam" in failures["cache"].likely[0]


def test_stale_keys_of_a_finished_sentence_are_found(model, monkeypatch):
    right = cache.KeyValues.select
    monkeypatch.setattr(
        cache.KeyValues,
        "select",
        lambda self, index: (
            cache.KeyValues(self.key[: len(index)], self.value[: len(index)]) if len(index) == 2 else right(self, index)
        ),
    )
    failures = failed(gf.check(model))
    assert list(failures) == ["cache"]
    assert "stale" in failures["cache"].likely[1]


@pytest.mark.slow
def test_attention_to_padding_is_found(model, monkeypatch):
    monkeypatch.setattr(
        transformer, "padding_mask", lambda ids, _pad_id: torch.ones_like(ids, dtype=torch.bool)[:, None, None]
    )
    failures = failed(gf.check(model))
    assert {"padding", "batch", "attention"} <= failures.keys()
    assert "attention to padding" in failures["padding"].likely[0]


@pytest.mark.slow
def test_an_ignored_source_is_found(model):
    def zeros(memory):
        return torch.zeros_like(memory)

    with gf.intervene(model, {"encoder.output": zeros}):
        failures = failed(gf.check(model))
    assert failures["source"].measured < 1e-12
    assert any("gets zeros" in text for text in failures["source"].likely)
    assert "encoder.output" in failures["reference"].note


@pytest.mark.slow
def test_outputs_that_never_end_are_found(model):
    def never(logits):
        return logits.index_fill(-1, torch.tensor([2]), -torch.inf)

    with gf.intervene(model, {"logits": never}):
        failures = failed(gf.check(model))
    assert failures["<eos>"].measured == 0
    assert "<eos>" in failures["<eos>"].likely[0]


def test_dropout_left_on_is_found(model, monkeypatch):
    monkeypatch.setattr(residual.Dropout, "forward", lambda self, x: F.dropout(x, 0.1))
    report = gf.check(model)
    assert list(failed(report)) == ["determinism"]
    assert "dropout left on" in failed(report)["determinism"].likely[0]
    assert {one.status for one in report.checks} == {"passed", "failed", "skipped"}


def test_a_parameter_lost_in_saving_is_found(model, monkeypatch):
    right = bundle.write_tensors

    def write(tensors, path, facts):
        right({name: tensor for name, tensor in tensors.items() if "bias" not in name}, path, facts)

    monkeypatch.setattr(bundle, "write_tensors", write)
    failures = failed(gf.check(model))
    assert list(failures) == ["save and load"]
    assert "has no weight" in failures["save and load"].note


def test_a_weight_that_is_not_a_number_is_found(model):
    with torch.no_grad():
        model.encoder.layers[0].feed_forward.expand.bias[3] = torch.nan
    report = gf.check(model)
    assert failed(report)["finite weights"].measured == 1
    assert failed(report)["finite weights"].note == "encoder.layers.0.feed_forward.expand.bias"
    assert failed(report).keys() <= {"finite weights", "determinism", "save and load"}


def test_a_different_scale_in_the_fused_kernel_is_found(model, monkeypatch):
    right = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *inputs: right(*inputs, scale=1.0))
    assert list(failed(gf.check(model))) == ["recording"]


def test_a_model_that_raises_an_error_fails_with_the_reason(model):
    del model.decoder.layers[0].cross_attention.output_projection
    failures = failed(gf.check(model))
    assert "AttributeError" in failures["determinism"].note
    assert "output_projection" in failures["save and load"].note


# Runs and reports


@pytest.mark.slow
def test_a_report_can_be_plain_data_and_text(model):
    with plant(model, "no_scale"):
        report = gf.check(model)
    assert report.to_dict()["checks"][2]["likely"] == ["no √d_k"]
    assert "✗ reference" in str(report)
    assert "likely: no √d_k" in str(report)


@pytest.mark.usefixtures("unchecked")
def test_an_object_that_is_not_a_model_is_refused():
    with pytest.raises(gf.ConfigError, match="cannot check a list"):
        gf.check([])


def test_every_check_has_a_description():
    assert checking.CLAIMS.keys() == {"reference", *checking.LIKELY}
