"""A CTranslate2 model is imported as a run that computes the same; other models give one sentence of error."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
from ctranslate2.converters import MarianConverter, OpenNMTPyConverter

import glassformer as gf
from glassformer.bundle import WEIGHTS, Bundle, read_weights
from glassformer.cli import main
from glassformer.errors import CheckpointError, ConfigError, VocabularyError
from glassformer.interop.ctranslate2.reader import ForeignTexts, import_ctranslate2_run
from glassformer.interop.ctranslate2.weights import imported_rows
from glassformer.interop.ctranslate2.writer import export_ctranslate2
from glassformer.model.alignment import Alignment
from interop.ctranslate2_folders import (
    OPENNMT,
    largest_difference,
    rounding_error,
    their_log_probs,
    write_folder,
    write_marian,
    write_opennmt,
)
from interop.small_runs import KINDS
from tiers import in_tiers

SOURCE, TARGET = [f"s{number}" for number in range(13)], [f"t{number}" for number in range(19)]
JOINT = [*SOURCE, *TARGET]
TOLERANCE = 1e-4
"""In these models, the order of sums in float32 changes results by up to 6e-6; a wrong row or table by more than 0.1.
"""
ROUNDINGS = 8
"""Maximum difference as a multiple of the run's own error in float32. Both programs round equally often, so differences
of 0.8 to 2 times this error are usual. The error is 1e-6 to 5e-6; without a final norm, where log probabilities reach
−100, it is 8e-5."""
activations = ctranslate2.specs.Activation


def imported(folder: Path, **texts: Any) -> Bundle:
    """Import a folder into a run next to the folder; return the run."""
    run = folder.with_name("run")
    shutil.rmtree(run, ignore_errors=True)
    return import_ctranslate2_run(folder, run, ForeignTexts(**texts)).bundle


def foreign(folder: Path, **settings: Any) -> Path:
    """Write a random model with the special tokens of OpenNMT, whose sources end with </s>."""
    config = {"add_source_eos": True, **settings.pop("config", {})}
    joint = settings.get("joint", False)
    source, target = (JOINT, JOINT) if joint else (SOURCE, TARGET)
    return write_folder(folder, [*OPENNMT, *source], [*OPENNMT, *target], config=config, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", in_tiers(KINDS, {"the paper's", "pre-norm without final norms, output bias of its own"})
)
def test_an_export_becomes_the_same_run_bit_for_bit(make_run, tmp_path, kind):
    run = make_run(**KINDS[kind])
    last = run.model_config.heads - 1  # the export puts the alignment head first
    alignment = Alignment(layer=run.model_config.decoder_layers - 1, heads=(last,), agreement=0.9, pairs=500)
    run = replace(run, alignment=alignment)
    before = read_weights(run.folder / WEIGHTS)
    export_ctranslate2(run, tmp_path / "out", "float32")
    back = import_ctranslate2_run(tmp_path / "out", tmp_path / "back").bundle
    after = read_weights(back.folder / WEIGHTS)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert (back.model_config, back.configuration.decoding) == (run.model_config, run.configuration.decoding)
    assert Bundle.load(back.folder).alignment == alignment
    assert back.source_tokenizer.kind == run.source_tokenizer.kind
    sides = [tokenizer.tokens(range(4, len(tokenizer))) for tokenizer in (run.source_tokenizer, run.target_tokenizer)]
    assert largest_difference(tmp_path / "out", back, *sides) < TOLERANCE


DRAWN: dict[str, dict[str, Any]] = {
    "pre-norm, relu": {},
    "post-norm": {"pre_norm": False},
    "one vocabulary, one matrix": {"joint": True, "tied": True},
    "gelu, no biases": {"activation": activations.GELU, "biases": False, "projection_bias": False},
    "swish, no final norm": {"activation": activations.SWISH, "no_final_norm": True},
    "no table of positions": {"positions": 0},
    "embeddings not scaled": {"scale": False, "joint": True, "tied": True},
    "embeddings scaled by a number": {"scale": 3.3},
    "starts with </s>": {"config": {"decoder_start_token": "</s>"}, "joint": True, "tied": True},
    "starts with a word": {"config": {"decoder_start_token": "t5"}},
    "starts with zeros": {
        "config": {"decoder_start_token": "</s>"},
        "variables": {"decoder/start_from_zero_embedding": True},
        "joint": True,
        "tied": True,
    },
    "sources begin with <s>": {"config": {"add_source_bos": True}, "joint": True, "tied": True},
    "starts with </s>, sources begin with <s>": {
        "config": {"add_source_bos": True, "decoder_start_token": "</s>"},
        "joint": True,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", DRAWN)
def test_a_random_model_of_its_specifications_computes_the_same(tmp_path, kind):
    folder = foreign(tmp_path / "theirs", **DRAWN[kind])
    bundle = imported(folder)
    assert largest_difference(folder, bundle, SOURCE, TARGET) < ROUNDINGS * rounding_error(bundle, SOURCE, TARGET)


@pytest.mark.slow
def test_the_difference_is_large_where_a_token_differs(tmp_path):
    folder = foreign(tmp_path / "theirs")
    bundle = imported(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "decoder_start_token": "</s>"}))
    assert largest_difference(folder, bundle, SOURCE, TARGET) > 0.1


NARROW = ["float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16", "int8_bfloat16"]


@pytest.mark.slow
@pytest.mark.parametrize("quantization", NARROW)
def test_narrow_numbers_become_the_floats_with_which_it_computes_in_float32(tmp_path, quantization):
    folder = foreign(tmp_path / "theirs", quantization=quantization, joint=True, tied=True)
    assert largest_difference(folder, imported(folder), SOURCE, TARGET) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize(("pre_norm", "activation"), [(False, "swish"), (True, "relu")])
def test_a_converted_model_of_marian_computes_the_same(tmp_path, pre_norm, activation):
    model, vocabulary = write_marian(tmp_path, ["</s>", "<unk>", *JOINT], activation, pre_norm=pre_norm)
    folder = Path(MarianConverter(model, [vocabulary]).convert(str(tmp_path / "theirs")))
    bundle = imported(folder)
    assert (bundle.model_config.positions, bundle.model_config.tie_output) == ("halves", True)
    assert largest_difference(folder, bundle, SOURCE, TARGET) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("activation", in_tiers(["relu", "gelu", "silu"], {"gelu"}))
def test_a_converted_model_of_opennmt_computes_the_same_without_an_end_of_sources(tmp_path, activation):
    path = write_opennmt(tmp_path / "model.pt", [*OPENNMT, *SOURCE], [*OPENNMT, *TARGET], activation)
    folder = Path(OpenNMTPyConverter(str(path), unsafe_deserialization=True).convert(str(tmp_path / "theirs")))
    bundle = imported(folder, source_eos=False)
    assert bundle.model_config.positions == "interleaved"
    assert largest_difference(folder, bundle, SOURCE, TARGET) < TOLERANCE
    translation = gf.Translator.load(bundle.folder).translate(["s3 s5"], beam_size=1)[0]
    theirs = ctranslate2.Translator(str(folder)).translate_batch([["s3", "s5"]], beam_size=1, max_decoding_length=20)
    assert [*translation.tokens][: len(theirs[0].hypotheses[0])] == theirs[0].hypotheses[0]
    export_ctranslate2(bundle, tmp_path / "again", "float32")
    assert largest_difference(tmp_path / "again", bundle, SOURCE, TARGET) < TOLERANCE


def test_a_source_without_an_end_is_asked_about(tmp_path):
    folder = foreign(tmp_path / "theirs", config={"add_source_eos": False})
    with pytest.raises(ConfigError, match=r"add_source_eos is false: .*give --source-eos .* or --no-source-eos"):
        imported(folder)
    assert imported(folder, source_eos=True).source_tokenizer.eos_id == 2
    assert imported(folder, source_eos=False).source_tokenizer.eos_id == 0


def test_rows_are_in_our_order():
    rows = imported_rows(["<blank>", "<unk>", "<s>", "</s>", "a"], start="<s>", bos="<s>", eos="</s>", unk="<unk>")
    assert [(row.token, row.id, row.added) for row in rows] == [
        ("<pad>", 0, False),
        ("<bos>", 2, False),
        ("<eos>", 3, False),
        ("<unk>", 1, False),
        ("a", 4, False),
    ]


def test_a_special_token_that_the_vocabulary_lacks_is_never_written(tmp_path):
    config = {"decoder_start_token": "</s>", "add_source_eos": True}
    folder = write_folder(tmp_path / "theirs", ["</s>", *SOURCE], ["</s>", *TARGET], config=config)
    model = imported(folder).model()
    with torch.no_grad():
        probabilities = model(torch.tensor([[5, 2]]), torch.tensor([[1, 6]])).softmax(-1)
    assert not probabilities[..., [0, 1, 3]].any()
    torch.testing.assert_close(model.source.tokens.weight[[0, 3]], torch.zeros(2, 24))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "relative": ({"with_relative_position": True}, r"relative positions \(\w+/.*relative_position_\w+\)"),
    "embedding norm": ({"layernorm_embedding": True}, r"a layer norm of the embeddings \(decoder/layernorm_embedding"),
    "gated": ({"ffn_glu": True}, r"a gated feed-forward network \(\w+/layer_0/ffn/linear_0_noact"),
    "RMS": ({"rms_norm": True}, "RMS norm"),
    "rotary": (
        {"variables": {"decoder/layer/0/self_attention/rotary_dim": np.int32(0)}},
        r"rotary positions \(.*_dim\)",
    ),
    "heads": ({"variables": {"decoder/layer/0/self_attention/num_heads_kv": np.int32(1)}}, "fewer heads for keys"),
    "unequal heads": ({"variables": {"encoder/num_heads": np.int16(4)}}, "same num_heads in encoder and decoder"),
    "unequal norms": ({"variables": {"encoder/pre_norm": False}}, "expected the same pre_norm in encoder and decoder"),
    "ALiBi": ({"variables": {"decoder/alibi": True}}, r"\(ALiBi\) \(decoder/alibi\)"),
    "activation": ({"activation": activations.GELUTanh}, "activation: expected one of relu, gelu, silu, got number 1"),
    "new activation": (
        {"variables": {f"{stack}/activation": np.int8(99) for stack in ("encoder", "decoder")}},
        r"activation: expected one of .*, got number 99 \(unknown\)",
    ),
    "output scale": ({"variables": {"decoder/scale_outputs": np.float32(2)}}, "a scale of the decoder's output"),
    "scores": ({"variables": {"encoder/layer/0/self_attention/queries_scale": np.float32(1)}}, "a scale of the scores"),
    "soft cap": ({"variables": {"decoder/final_logit_softcapping": np.float32(30)}}, "a limit of the logits"),
    "epsilon": ({"config": {"layer_norm_epsilon": 1e-6}}, r"layer_norm_epsilon: expected 1e-05, .* got 1e-06"),
    "start": ({"config": {"decoder_start_token": None}}, "decoder_start_token: expected a token, got null"),
    "width": (
        {"variables": {"encoder/layer/1/ffn/linear_0/weight": np.ones((41, 24), np.float32)}},
        r"expected shape \(37, 24\) for encoder/layer_1/ffn/linear_0/weight, got \(41, 24\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_transformer_does_not_have_is_refused_by_name(tmp_path, name):
    settings, message = REFUSED[name]
    folder = foreign(tmp_path / "theirs", **settings)
    with pytest.raises(ConfigError, match=message) as caught:
        imported(folder)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


FIELDS: dict[str, tuple[Any, str]] = {
    "eos_token": ("nowhere", "eos_token is 'nowhere', which the vocabulary lacks"),
    "unk_token": (7, "unk_token: expected a token, got 7"),
    "decoder_start_token": (["a"], "decoder_start_token: expected a token"),
    "add_source_bos": ("yes", "add_source_bos: expected true or false, got 'yes'"),
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_wrong_field_is_named(tmp_path, field):
    value, message = FIELDS[field]
    folder = foreign(tmp_path / "theirs", config={field: value})
    with pytest.raises((CheckpointError, VocabularyError), match=message):
        imported(folder)


def test_a_vocabulary_in_lines_is_read(tmp_path):
    folder = foreign(tmp_path / "theirs", joint=True)
    path = folder / "shared_vocabulary.json"
    (folder / "shared_vocabulary.txt").write_text("\n".join(json.loads(path.read_text())) + "\n")
    path.unlink()
    assert imported(folder).source_tokenizer.tokens([4, 5]) == ["s0", "s1"]


@pytest.mark.parametrize("end", ["\n", "\n\n", "\n\n\n \n"])
@pytest.mark.parametrize("mark", ["", "\r"])
@pytest.mark.parametrize("empty", [[], [""], ["", ""]])
def test_empty_lines_at_the_end_of_a_vocabulary_are_read_as_ctranslate2_reads_them(tmp_path, end, mark, empty):
    tokens = [*OPENNMT, *SOURCE, *empty]
    folder = write_folder(tmp_path / "theirs", tokens, tokens, joint=True, config={"add_source_eos": True})
    (folder / "shared_vocabulary.json").unlink()
    written = "\n".join(tokens) + end
    (folder / "shared_vocabulary.txt").write_bytes(written.replace("\n", f"{mark}\n").encode())
    bundle = imported(folder)
    assert bundle.model_config.source_vocab_size == len(tokens)
    assert largest_difference(folder, bundle, SOURCE, SOURCE) < TOLERANCE


def test_words_without_a_row_are_refused_with_the_reason(tmp_path):
    folder = foreign(tmp_path / "theirs", joint=True)
    path = folder / "shared_vocabulary.json"
    path.write_text(json.dumps([*json.loads(path.read_text()), "more"]))
    with pytest.raises(
        VocabularyError, match=r"a row for each token .*; give the vocabulary with which this model was"
    ):
        imported(folder)


def test_the_command_imports_a_folder(tmp_path, capsys):
    folder = foreign(tmp_path / "theirs")
    with pytest.raises(SystemExit) as end:
        main(["import", str(folder), str(tmp_path / "run"), "--languages", "en,fr"])
    assert not end.value.code
    assert "imported a model of CTranslate2: 2 + 1 layers, width 24" in capsys.readouterr().out
    assert Bundle.load(tmp_path / "run").configuration.data.target_language == "fr"
    with pytest.raises(SystemExit) as end:
        main(["import", str(folder), str(tmp_path / "other"), "--heads", "3"])
    assert end.value.code == 1
    assert "--heads: expected no value" in capsys.readouterr().err


def test_int8_products_of_ctranslate2_are_near(tmp_path):
    """CTranslate2 rounds activations to 8 bits; the imported model computes in float32, without this rounding."""
    folder = foreign(tmp_path / "theirs", quantization="int8")
    bundle = imported(folder)
    assert largest_difference(folder, bundle, SOURCE, TARGET, "int8") < 1
    assert their_log_probs(folder, [["s1"]], [["t1"]], "float32") != their_log_probs(folder, [["s1"]], [["t1"]], "int8")
