"""A folder for Hugging Face's transformers is complete; a run that transformers does not support is refused."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.numpy import load_file

from glassformer.bundle import WEIGHTS, Bundle
from glassformer.errors import CheckpointError, ConfigError, MissingDependencyError
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.huggingface.reader import import_hugging_face
from glassformer.interop.huggingface.writer import export_hugging_face
from glassformer.model.positions import sinusoids
from glassformer.recipes.toml import from_dict, without_none
from models import EVEN, new_bundle, random_model

UNVERIFIED = ExportOptions(verified=False)
TEXTS = (["the cat sees a black dog"], ["le chat voit un chien noir"])


def a_run(folder, *, joint=True, kind="bpe", languages=("en", "fr"), **settings):
    """Return a run with a random model."""
    data = {"source": "/corpora/a.tsv", "source_language": languages[0], "target_language": languages[1]}
    tokenizer = {"kind": kind, "joint": joint, "vocab_size": 40}
    bundle = new_bundle(
        folder, from_dict({"data": data, "tokenizer": tokenizer, "model": {**EVEN, **settings}}), *TEXTS
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(20170612)
        bundle.save(random_model(**without_none(bundle.model_config.to_dict())))
    return bundle


@pytest.mark.parametrize(
    ("norm", "kind"), [("post", ("marian", "MarianMTModel")), ("pre", ("pegasus", "PegasusForConditionalGeneration"))]
)
def test_the_folder_is_complete(tmp_path, norm, kind):
    bundle = a_run(tmp_path / "run", norm=norm)
    assert export_hugging_face(bundle, tmp_path / "out", UNVERIFIED) is None
    files = {path.name: path for path in (tmp_path / "out").iterdir()}
    spm = {"source.spm", "target.spm"}
    configs = {"config.json", "generation_config.json", "tokenizer_config.json", "vocab.json"}
    assert files.keys() == {"model.safetensors", "README.md", *configs, *spm}
    config = json.loads(files["config.json"].read_text())
    assert (config["model_type"], *config["architectures"]) == kind
    assert (config["pad_token_id"], config["decoder_start_token_id"], config["eos_token_id"]) == (1, 1, 2)
    assert json.loads(files["generation_config.json"].read_text())["bad_words_ids"] == [[0], [1]]
    assert json.loads(files["vocab.json"].read_text())["<unk>"] == 3
    assert files["target.spm"].read_bytes() == bundle.source_tokenizer.model
    assert files["model.safetensors"].stat().st_mode == files["config.json"].stat().st_mode
    assert (tmp_path / "out" / "config.json").stat().st_mode & 0o444 == 0o444


@pytest.mark.parametrize("kind", ["words", "characters"])
def test_words_and_characters_are_written_as_tokenizer_json(tmp_path, kind):
    bundle = a_run(tmp_path / "run", kind=kind)
    export_hugging_face(bundle, tmp_path / "out", UNVERIFIED)
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert not {name for name in files if name.endswith(".spm") or name == "vocab.json"}
    tokens = json.loads((tmp_path / "out/tokenizer.json").read_text())["model"]["vocab"]
    assert [*tokens] == bundle.source_tokenizer.tokens(range(len(bundle.source_tokenizer)))


@pytest.mark.parametrize("kind", ["words", "characters", "bpe"])
@pytest.mark.parametrize("normalisation", ["plain", "spaces"])
def test_the_normalisation_comes_back_from_the_folder(tmp_path, kind, normalisation):
    bundle = a_run(tmp_path / "run", kind=kind)
    bundle.source_tokenizer.normalisation = normalisation
    export_hugging_face(bundle, tmp_path / "out", UNVERIFIED)
    import_hugging_face(tmp_path / "out", tmp_path / "again")
    read = Bundle.load(tmp_path / "again").source_tokenizer
    assert (read.normalisation, read.encode("ca\u00adt")) == (
        normalisation,
        bundle.source_tokenizer.encode("ca\u00adt"),
    )
    assert (read.encode("ca\u00adt") == read.encode("cat")) == (normalisation == "plain")


def test_a_matrix_is_written_once(tmp_path):
    export_hugging_face(a_run(tmp_path / "run"), tmp_path / "out", UNVERIFIED)
    names = {name for name in load_file(tmp_path / "out/model.safetensors") if "embed" in name or "shared" in name}
    assert names == {"model.shared.weight"}


def test_pegasus_gets_position_tables_because_transformers_warns_that_they_are_missing(tmp_path):
    export_hugging_face(a_run(tmp_path / "run", norm="pre"), tmp_path / "out", UNVERIFIED)
    weights = load_file(tmp_path / "out/model.safetensors")
    for side in ("encoder", "decoder"):
        table = torch.from_numpy(weights[f"model.{side}.embed_positions.weight"])
        torch.testing.assert_close(table, sinusoids(2048, EVEN["d_model"], "halves"), rtol=0, atol=1e-7)


def test_the_card_says_what_a_user_must_know(tmp_path):
    score = {"name": "bleu", "value": 33.123, "signature": "nrefs:1|case:mixed"}
    options = replace(UNVERIFIED, licence="cc-by-4.0", scores=(score,), validation="loss 1.234")
    export_hugging_face(a_run(tmp_path / "run", languages=("en-GB", "fr")), tmp_path / "out", options)
    card = (tmp_path / "out/README.md").read_text()
    assert card.startswith("---\nlanguage:\n- en\n- fr\nlicense: cc-by-4.0\npipeline_tag: translation\n---\n")
    facts = ("Trained on a.tsv.", "| bleu | 33.12 | `nrefs:1", "loss 1.234", "ct2-transformers-converter")
    for fact in (*facts, "- Before you give a text to transformers, compose its letters (Unicode NFC), remove"):
        assert fact in card
    assert "/corpora" not in card
    export_hugging_face(a_run(tmp_path / "run"), tmp_path / "out", UNVERIFIED)
    assert "Licence: not stated." in (tmp_path / "out/README.md").read_text()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"d_k": 5}, r"model\.d_k: expected d_model / heads = 6, as .* have, got 5; export --to onnx"),
        ({"d_v": 5}, r"model\.d_v: expected d_model / heads = 6"),
        ({"positions": "learned"}, r"model\.positions: expected interleaved or halves.*, got learned; export --to ctr"),
        ({"positions": "none"}, r"model\.positions: .* got none"),
        ({"final_norm": True}, r"model\.final_norm: expected False with post-norm"),
        ({"norm": "pre", "joint": False}, r"tokenizer\.joint: expected true with pre-norm.*; train with tokenizer\.jo"),
        ({"kind": "words", "joint": False}, r"tokenizer\.joint: expected true with words, as one tokenizer\.json"),
        (
            {"kind": "characters", "joint": False},
            r"tokenizer\.joint: expected true with characters.*, or export",
        ),
        ({"languages": ("en", "")}, r"data\.target_language: .*for example --set data\.target_language=en"),
    ],
    ids=str,
)
def test_a_run_that_no_folder_can_hold_is_refused(tmp_path, settings, message):
    bundle = a_run(tmp_path / "run", **settings)
    with pytest.raises(ConfigError, match=message):
        export_hugging_face(bundle, tmp_path / "out", UNVERIFIED)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.slow
def test_without_transformers_nothing_is_written(tmp_path):
    bundle = a_run(tmp_path / "run")
    command = r"run `pip install transformers sentencepiece`, give --python .* or write .* by --unverified"
    with pytest.raises(MissingDependencyError, match=rf"not verified: transformers is not installed; {command}"):
        export_hugging_face(bundle, tmp_path / "out", ExportOptions())
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_only_an_earlier_export_is_replaced(tmp_path):
    bundle = a_run(tmp_path / "run")
    for _ in range(2):
        export_hugging_face(bundle, tmp_path / "out", UNVERIFIED)
    (tmp_path / "file").write_text("Dear")
    with pytest.raises(ConfigError, match="file is a file; give a folder"):
        export_hugging_face(bundle, tmp_path / "file", UNVERIFIED)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "config.json").write_text('{"model_type": "marian"}')
    for content in ('{"model_type": "marian"}', "{", "[]", "[" * 100000):
        (foreign / "config.json").write_text(content)
        with pytest.raises(ConfigError, match="foreign exists and is not an export"):
            export_hugging_face(bundle, foreign, UNVERIFIED)
    (tmp_path / "read-only").write_text("a file, where a folder is needed")
    with pytest.raises(CheckpointError, match=r"cannot write .*read-only/out: "):
        export_hugging_face(bundle, tmp_path / "read-only/out", UNVERIFIED)
    assert {path.name for path in tmp_path.iterdir()} == {"run", "out", "file", "foreign", "read-only"}


def test_damaged_weights_are_refused(tmp_path):
    bundle = a_run(tmp_path / "run")
    path = bundle.folder / WEIGHTS
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(CheckpointError, match="is damaged or cut short"):
        export_hugging_face(bundle, tmp_path / "out", UNVERIFIED)
    path.unlink()
    with pytest.raises(CheckpointError, match="does not exist; export a run that has been trained"):
        export_hugging_face(bundle, tmp_path / "out", UNVERIFIED)
    assert [one.name for one in tmp_path.iterdir()] == ["run"]
