"""A package for Argos is complete and describes itself; a run that Argos does not support is refused."""

import json
from dataclasses import replace
from zipfile import ZipFile

import pytest

from glassformer.errors import CheckpointError, ConfigError, MissingDependencyError
from glassformer.interop.argos.writer import argos_remarks, export_argos
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.formats import FORMATS
from interop.huggingface.test_writer import a_run

UNVERIFIED = ExportOptions(quantization="float32", verified=False)


def test_the_package_is_complete(tmp_path):
    bundle = a_run(tmp_path / "run", languages=("en-GB", "pt-BR"))
    assert export_argos(bundle, tmp_path / "out.argosmodel", UNVERIFIED) is None
    with ZipFile(tmp_path / "out.argosmodel") as package:
        content = {name: package.read(name) for name in package.namelist()}
    top = "translate-en_pb-1_0"
    model = {f"model/{name}" for name in ("model.bin", "config.json", "shared_vocabulary.json")}
    assert content.keys() == {f"{top}/{one}" for one in ("metadata.json", "sentencepiece.model", "README.md", *model)}
    metadata = json.loads(content[f"{top}/metadata.json"])
    assert (metadata["from_name"], metadata["to_name"]) == ("English", "Portuguese (Brazil)")
    config = json.loads(content[f"{top}/model/config.json"])
    assert (config["add_source_eos"], config["decoder_start_token"]) == (True, "<bos>")
    assert content[f"{top}/sentencepiece.model"] == bundle.source_tokenizer.model
    assert b"argospm install" in content[f"{top}/README.md"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"joint": False},
            r"tokenizer\.joint: expected true, .* got false; train with tokenizer\.joint = true",
        ),
        ({"kind": "words"}, r"the source's tokenizer: expected subwords, got words; export --to ctranslate2, or train"),
        ({"kind": "characters"}, r"the source's tokenizer: expected subwords, got characters"),
        ({"d_k": 5}, r"model\.d_k, model\.d_v: expected d_model / heads"),
        ({"positions": "learned", "max_length": 300}, r"model\.max_length: expected at least 1024, .* got 300; export"),
        ({"languages": ("", "fr")}, r"data\.source_language: .*for example --set data\.source_language=en"),
    ],
    ids=str,
)
def test_a_run_that_no_package_can_hold_is_refused(tmp_path, settings, message):
    bundle = a_run(tmp_path / "run", **settings)
    with pytest.raises(ConfigError, match=message):
        export_argos(bundle, tmp_path / "out", UNVERIFIED)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_underscores_are_reported(tmp_path):
    bundle = a_run(tmp_path / "run")
    assert not any("underscore" in remark for remark in argos_remarks(bundle))
    symbols = replace(bundle, target_tokenizer=type(bundle.target_tokenizer).train("bpe", ["a_b _"], 20))
    assert any(remark.startswith("Argos writes each underscore as a space: 2 tok") for remark in argos_remarks(symbols))


def test_the_card_says_what_to_do_with_texts(tmp_path):
    bundle = a_run(tmp_path / "run")
    assert any(
        remark.startswith("before you give a text to Argos, compose its let") for remark in argos_remarks(bundle)
    )


@pytest.mark.slow
def test_without_argos_nothing_is_written(tmp_path):
    bundle = a_run(tmp_path / "run")
    with pytest.raises(MissingDependencyError, match=r"argostranslate is not installed; run `pip install argos-tra"):
        export_argos(bundle, tmp_path / "out", ExportOptions())
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.slow
def test_only_an_earlier_export_is_replaced(tmp_path):
    bundle, file = a_run(tmp_path / "run"), tmp_path / "out.argosmodel"
    for _ in range(2):
        export_argos(bundle, file, UNVERIFIED)
    package = file.read_bytes()
    foreign = tmp_path / "foreign.zip"
    with ZipFile(foreign, "w") as other:
        other.writestr("a/metadata.json", '{"type": "translate"}')
    for content in (foreign.read_bytes(), package[:-9], package[: len(package) // 2], b"", b"Dear"):
        file.write_bytes(content)
        with pytest.raises(ConfigError, match="argosmodel exists and is not an export"):
            export_argos(bundle, file, UNVERIFIED)
        assert file.read_bytes() == content
    with pytest.raises(ConfigError, match="run is a folder; give a file"):
        export_argos(bundle, bundle.folder, UNVERIFIED)
    with pytest.raises(CheckpointError, match=r"cannot write .*foreign\.zip/out: "):
        export_argos(bundle, foreign / "out", UNVERIFIED)
    assert {path.name for path in tmp_path.iterdir()} == {"run", "out.argosmodel", "foreign.zip"}


@pytest.mark.slow
def test_a_large_foreign_file_is_not_read(tmp_path):
    with ZipFile(tmp_path / "out", "w", compression=8) as bomb:
        bomb.writestr("a/metadata.json", b" " * 50_000_000 + b"{}")
    with pytest.raises(ConfigError, match="exists and is not an export"):
        export_argos(a_run(tmp_path / "run"), tmp_path / "out", UNVERIFIED)


def test_every_format_can_say_what_is_remarkable(tmp_path):
    bundle = a_run(tmp_path / "run")
    assert all(isinstance(remark, str) for row in FORMATS.values() for remark in row.remarks(bundle))
