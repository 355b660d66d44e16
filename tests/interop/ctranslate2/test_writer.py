"""An export is complete, verified, made from the run's present weights, and usable with CTranslate2 alone."""

import json
import shutil
from dataclasses import replace

import ctranslate2
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from glassformer.built_in import run_folder
from glassformer.bundle import WEIGHTS, Bundle
from glassformer.corpus.tasks import english_french
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop.ctranslate2 import writer as module
from glassformer.interop.ctranslate2.model import position_table, specification
from glassformer.interop.ctranslate2.writer import converted, export_ctranslate2, read_export
from glassformer.interop.verification import NEAR_TIE
from glassformer.model.alignment import Alignment
from glassformer.model.positions import sinusoids
from glassformer.system import fingerprints
from glassformer.system.files import hash_of_file
from glassformer.text.tokenizer import WordTokenizer
from glassformer.translator import Translator
from interop.small_runs import some


def change(bundle, by=0.5):
    """Change a run's weights."""
    network = bundle.model()
    with torch.no_grad():
        network.decoder.layers[0].feed_forward.expand.weight += by
    bundle.save(network)


@pytest.mark.parametrize("quantization", ["float32", "int8", "int8_float32", "int16"])
def test_an_exported_folder_translates_like_the_run(run, tmp_path, quantization):
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


@pytest.mark.slow
def test_a_direct_caller_gives_only_the_tokens_of_the_text(run, tmp_path):
    export_ctranslate2(run, tmp_path / "out", "float32")
    direct = ctranslate2.Translator(str(tmp_path / "out"))
    texts = [run.source_tokenizer.split(text) for text in some(7)]
    # with its default, CTranslate2 would write at least one token
    results = direct.translate_batch(texts, beam_size=1, min_decoding_length=0)
    expected = Translator.load(run.folder).translate(some(7), beam_size=1)
    assert sum(one.status == "ok" for one in expected) > 3  # CTranslate2 truncates only longer sources
    for result, one in zip(results, expected, strict=True):
        assert one.status == "max_length" or (*result.hypotheses[0], "<eos>") == one.tokens


ALIGNMENT = Alignment(layer=0, heads=(0, 2), agreement=0.9, pairs=500)


@pytest.mark.slow
@pytest.mark.parametrize("alignment", [None, ALIGNMENT, replace(ALIGNMENT, heads=(1,))])
def test_ctranslate2_aligns_by_the_heads_that_an_explanation_shows(own, tmp_path, alignment):
    run = replace(own, alignment=alignment)
    run.save_alignment()
    export_ctranslate2(run, tmp_path / "out", "float32")
    direct = ctranslate2.Translator(str(tmp_path / "out"))
    ours = Translator.load(run.folder)
    assert Bundle.load(tmp_path / "out").alignment == alignment
    for text in some(5):
        tokens = run.source_tokenizer.split(text)
        [result] = direct.translate_batch([tokens], beam_size=1, return_attention=True)
        expected = ours.explain(text, beam_size=1).attention
        for row, theirs in zip(expected, result.attention[0], strict=False):
            assert theirs == pytest.approx(row[: len(theirs)], abs=1e-5)


@pytest.mark.slow
def test_ctranslate2_aligns_by_the_step_that_predicts_a_token(own, tmp_path):
    """Shift 1 cannot be expressed, so the best heads with shift 0 are exported."""
    shifted = replace(ALIGNMENT, shift=1, heads=(0,), unshifted=replace(ALIGNMENT, heads=(1,)))
    outputs = []
    for alignment in (shifted, shifted.unshifted):
        folder = tmp_path / f"shift {alignment.shift}"
        export_ctranslate2(replace(own, alignment=alignment), folder, "float32")
        outputs.append((folder / "model.bin").read_bytes())
    assert outputs[0] == outputs[1]


def test_a_run_is_converted_again_after_a_new_choice_of_heads(own):
    first = (converted(own, "float32") / "model.bin").read_bytes()
    aligned = replace(own, alignment=ALIGNMENT)
    aligned.save_alignment()
    second = (converted(aligned, "float32") / "model.bin").read_bytes()
    again = replace(own, alignment=replace(ALIGNMENT, heads=(1,)))
    again.save_alignment()
    assert len({first, second, (converted(again, "float32") / "model.bin").read_bytes()}) == 3


@pytest.mark.slow
def test_a_shared_matrix_is_written_once(make_run):
    sizes = {}
    for joint in (True, False):
        bundle = make_run(joint=joint, **({} if joint else {"tie_output": False}))
        export_ctranslate2(bundle, bundle.folder / "out", "float32")
        sizes[joint] = (bundle.folder / "out" / "model.bin").stat().st_size
    vocabulary, d_model = len(bundle.target_tokenizer), bundle.model_config.d_model
    assert sizes[False] - sizes[True] > 4 * vocabulary * d_model


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
@pytest.mark.parametrize("d_model", [6, 7])
def test_the_table_of_positions_equals_the_models(layout, d_model):
    expected = sinusoids(61, d_model, layout, dtype=torch.float32).numpy()
    np.testing.assert_allclose(position_table(layout, 61, d_model), expected, rtol=0, atol=1e-7)
    assert not position_table("none", 61, d_model).any()


def hashes_of(folder):
    """Return the hash of each of an export's files."""
    return {name: file.hash for name, file in read_export(folder).files.items()}


def log_probs(translator):
    return [one.log_prob for one in translator.translate(some(7), beam_size=1)]


# Impossible exports


@pytest.mark.slow
@pytest.mark.parametrize("widths", [{"d_k": 5}, {"d_v": 11}, {"d_k": 4, "d_v": 4}], ids=str)
def test_heads_of_a_different_width_are_refused(run, widths):
    changed = replace(run, model_config=replace(run.model_config, **widths))
    with pytest.raises(ConfigError, match=r"expected d_model / heads = 8, the only width that CTranslate2 supports"):
        specification(changed, {}, "float32")


def test_an_export_without_valid_weights_is_refused(run, tmp_path):
    with pytest.raises(CheckpointError, match="does not exist; export a run that has been trained"):
        export_ctranslate2(replace(run, folder=tmp_path), tmp_path / "out")
    (tmp_path / WEIGHTS).write_bytes((run.folder / WEIGHTS).read_bytes()[:100])
    with pytest.raises(CheckpointError, match="is damaged or cut short"):
        export_ctranslate2(replace(run, folder=tmp_path), tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {WEIGHTS}


def test_a_folder_that_is_not_an_export_is_not_overwritten(run, tmp_path):
    (tmp_path / "letter.txt").write_text("Dear")
    with pytest.raises(ConfigError, match="exists and is not an export"):
        export_ctranslate2(run, tmp_path)
    with pytest.raises(ConfigError, match=r"letter\.txt is a file; give a folder"):
        export_ctranslate2(run, tmp_path / "letter.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.slow
def test_an_export_replaces_an_earlier_one(run, tmp_path):
    for quantization in ("int8", "float32"):
        export_ctranslate2(run, tmp_path / "out", quantization)
    assert read_export(tmp_path / "out").quantization == "float32"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# Verification


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quantization", "inexact", "named"), [("float32", True, False), ("int8", False, False), ("int8", True, True)]
)
def test_a_wrong_matrix_fails_the_verification(run, tmp_path, monkeypatch, quantization, inexact, named):
    """A processor that computes 8-bit products inexactly is named as a possible reason."""

    def damaged(bundle, weights, quantization):
        name = "decoder.layers.0.cross_attention.output_projection.weight"
        return specification(bundle, {**weights, name: weights[name][::-1].copy()}, quantization)

    monkeypatch.setattr(module, "specification", damaged)
    monkeypatch.setattr("glassformer.interop.verification.saturates_int8", lambda: inexact)
    expected = rf"the converted model \({quantization}\) does not give the run's answers"
    with pytest.raises(CheckpointError, match=expected) as raised:
        export_ctranslate2(run, tmp_path / "out", quantization)
    assert ("without VNNI, sums of 8-bit products overflow" in str(raised.value)) == named
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_a_model_that_eight_bits_spoil_is_refused(tmp_path):
    """One large row takes all 8 bits of a matrix; the mean log probability alone would still pass."""
    texts = [one.source for one in english_french(train=0).splits["valid"][:100]]
    folder = shutil.copytree(run_folder("demo"), tmp_path / "run", ignore=shutil.ignore_patterns("ctranslate2"))
    assert export_ctranslate2(Bundle.load(folder), tmp_path / "out", "int8", texts).preference < NEAR_TIE / 2
    weights = load_file(folder / WEIGHTS)
    weights["encoder.layers.0.feed_forward.contract.weight"][3] *= 2000
    save_file(weights, folder / WEIGHTS)
    assert export_ctranslate2(Bundle.load(folder), tmp_path / "float32", "float32", texts).equal == len(texts)
    with pytest.raises(CheckpointError, match=r"\(int8\) .* first differs, expected .* at most 1 below"):
        export_ctranslate2(Bundle.load(folder), tmp_path / "int8", "int8", texts)


def test_an_export_is_verified_by_the_given_texts(run, tmp_path):
    assert export_ctranslate2(run, tmp_path / "out", "float32", ["the cat", "", "a dog"]).outputs == 2
    with pytest.raises(ConfigError, match=r"--probe: expected a text of 1 to \d+ tokens, got none"):
        export_ctranslate2(run, tmp_path / "out", "float32", [""])


@pytest.mark.slow
def test_sources_without_an_end_have_none_in_ctranslate2_either(make_run, tmp_path):
    run = make_run()
    source = WordTokenizer(run.source_tokenizer.vocabulary, with_eos=False)
    endless = replace(run, source_tokenizer=source)
    endless.save()
    export_ctranslate2(endless, tmp_path / "out", "float32")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["add_source_eos"] is False
    texts = some(7)
    theirs = ctranslate2.Translator(str(tmp_path / "out")).score_batch(
        [source.split(text) for text in texts], [run.target_tokenizer.split(text) for text in texts]
    )
    ours, before = (
        Translator(one, run.model()).score([(text, text) for text in texts]) for one in (Bundle.load(run.folder), run)
    )
    for one, other, result in zip(ours, before, theirs, strict=True):
        assert one.token_log_probs == pytest.approx(result.log_probs, abs=1e-4)
        assert one.token_log_probs != pytest.approx(other.token_log_probs, abs=1e-2)


# A run's conversions


@pytest.mark.slow
def test_a_run_is_converted_once(make_run):
    bundle = make_run()
    folder = converted(bundle, "float32")
    written = (folder / "model.bin").stat().st_mtime_ns
    assert converted(bundle, "float32") == folder
    assert (folder / "model.bin").stat().st_mtime_ns == written


@pytest.mark.slow
def test_a_run_with_a_folder_beside_its_tokenizers_is_converted(make_run):
    bundle = make_run()
    (bundle.folder / "tokenizer/.ipynb_checkpoints").mkdir()
    assert Translator.load(bundle.folder, engine="ctranslate2").engine.name == "ctranslate2"


@pytest.mark.slow
def test_a_stale_conversion_is_never_used(make_run):
    bundle = make_run()
    before = Translator.load(bundle.folder, engine="ctranslate2").translate(some(7), beam_size=1)
    change(bundle)
    after = Translator.load(bundle.folder, engine="ctranslate2").translate(some(7), beam_size=1)
    expected = Translator.load(bundle.folder).translate(some(7), beam_size=1)
    assert [one.text for one in after] == [one.text for one in expected]
    assert [one.log_prob for one in after] != [one.log_prob for one in before]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "engine"),
    [
        ("model.bin", "ctranslate2"),
        ("export.json", "auto"),
        *(
            pytest.param(file, engine, marks=pytest.mark.long)
            for file, engine in (
                ("model.bin", "auto"),
                ("export.json", "ctranslate2"),
                ("config.json", "auto"),
                ("config.json", "ctranslate2"),
            )
        ),
    ],
)
def test_a_damaged_conversion_is_repeated(make_run, file, engine):
    bundle = make_run()
    path = converted(bundle, "float32") / file
    whole, hashes = path.read_bytes(), hashes_of(path.parent)
    path.write_bytes(whole[: len(whole) // 2])
    assert Translator.load(bundle.folder, engine=engine).engine.name == "ctranslate2"
    assert hashes_of(path.parent) == hashes
    assert file == "export.json" or path.read_bytes() == whole


@pytest.mark.slow
def test_a_conversion_of_a_different_configuration_is_not_used(own):
    bundle = own
    weights = bundle.folder / "model.safetensors"
    save_file(load_file(weights), weights)  # as an earlier version wrote them, which did not name the settings
    before = log_probs(Translator.load(bundle.folder, engine="auto"))
    text = (bundle.folder / "config.toml").read_text()
    (bundle.folder / "config.toml").write_text(text.replace('activation = "relu"', 'activation = "gelu"'))
    after = log_probs(Translator.load(bundle.folder, engine="auto"))
    assert after != before
    assert after == pytest.approx(log_probs(Translator.load(bundle.folder)), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", ["matrices", *(pytest.param(one, marks=pytest.mark.long) for one in ("vocabulary", "added"))]
)
def test_a_conversion_with_a_foreign_file_is_not_used(own, tmp_path, what):
    bundle = own
    folder = converted(bundle, "float32")
    before = log_probs(Translator.load(bundle.folder, engine="auto"))
    if what == "matrices":
        network = bundle.model()
        with torch.no_grad():
            network.decoder.layers[0].feed_forward.expand.weight += 0.5
        other = replace(bundle, folder=tmp_path / "other")
        other.save(network)
        shutil.copyfile(converted(other, "float32") / "model.bin", folder / "model.bin")
    else:
        name = "target_vocabulary.json"
        tokens = json.loads((folder / name).read_text())
        foreign = json.dumps([*tokens[:4], *reversed(tokens[4:])])
        (folder / (name if what == "vocabulary" else "shared_vocabulary.json")).write_text(foreign)
    translator = Translator.load(bundle.folder, engine="auto")
    assert translator.engine.name == "ctranslate2"
    assert log_probs(translator) == before


@pytest.mark.slow
def test_a_conversion_with_different_tokenizers_is_not_used(own):
    bundle = own
    folder = converted(bundle, "float32")
    path = bundle.folder / "tokenizer" / "target.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, "tokens": [*values["tokens"][:4], *reversed(values["tokens"][4:])]}))
    assert converted(Bundle.load(bundle.folder), "float32") == folder
    assert json.loads((folder / "target_vocabulary.json").read_text())[4] == values["tokens"][-1]


@pytest.mark.slow
@pytest.mark.parametrize("file", ["model.bin", "config.json", "target_vocabulary.json", "tokenizer/target.json"])
def test_an_export_with_a_foreign_file_is_refused(run, tmp_path, file):
    export_ctranslate2(run, tmp_path / "out", "float32")
    content = (tmp_path / "out" / file).read_bytes()
    (tmp_path / "out" / file).write_bytes(content + b" ")
    with pytest.raises(CheckpointError, match=f"is not what was exported: {file} has changed; export the run again"):
        Translator.load(tmp_path / "out", engine="auto")
    (tmp_path / "out" / file).write_bytes(content)
    Translator.load(tmp_path / "out", engine="auto")
    (tmp_path / "out" / "model.bin").unlink()
    with pytest.raises(CheckpointError, match=r"is not what was exported: .*No such file"):
        Translator.load(tmp_path / "out", engine="auto")


@pytest.mark.slow
def test_an_export_of_a_different_configuration_is_refused(run, tmp_path):
    export_ctranslate2(run, tmp_path / "out", "float32")
    path = tmp_path / "out" / "config.toml"
    path.write_text(path.read_text().replace("beam_size = 3", "beam_size = 2"))
    assert Translator.load(tmp_path / "out", engine="auto").bundle.configuration.decoding.beam_size == 2
    path.write_text(path.read_text().replace('norm = "post"', 'norm = "pre"'))
    with pytest.raises(CheckpointError, match=r"model\.norm is 'pre', but was 'post'; export the run again"):
        Translator.load(tmp_path / "out", engine="auto")


@pytest.mark.parametrize("exported", [True, False], ids=["export", "run"])
def test_a_file_is_hashed_once_after_a_copy(run, tmp_path, monkeypatch, exported):
    hashed = []
    monkeypatch.setattr(fingerprints, "hash_of_file", lambda path: hashed.append(path.name) or hash_of_file(path))
    folder = tmp_path / "one"
    if exported:
        export_ctranslate2(run, folder, "float32")
    else:
        shutil.copytree(run.folder, folder, ignore=shutil.ignore_patterns("ctranslate2"))
        converted(Bundle.load(folder), "float32")
    copy = shutil.copytree(folder, tmp_path / "two")
    for place, expected in ((folder, False), (copy, True), (copy, False)):
        hashed.clear()
        Translator.load(place, engine="auto")
        assert ("model.bin" in hashed) == expected
        assert ("model.safetensors" in hashed) == (expected and not exported)


def test_an_export_of_a_model_before_a_field_existed_is_loaded(run, tmp_path):
    export_ctranslate2(run, tmp_path / "out", "float32")
    path = tmp_path / "out" / "export.json"
    values = json.loads(path.read_text())
    del values["model"]["output_bias"]
    path.write_text(json.dumps(values))
    assert Translator.load(tmp_path / "out", engine="auto").engine.name == "ctranslate2"


@pytest.mark.slow
def test_a_damaged_export_json_is_reported(run, tmp_path):
    export_ctranslate2(run, tmp_path / "out", "float32")
    (tmp_path / "out" / "export.json").write_text(json.dumps({"format_version": 1}))
    with pytest.raises(CheckpointError, match="export the run again"):
        Translator.load(tmp_path / "out", engine="auto")


def test_an_export_is_a_bundle(run, tmp_path):
    export_ctranslate2(run, tmp_path / "out")
    loaded = Bundle.load(tmp_path / "out")
    assert loaded.model_config == run.model_config
    assert loaded.target_tokenizer.tokens(range(9)) == run.target_tokenizer.tokens(range(9))


DESCRIPTION = {
    "format_version": 1,
    "quantization": "int8",
    "positions": 9,
    "weights": "x",
    "model": {},
    "run": {},
    "shortlist": 0,
    "files": {},
}


def test_an_export_with_unknown_numbers_is_refused(tmp_path):
    (tmp_path / "export.json").write_text(json.dumps({**DESCRIPTION, "quantization": "int4"}))
    message = r"export\.json: quantization: expected one of float32, .*, got 'int4'; export the run again"
    with pytest.raises(CheckpointError, match=message):
        read_export(tmp_path)


def test_a_damaged_description_of_an_export_is_quoted_shortly(tmp_path):
    files = {"model.bin": {"y" * 100_000: 1}}
    (tmp_path / "export.json").write_text(json.dumps({**DESCRIPTION, "files": files}))
    with pytest.raises(CheckpointError, match=r"export\.json is damaged") as error:
        read_export(tmp_path)
    assert len(str(error.value)) < 300 + len(str(tmp_path))
