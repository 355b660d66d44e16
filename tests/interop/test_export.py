"""An export is whole, verified, of the run's present weights, and open to a direct user of CTranslate2."""

import json
from dataclasses import replace

import ctranslate2
import numpy as np
import pytest
import torch

from glassformer.bundle import WEIGHTS, Bundle
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop import export as module
from glassformer.interop.ctranslate2_model import position_table, specification
from glassformer.interop.export import converted, export_ctranslate2, read_export
from glassformer.model.positions import sinusoids
from glassformer.translator import Translator
from interop.small_runs import some


def change(bundle, by=0.5):
    """Give a run other weights."""
    network = bundle.model()
    with torch.no_grad():
        network.decoder.layers[0].feed_forward.expand.weight += by
    bundle.save(network)


@pytest.mark.parametrize("quantization", ["float32", "int8", "int8_float32", "int16"])
def test_an_exported_folder_translates_as_the_run_does(run, tmp_path, quantization):
    found = export_ctranslate2(run, tmp_path / "out", quantization)
    assert found.outputs == 32
    assert found.tokens > 32
    assert 0 <= found.mean <= found.largest
    theirs = Translator.load(tmp_path / "out", engine="auto")
    assert theirs.engine.name == "ctranslate2"
    assert read_export(tmp_path / "out").quantization == quantization
    if quantization == "float32":
        texts = [one.text for one in Translator.load(run.folder).translate(some(7), beam_size=1)]
        assert [one.text for one in theirs.translate(some(7), beam_size=1)] == texts
        assert found.equal == found.outputs


def test_a_direct_user_gives_the_tokens_of_the_text_alone(run, tmp_path):
    export_ctranslate2(run, tmp_path / "out", "float32")
    direct = ctranslate2.Translator(str(tmp_path / "out"))
    results = direct.translate_batch([run.source_tokenizer.split(text) for text in some(7)], beam_size=1)
    expected = Translator.load(run.folder).translate(some(7), beam_size=1)
    assert sum(one.status == "ok" for one in expected) > 3  # those that are cut, CTranslate2 cuts later
    for result, one in zip(results, expected, strict=True):
        assert one.status == "max_length" or (*result.hypotheses[0], "<eos>") == one.tokens


@pytest.mark.slow
def test_a_matrix_that_is_shared_is_written_once(make_run):
    sizes = {}
    for joint in (True, False):
        bundle = make_run(joint=joint, **({} if joint else {"tie_output": False}))
        export_ctranslate2(bundle, bundle.folder / "out", "float32")
        sizes[joint] = (bundle.folder / "out" / "model.bin").stat().st_size
    vocabulary, d_model = len(bundle.target_tokenizer), bundle.model_config.d_model
    assert sizes[False] - sizes[True] > 4 * vocabulary * d_model


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
@pytest.mark.parametrize("d_model", [6, 7])
def test_the_table_of_positions_is_that_of_the_model(layout, d_model):
    expected = sinusoids(61, d_model, layout, dtype=torch.float32).numpy()
    np.testing.assert_allclose(position_table(layout, 61, d_model), expected, rtol=0, atol=1e-7)
    assert not position_table("none", 61, d_model).any()


# What cannot be exported


@pytest.mark.slow
@pytest.mark.parametrize("widths", [{"d_k": 5}, {"d_v": 11}, {"d_k": 4, "d_v": 4}], ids=str)
def test_heads_of_another_width_are_refused(make_run, widths):
    with pytest.raises(ConfigError, match=r"CTranslate2 has heads of width d_model / heads only, which is 8 here"):
        specification(make_run(**widths), {}, "float32")


def test_an_export_from_nothing_is_refused(run, tmp_path):
    with pytest.raises(CheckpointError, match="does not exist: export a run that has been trained"):
        export_ctranslate2(replace(run, folder=tmp_path), tmp_path / "out")
    (tmp_path / WEIGHTS).write_bytes((run.folder / WEIGHTS).read_bytes()[:100])
    with pytest.raises(CheckpointError, match="is damaged or cut short"):
        export_ctranslate2(replace(run, folder=tmp_path), tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {WEIGHTS}


def test_a_folder_with_something_else_is_left_alone(run, tmp_path):
    (tmp_path / "letter.txt").write_text("Dear")
    with pytest.raises(ConfigError, match="holds something else than an export"):
        export_ctranslate2(run, tmp_path)
    with pytest.raises(ConfigError, match=r"letter\.txt is a file: give a folder"):
        export_ctranslate2(run, tmp_path / "letter.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_an_export_replaces_an_earlier_one(run, tmp_path):
    for quantization in ("int8", "float32"):
        export_ctranslate2(run, tmp_path / "out", quantization)
    assert read_export(tmp_path / "out").quantization == "float32"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# Verification


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_a_wrong_matrix_does_not_pass(run, tmp_path, monkeypatch, quantization):
    def damaged(bundle, weights, quantization):
        name = "decoder.layers.0.cross_attention.output_projection.weight"
        return specification(bundle, {**weights, name: weights[name][::-1].copy()}, quantization)

    monkeypatch.setattr(module, "specification", damaged)
    expected = rf"the converted model \({quantization}\) does not give the run's answers"
    with pytest.raises(CheckpointError, match=expected):
        export_ctranslate2(run, tmp_path / "out", quantization)
    assert [*tmp_path.iterdir()] == []


def test_it_is_verified_by_the_texts_that_are_given(run, tmp_path):
    assert export_ctranslate2(run, tmp_path / "out", "float32", ["the cat", "", "a dog"]).outputs == 2
    with pytest.raises(ConfigError, match="there is no text to verify the export with"):
        export_ctranslate2(run, tmp_path / "out", "float32", [""])


# What a run keeps converted


@pytest.mark.slow
def test_a_run_is_converted_once(make_run):
    bundle = make_run()
    folder = converted(bundle, "float32")
    written = (folder / "model.bin").stat().st_mtime_ns
    assert converted(bundle, "float32") == folder
    assert (folder / "model.bin").stat().st_mtime_ns == written


def test_what_was_converted_is_never_stale(make_run):
    bundle = make_run()
    before = Translator.load(bundle.folder, engine="ctranslate2").translate(some(7), beam_size=1)
    change(bundle)
    after = Translator.load(bundle.folder, engine="ctranslate2").translate(some(7), beam_size=1)
    expected = Translator.load(bundle.folder).translate(some(7), beam_size=1)
    assert [one.text for one in after] == [one.text for one in expected]
    assert [one.log_prob for one in after] != [one.log_prob for one in before]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "ctranslate2"])
@pytest.mark.parametrize("file", ["model.bin", "export.json", "config.json"])
def test_what_was_converted_and_is_damaged_is_converted_again(make_run, file, engine):
    bundle = make_run()
    whole = (converted(bundle, "float32") / file).read_bytes()
    (converted(bundle, "float32") / file).write_bytes(whole[: len(whole) // 2])
    assert Translator.load(bundle.folder, engine=engine).engine.name == "ctranslate2"
    assert (converted(bundle, "float32") / file).read_bytes() == whole


def test_a_damaged_note_is_said_to_be_one(run, tmp_path):
    export_ctranslate2(run, tmp_path / "out", "float32")
    (tmp_path / "out" / "export.json").write_text(json.dumps({"format_version": 1}))
    with pytest.raises(CheckpointError, match="export the run again"):
        Translator.load(tmp_path / "out", engine="auto")


def test_an_export_is_a_bundle(run, tmp_path):
    export_ctranslate2(run, tmp_path / "out")
    loaded = Bundle.load(tmp_path / "out")
    assert loaded.model_config == run.model_config
    assert loaded.target_tokenizer.tokens(range(9)) == run.target_tokenizer.tokens(range(9))
