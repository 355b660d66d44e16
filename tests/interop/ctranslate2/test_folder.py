"""`model.bin` and the files next to it are read in the same way as in CTranslate2, or refused in one sentence."""

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest

from glassformer.errors import CheckpointError, ConfigError, VocabularyError
from glassformer.interop.ctranslate2.folder import read_ctranslate2
from glassformer.interop.ctranslate2.reader import import_ctranslate2_run
from interop.ctranslate2_folders import OPENNMT, write_folder
from interop.hostile import damaged, little_memory, outcome

WORDS = [f"w{number}" for number in range(9)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = {"add_source_eos": True}
    return write_folder(tmp_path / "theirs", [*OPENNMT, *WORDS], [*OPENNMT, *WORDS], config=config, joint=True)


def change(folder: Path, at: int, form: str, *values: int) -> None:
    path = folder / "model.bin"
    content = bytearray(path.read_bytes())
    struct.pack_into(form, content, at, *values)
    path.write_bytes(content)


NAME_ENDS = 4 + 2 + len("TransformerSpec") + 1
"""The index in the file at which the name of the specification ends."""


def test_variables_and_aliases_have_the_writers_numbers(tmp_path):
    table = np.arange(48, dtype=np.float32).reshape(2, 24)
    folder = write_folder(
        tmp_path / "theirs",
        OPENNMT,
        OPENNMT,
        joint=True,
        tied=True,
        quantization="int8",
        variables={"decoder/position_encodings/encodings": table},
    )
    variables = read_ctranslate2(folder).variables
    np.testing.assert_array_equal(variables["decoder/position_encodings/encodings"].floats(), table)
    assert variables["encoder/num_heads"].floats() == 3
    names = ["decoder/projection/weight", "decoder/embeddings/weight", "encoder/embeddings_0/weight"]
    assert len({id(variables[name]) for name in names}) == 1
    matrix = variables[names[0]]
    assert (matrix.kind, matrix.shape) == ("int8", (4, 24))
    assert np.abs(matrix.floats()).max() > 0.5


def test_the_format_has_not_changed(folder):
    """The constants are the same as in the installed CTranslate2."""
    content = (folder / "model.bin").read_bytes()
    assert struct.unpack_from("<I", content)[0] == ctranslate2.specs.model_spec.CURRENT_BINARY_VERSION == 6
    assert struct.unpack_from("<I", content, NAME_ENDS)[0] in (5, 6, 7)


HEADS: dict[str, tuple[int, str, int, type[Exception], str]] = {
    "version": (0, "<I", 7, CheckpointError, "expected binary version 1 to 6, .* got 7; convert the model"),
    "kind": (6, "<B", ord("W"), ConfigError, "expected a TransformerSpec, .* got 'WransformerSpec'"),
    "revision": (NAME_ENDS, "<I", 99, CheckpointError, "expected revision 1 to 7 .* got 99"),
    "count": (NAME_ENDS + 4, "<I", 2**32 - 1, CheckpointError, "at most 200,000 variables, got 4,294,967,295"),
    "name": (NAME_ENDS + 8, "<H", 2**16 - 1, CheckpointError, "expected a name of 1 to 199 bytes"),
}


@pytest.mark.parametrize("what", HEADS)
def test_a_wrong_head_is_named(folder, what):
    at, form, value, error, message = HEADS[what]
    change(folder, at, form, value)
    with pytest.raises(error, match=message):
        read_ctranslate2(folder)


def test_a_huge_variable_is_refused_before_anything_is_allocated(folder):
    content = (folder / "model.bin").read_bytes()
    at = content.index(b"decoder/embeddings/weight\0") + len(b"decoder/embeddings/weight\0")
    change(folder, at, "<BIIBI", 2, 2**31, 2**31, 0, 2**32 - 1)
    with (
        little_memory(),
        pytest.raises(CheckpointError, match=r"expected 18,446,744,073,709,551,616 bytes"),
    ):
        read_ctranslate2(folder)


def test_aliases_that_would_fill_the_memory_are_refused(tmp_path):
    tokens, config = [*OPENNMT, *WORDS], {"add_source_eos": True}
    folder = write_folder(tmp_path / "theirs", tokens, tokens, config=config)
    names = [name for name in read_ctranslate2(folder).variables if name.startswith("encoder/layer_0/")]
    pairs = [(name.replace("_0/", f"_{layer}/", 1), name) for layer in range(2, 700) for name in names]
    texts = b"".join(struct.pack("<H", len(text) + 1) + text.encode() + b"\0" for pair in pairs for text in pair)
    content = (folder / "model.bin").read_bytes().removesuffix(bytes(4))
    (folder / "model.bin").write_bytes(content + struct.pack("<I", len(pairs)) + texts)
    with pytest.raises(CheckpointError, match=r"its aliases make [\d,]+ numbers out of [\d,]+"):
        import_ctranslate2_run(folder, tmp_path / "run")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(tmp_path, value):
    gamma = np.full(24, value, np.float32)
    folder = write_folder(
        tmp_path / "theirs",
        OPENNMT,
        OPENNMT,
        config={"add_source_eos": True},
        variables={"encoder/layer_norm/gamma": gamma},
    )
    with pytest.raises(CheckpointError, match="finite numbers in encoder/layer_norm/gamma"):
        import_ctranslate2_run(folder, tmp_path / "run")


FILES: dict[str, tuple[str, Any, type[Exception], str]] = {
    "no configuration": ("config.json", None, CheckpointError, r"cannot read \S+config.json: No such file"),
    "a list": ("config.json", [], CheckpointError, "expected an object"),
    "a vocabulary of numbers": ("shared_vocabulary.json", [1, 2], VocabularyError, "expected a list of tokens"),
    "half a pair": ("shared_vocabulary.json", ["\ud800"], VocabularyError, "half a surrogate pair"),
    "no vocabulary": (
        "shared_vocabulary.json",
        None,
        CheckpointError,
        "neither shared_vocabulary nor source_vocabulary",
    ),
    "a short vocabulary": (
        "shared_vocabulary.json",
        OPENNMT,
        VocabularyError,
        r"with a row for each token .* got \(13,",
    ),
    "a token twice": ("shared_vocabulary.json", [*OPENNMT, *["a"] * 9], VocabularyError, "'a' more than once"),
    "a token with a space": (
        "shared_vocabulary.json",
        [*OPENNMT, "a b", *WORDS[1:]],
        VocabularyError,
        "a token holds white space",
    ),
}


@pytest.mark.parametrize("what", FILES)
def test_a_wrong_file_is_named(folder, tmp_path, what):
    name, content, error, message = FILES[what]
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(json.dumps(content))
    with pytest.raises(error, match=message):
        import_ctranslate2_run(folder, tmp_path / "run")


def test_a_device_is_not_read(folder):
    (folder / "model.bin").unlink()
    (folder / "model.bin").symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match="expected a regular file, got a device"):
        read_ctranslate2(folder)


@pytest.mark.slow
@pytest.mark.parametrize("mutations", [120, pytest.param(600, marks=pytest.mark.long)])
def test_no_damage_has_another_end_than_one_sentence_or_a_whole_run(folder, tmp_path, mutations):
    (tmp_path / "runs").mkdir()
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    ends: dict[str, list[str]] = {name: [] for name in whole}
    with little_memory():
        for name, content in whole.items():
            for what, bad in damaged(content, mutations // len(whole) + 1, seed=len(content)):
                (folder / name).write_bytes(bad)
                try:
                    end = outcome(lambda run: import_ctranslate2_run(folder, run), tmp_path / "runs" / "run")
                except Exception as error:
                    raise AssertionError(f"{name}: {what}") from error
                ends[name].append(end)
            (folder / name).write_bytes(content)
    assert sum(map(len, ends.values())) >= mutations
    assert all(sum(map(bool, of_file)) > len(of_file) / 3 for of_file in ends.values()), ends
    shutil.rmtree(folder)
