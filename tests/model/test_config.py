"""A configuration derives missing values, and refuses impossible ones."""

import dataclasses
import json
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
from glassformer.model.config import PRESETS, Activation
from tiers import in_tiers

UNLIKE = {"tiny", "small", "table3-B-dk16", "table3-E-learned"}
"""Presets of different kinds; test_transformer.py counts the parameters of the others."""
widths = st.integers(1, 64)
configs = st.fixed_dictionaries(
    {"d_model": widths, "heads": widths, "d_k": widths, "d_v": widths, "dropout": st.floats(0, 0.99)},
    optional={
        "d_ff": widths,
        "norm": st.sampled_from(["post", "pre"]),
        "positions": st.sampled_from(["interleaved", "halves", "learned", "none"]),
        "activation": st.sampled_from(get_args(Activation)),
        "tie_output": st.booleans(),
        "output_bias": st.booleans(),
        "final_norm": st.booleans(),
        "tie_embeddings": st.just(False),
    },
)
vocabularies = st.one_of(
    st.integers(3, 99).map(lambda size: {"vocab_size": size}),
    st.tuples(st.integers(3, 99), st.integers(3, 99)).map(
        lambda sizes: {"source_vocab_size": sizes[0], "target_vocab_size": sizes[1]}
    ),
)


def test_the_defaults_are_the_base_model_of_the_paper():
    config = gf.ModelConfig(vocab_size=37000)
    assert (config.d_model, config.heads, config.d_ff, config.dropout) == (512, 8, 2048, 0.1)
    assert (config.encoder_layers, config.decoder_layers, config.norm) == (6, 6, "post")
    assert (config.activation, config.positions) == ("relu", "interleaved")
    assert (config.attention_dropout, config.activation_dropout) == (0, 0)
    assert not config.final_norm
    assert not config.output_bias
    assert (config.pad_id, config.bos_id, config.eos_id) == (0, 1, 2)


@pytest.mark.parametrize(("norm", "expected"), [("post", False), ("pre", True)])
def test_only_pre_norm_has_final_norms_unless_told_otherwise(norm, expected):
    assert gf.ModelConfig(vocab_size=9, norm=norm).final_norm == expected
    assert gf.ModelConfig(vocab_size=9, norm=norm, final_norm=not expected).final_norm != expected


def test_a_configuration_written_before_final_norms_were_a_choice_is_read_as_it_was():
    values = gf.ModelConfig(vocab_size=9, norm="pre").to_dict()
    del values["final_norm"], values["output_bias"]
    assert gf.ModelConfig.from_dict(values) == gf.ModelConfig(vocab_size=9, norm="pre")


def test_the_big_preset_is_the_big_model_of_the_paper():
    config = gf.ModelConfig.preset("big", vocab_size=37000)
    assert (config.d_model, config.heads, config.d_k, config.d_v) == (1024, 16, 64, 64)
    assert (config.d_ff, config.dropout, config.encoder_layers) == (4096, 0.3, 6)


def test_head_widths_are_derived_separately():
    config = gf.ModelConfig(vocab_size=11, d_model=24, heads=3)
    assert (config.d_k, config.d_v) == (8, 8)
    config = gf.ModelConfig(vocab_size=11, d_model=24, heads=3, d_k=5)
    assert (config.d_k, config.d_v) == (5, 8)


def test_given_head_widths_need_no_divisor():
    assert gf.ModelConfig(vocab_size=11, d_model=10, heads=3, d_k=5, d_v=7).d_k == 5


def test_a_joint_vocabulary_shares_all_three_matrices():
    config = gf.ModelConfig(vocab_size=11)
    assert (config.source_vocab_size, config.target_vocab_size) == (11, 11)
    assert config.tie_embeddings
    assert config.tie_output


def test_two_vocabularies_share_no_embedding_by_default():
    config = gf.ModelConfig(source_vocab_size=11, target_vocab_size=13)
    assert config.vocab_size is None
    assert not config.tie_embeddings
    assert config.tie_output
    assert not gf.ModelConfig(source_vocab_size=11, target_vocab_size=11).tie_embeddings
    assert gf.ModelConfig(source_vocab_size=11, target_vocab_size=11, tie_embeddings=True).tie_embeddings


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "vocab_size: expected a positive integer, got nothing"),
        ({"source_vocab_size": 11}, "vocab_size: expected a positive integer, got nothing"),
        ({"vocab_size": 11, "target_vocab_size": 13}, "vocab_size: expected the sizes of source and target"),
        ({"source_vocab_size": 11, "target_vocab_size": 13, "tie_embeddings": True}, "got 11 and 13"),
        ({"vocab_size": 11, "heads": 3}, "heads: expected a divisor of model.d_model = 512, got 3"),
        ({"vocab_size": 11, "heads": 0}, "heads: expected an integer from 1 to 4,096, got 0"),
        ({"vocab_size": 11, "d_ff": 0}, "d_ff: expected an integer from 1 to 1,048,576, got 0"),
        ({"vocab_size": 11, "d_ff": 2.5}, "d_ff: expected an integer .*, got 2.5"),
        ({"vocab_size": 11, "decoder_layers": -1}, "decoder_layers: expected an integer .*, got -1"),
        ({"vocab_size": 11, "dropout": 1.0}, "dropout: expected a number from 0 to 0.999, got 1.0"),
        ({"vocab_size": 11, "d_v": 100_000}, "d_v: expected an integer from 1 to 65,536, got 100000"),
        ({"vocab_size": 11, "encoder_layers": True}, "encoder_layers: expected an integer from 1 to 1,000, got True"),
        ({"vocab_size": 11, "dropout": False}, "dropout: expected a number .*, got False"),
        ({"vocab_size": 11, "attention_dropout": float("nan")}, "attention_dropout: expected a number .*, got nan"),
        ({"vocab_size": 11, "eos_id": 1}, r"expected three different ids from 0 to 10, .*, got \(0, 1, 1\)"),
        ({"vocab_size": 11, "pad_id": -1}, "pad_id: expected an integer from 0 to 10,000,000, got -1"),
        ({"vocab_size": 11, "eos_id": 11}, "from 0 to 10"),
        ({"source_vocab_size": 3, "target_vocab_size": 9, "bos_id": 3}, "from 0 to 2"),
        ({"vocab_size": 11, "norm": "prr"}, r"norm: expected one of post, pre, got 'prr' \(did you mean 'pre'"),
        ({"vocab_size": 11, "positions": "half"}, "did you mean 'halves'"),
        ({"vocab_size": 11, "activation": "tanh"}, "expected one of relu, gelu, silu"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_an_impossible_setting_is_named(settings, complaint):
    with pytest.raises(gf.ConfigError, match=complaint):
        gf.ModelConfig(**settings)


def test_an_unknown_field_is_an_error_that_suggests_the_nearest():
    with pytest.raises(gf.ConfigError, match=r"model\.num_heads: unknown field \(did you mean 'heads'\?\)"):
        gf.ModelConfig.from_dict({"vocab_size": 11, "num_heads": 8})
    with pytest.raises(gf.ConfigError, match=r"unknown field"):
        gf.ModelConfig.preset("tiny", vocab_size=11, format_version=1)


def test_an_unknown_preset_is_an_error_that_suggests_the_nearest():
    with pytest.raises(gf.ConfigError, match="did you mean 'tiny'"):
        gf.ModelConfig.preset("tinny", vocab_size=11)


def test_a_configuration_cannot_be_changed():
    config = gf.ModelConfig(vocab_size=11)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 7


@pytest.mark.slow
@given(vocabularies, configs)
def test_json_gives_the_same_configuration_back(vocabulary, settings):
    config = gf.ModelConfig(**vocabulary, **settings)
    assert gf.ModelConfig.from_json(config.to_json()) == config
    assert gf.ModelConfig.from_dict(config.to_dict()) == config


def test_json_of_a_newer_format_is_an_error():
    values = json.loads(gf.ModelConfig(vocab_size=11).to_json())
    assert values["format_version"] == 1
    with pytest.raises(gf.CheckpointVersionError, match="format 2: this glassformer reads formats up to 1"):
        gf.ModelConfig.from_json(json.dumps({**values, "format_version": 2, "shiny": True}))


@pytest.mark.slow
@pytest.mark.parametrize("preset", in_tiers(PRESETS, UNLIKE))
def test_every_preset_builds_a_model(preset):
    with torch.device("meta"):
        model = gf.Transformer(gf.ModelConfig.preset(preset, vocab_size=11))
        ids = torch.ones(1, 3, dtype=torch.long)
        assert model(ids, ids).shape == (1, 3, 11)


def test_a_preset_can_be_overridden():
    config = gf.ModelConfig.preset("big", vocab_size=11, heads=4, dropout=0.0)
    assert (config.d_k, config.dropout, config.d_ff) == (256, 0.0, 4096)


@pytest.mark.parametrize("heads", [1, 4, 16, 32])
def test_rows_a_of_table_3_need_equal_computation(heads):
    config = gf.ModelConfig.preset(f"table3-A-h{heads}", vocab_size=11)
    assert config.heads * config.d_k == config.heads * config.d_v == 512
