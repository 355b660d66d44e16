"""An Argos package is imported as a run that computes the same; a damaged or malicious archive is not unpacked."""

import json
import stat
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch

from glassformer.bundle import WEIGHTS, Bundle
from glassformer.cli import main
from glassformer.errors import CheckpointError, ConfigError, VocabularyError
from glassformer.interop.argos.reader import import_argos
from glassformer.interop.argos.writer import export_argos
from glassformer.interop.exporting import ExportOptions
from glassformer.text.tokenizer import SentencePieceTokenizer
from interop.ctranslate2_folders import OPENNMT, write_folder
from interop.earlier_binaries import write_earlier
from interop.hostile import damaged, little_memory, outcome
from interop.small_runs import some, with_facts

METADATA = {"package_version": "1.0", "argos_version": "1.9", "from_code": "en", "to_code": "zt", "type": "translate"}
MUTATIONS = 500
PIECES = 40


def pack(path: Path, files: dict[str, bytes], top: str = "translate-en_zt-1_0/", **method: Any) -> Path:
    """Write a package with these files in one top folder."""
    with zipfile.ZipFile(path, "w", **(method or {"compression": zipfile.ZIP_DEFLATED})) as archive:
        for name, content in files.items():
            archive.writestr(top + name, content)
    return path


@pytest.fixture(scope="module")
def sentencepiece() -> bytes:
    return SentencePieceTokenizer.train("unigram", some(300), PIECES).model


@pytest.fixture(scope="module")
def files(sentencepiece, tmp_path_factory) -> dict[str, bytes]:
    """Return the files of a package as OpenNMT's training makes it: sources do not end with an end token."""
    tokenizer = SentencePieceTokenizer("unigram", sentencepiece)
    tokens = [*OPENNMT, *tokenizer.tokens(range(4, len(tokenizer)))]
    folder = write_folder(tmp_path_factory.mktemp("argos") / "model", tokens, tokens, quantization="int8", joint=True)
    model = {f"model/{path.name}": path.read_bytes() for path in folder.iterdir()}
    return {
        "metadata.json": json.dumps(METADATA).encode(),
        "sentencepiece.model": sentencepiece,
        "README.md": b"#",
        **model,
    }


@pytest.fixture
def package(files, tmp_path) -> Path:
    return pack(tmp_path / "en_zt.argosmodel", files)


def test_a_package_computes_the_same(files, package, tmp_path):
    for name, content in files.items():
        (tmp_path / "unpacked" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "unpacked" / name).write_bytes(content)
    bundle, title, _ = import_argos(package, tmp_path / "run")
    installed = import_argos(tmp_path / "unpacked", tmp_path / "other").bundle
    assert Bundle.load(installed.folder).origin == "unpacked"
    assert (installed.folder / WEIGHTS).read_bytes() == (bundle.folder / WEIGHTS).read_bytes()
    data, decoding = bundle.configuration.data, bundle.configuration.decoding
    assert (title, data.source_language, data.target_language) == ("an Argos package", "en", "zh-Hant")
    assert (bundle.origin, decoding.beam_size, decoding.length_penalty) == ("en_zt.argosmodel", 4, 0.2)
    ends = [one.eos_id for one in (Bundle.load(bundle.folder).source_tokenizer, bundle.target_tokenizer)]
    assert ends == [0, 2]
    theirs = ctranslate2.Translator(str(tmp_path / "unpacked" / "model"), compute_type="float32")
    tokenizer, model = bundle.source_tokenizer, bundle.model()
    for text in some(8):
        source, target = tokenizer.encode(text), [*bundle.target_tokenizer.encode(text), 2]
        pieces = tokenizer.split(text)
        [scores] = theirs.score_batch([pieces], [pieces])
        with torch.no_grad():
            logits = model(torch.tensor([[*source, tokenizer.eos_id]]), torch.tensor([[1, *target[:-1]]]))
        ours = logits.log_softmax(-1)[0, range(len(target)), target]
        torch.testing.assert_close(ours, torch.tensor(scores.log_probs), rtol=0, atol=1e-4)


def test_a_package_of_2021_computes_the_same(files, tmp_path):
    """The model of such a package has binary version 4, vocabularies with one word per line, and no config.json."""
    for name, content in files.items():
        (tmp_path / "today" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "today" / name).write_bytes(content)
    heads = {"num_heads": np.int8(3)}
    model = write_earlier(tmp_path / "today" / "model", tmp_path / "model", 4, "TransformerSpec", 3, heads)
    others = {name: content for name, content in files.items() if not name.startswith("model/")}
    earlier = {f"model/{path.name}": path.read_bytes() for path in model.iterdir()}
    assert {*earlier} == {"model/model.bin", "model/shared_vocabulary.txt"}
    package = pack(tmp_path / "en_zt.argosmodel", others | earlier, top="en_zt/")
    bundles = [
        import_argos(one, tmp_path / f"run{number}").bundle for number, one in enumerate((package, tmp_path / "today"))
    ]
    weights = [(bundle.folder / WEIGHTS).read_bytes() for bundle in bundles]
    assert weights[0] == weights[1]
    assert (bundles[0].source_tokenizer.eos_id, bundles[0].configuration.data.source_language) == (0, "en")


@pytest.mark.slow
def test_an_exported_package_becomes_the_run_bit_for_bit(make_run, tmp_path, capsys):
    run = make_run(joint=True, kind="unigram")
    data = replace(run.configuration.data, source_language="en", target_language="pt-BR")
    named = replace(with_facts(run), configuration=replace(run.configuration, data=data))
    package = tmp_path / "en_pb.argosmodel"
    export_argos(named, package, ExportOptions(quantization="float32", verified=False))
    with pytest.raises(SystemExit) as end:
        main(["import", str(package), str(tmp_path / "back")])
    assert not end.value.code
    assert "imported an Argos package: 2 + 1 layers" in capsys.readouterr().out
    back = Bundle.load(tmp_path / "back")
    assert (back.folder / WEIGHTS).read_bytes() == (run.folder / WEIGHTS).read_bytes()
    assert (back.configuration.data.target_language, back.configuration.tokenizer.kind) == ("pt-BR", "marian")
    assert back.source_tokenizer is back.target_tokenizer
    assert (back.habits, back.spellings.read_text(encoding="utf-8")) == (named.habits, "London\nété\n")
    assert back.source_tokenizer.encode_all(some(20)) == run.source_tokenizer.encode_all(some(20))


def test_a_target_prefix_is_obeyed_as_the_start_or_refused(files, tmp_path):
    metadata = json.dumps({**METADATA, "target_prefix": "▁big"}).encode()
    config = json.loads(files["model/config.json"])
    with pytest.raises(
        ConfigError, match=r"target_prefix: expected none beside decoder_start_token = '<s>', got '▁big'"
    ):
        import_argos(pack(tmp_path / "m.argosmodel", {**files, "metadata.json": metadata}), tmp_path / "run")
    config = json.dumps({**config, "decoder_start_token": None}).encode()
    changed = {**files, "metadata.json": metadata, "model/config.json": config}
    bundle = import_argos(pack(tmp_path / "m.argosmodel", changed), tmp_path / "run").bundle
    embedding = bundle.model().target.tokens.weight
    tokens = bundle.target_tokenizer.tokens(range(len(embedding)))
    assert torch.equal(embedding[1], embedding[tokens.index("▁big")])


def linked(files: dict[str, bytes]) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("top/model/model.bin")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


WRONG: dict[str, tuple[dict[str, bytes | None], type[Exception], str]] = {
    "no metadata": (
        {"metadata.json": None},
        CheckpointError,
        r"metadata\.json cannot be read: No such file",
    ),
    "another type": ({"metadata.json": b'{"type": "sbd"}'}, ConfigError, "type: expected translate, got 'sbd'"),
    "a list": ({"metadata.json": b"[]"}, CheckpointError, "expected an object"),
    "deep": ({"metadata.json": b"[" * 100_000}, CheckpointError, "nested too deeply"),
    "no model": ({"model/model.bin": None}, ConfigError, r"expected model/model\.bin, got none; only a package with"),
    "subword-nmt": (
        {"sentencepiece.model": None, "bpe.model": b""},
        ConfigError,
        "expected sentencepiece.model, got none",
    ),
    "not sentencepiece": ({"sentencepiece.model": b"x"}, VocabularyError, "not a sentencepiece model"),
    "code": ({"metadata.json": b'{"from_code": 3}'}, CheckpointError, "expected a language's code, got 3"),
    "language": ({"metadata.json": b'{"from_code": "e n"}'}, ConfigError, "source_language: expected a BCP 47 tag"),
    "huge small file": ({"model/config.json": b" " * (2**26 + 1)}, CheckpointError, "at most 67,108,864 bytes"),
    "bomb": ({"model/model.bin": b"\0" * 2**25}, CheckpointError, "more than 50 times its size"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", WRONG)
def test_a_package_without_a_part_is_named(files, tmp_path, what):
    changes, error, message = WRONG[what]
    changed = {name: content for name, content in {**files, **changes}.items() if content is not None}
    with pytest.raises(error, match=message) as caught:
        import_argos(pack(tmp_path / "m.argosmodel", changed), tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert "glassformer-" not in str(caught.value)  # the message does not name the temporary folder
    assert not (tmp_path / "run").exists()


PATHS = ["../../evil", "/etc/evil", "top/../../evil", "top\\..\\evil", "..", "other/evil"]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_out_of_the_package_is_refused(package, tmp_path, path):
    with zipfile.ZipFile(package, "a") as archive:
        archive.writestr(path, "x")
    with pytest.raises(CheckpointError, match=r"leads out of the package|expected one folder"):
        import_argos(package, tmp_path / "run")
    assert {one.name for one in tmp_path.iterdir()} == {package.name}


def test_a_link_is_refused(files, tmp_path):
    path = pack(
        tmp_path / "m.argosmodel", {name: files[name] for name in files if name != "model/model.bin"}, top="top/"
    )
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(linked(files), "/etc/passwd")
    with pytest.raises(CheckpointError, match=r"'top/model/model\.bin' is neither a file nor a folder"):
        import_argos(path, tmp_path / "run")


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_compression_that_could_fill_the_memory_is_refused(files, tmp_path, method):
    path = pack(tmp_path / "m.argosmodel", files, compression=method)
    with pytest.raises(CheckpointError, match=f"expected compression by deflate or none, got {method}"):
        import_argos(path, tmp_path / "run")


def test_a_size_that_lies_is_found(files, tmp_path):
    """The directory at the end of the archive gives a size of 2 GiB for a file of some bytes."""
    path = pack(tmp_path / "m.argosmodel", files, compression=zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\x01\x02", 0, content.rindex(b"model/model.bin"))
    content[at + 24 : at + 28] = (2**31 - 1).to_bytes(4, "little")
    path.write_bytes(content)
    with little_memory(), pytest.raises(CheckpointError, match="more than 50 times its size"):
        import_argos(path, tmp_path / "run")


def test_a_file_that_is_no_zip_is_refused(tmp_path):
    (tmp_path / "m.argosmodel").write_bytes(b"no zip")
    with pytest.raises(CheckpointError, match="is damaged: File is not a zip file"):
        import_argos(tmp_path / "m.argosmodel", tmp_path / "run")
    with pytest.raises(CheckpointError, match="No such file"):
        import_argos(tmp_path / "missing.argosmodel", tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize(
    "compression", [zipfile.ZIP_DEFLATED, pytest.param(zipfile.ZIP_STORED, marks=pytest.mark.long)]
)
def test_no_damage_has_another_end_than_one_sentence_or_a_whole_run(files, tmp_path, monkeypatch, compression):
    runs, temporary = tmp_path / "runs", tmp_path / "temporary"
    runs.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    content = pack(tmp_path / "m.argosmodel", files, compression=compression).read_bytes()
    directory = content.index(b"PK\x01\x02")
    # Half of the damage is in the archive's directory, which is short but matters most.
    variants = [*damaged(content, MUTATIONS // 4, 1)]
    variants += [(what, content[:directory] + one) for what, one in damaged(content[directory:], MUTATIONS // 4, 2)]
    with little_memory():
        for what, bad in variants:
            (tmp_path / "m.argosmodel").write_bytes(bad)
            try:
                outcome(lambda run: import_argos(tmp_path / "m.argosmodel", run), runs / "run")
            except Exception as error:
                raise AssertionError(what) from error
            assert not [*temporary.iterdir()]


def test_an_encrypted_package_is_refused(files, tmp_path):
    content = pack(tmp_path / "m.argosmodel", files).read_bytes()
    bad = content.replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00")
    assert bad != content
    (tmp_path / "m.argosmodel").write_bytes(bad)
    with pytest.raises(CheckpointError, match="is encrypted"):
        import_argos(tmp_path / "m.argosmodel", tmp_path / "run")
