"""A folder from CTranslate2 before 3.0 is imported in the same way as the installed CTranslate2 reads it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest

import glassformer as gf
from glassformer.bundle import Bundle
from glassformer.errors import CheckpointError, ConfigError, VocabularyError
from glassformer.interop.ctranslate2.folder import read_ctranslate2
from glassformer.interop.ctranslate2.reader import ForeignTexts, import_ctranslate2_run
from interop.ctranslate2_folders import OPENNMT, draw, largest_difference, write_folder
from interop.earlier_binaries import text, write_earlier
from interop.hostile import damaged, little_memory, outcome

FOLDERS = sorted(path for path in (Path(__file__).parents[1] / "earlier_ctranslate2").iterdir() if path.is_dir())
SOURCE, TARGET = [f"s{number}" for number in range(13)], [f"t{number}" for number in range(19)]
TOLERANCE = 1e-4
"""Tolerance as in `test_reader.py`; here, a different order of sums changes results by up to 6e-6."""
HEADS = {"": 8, "TransformerBase": 8, "TransformerBig": 16, "TransformerSpec": 3}
FLAG = {value: np.int8(value) for value in (0, 1)}


def imported(folder: Path, **texts: Any) -> Bundle:
    """Import a folder whose sources have no end token, unless the folder says otherwise; return the run."""
    run = folder.with_name("run")
    shutil.rmtree(run, ignore_errors=True)
    return import_ctranslate2_run(folder, run, ForeignTexts(**{"source_eos": False, **texts})).bundle


def today(folder: Path, specification: str = "TransformerSpec", **settings: Any) -> Path:
    """Write a random model in today's format, with the number of heads of a specification."""
    heads = HEADS[specification]
    settings = {"config": {}, "d_model": 32 if heads == 16 else 24, "heads": heads, **settings}
    return write_folder(folder, [*OPENNMT, *SOURCE], [*OPENNMT, *TARGET], **settings)


def words(bundle: Bundle) -> list[list[str]]:
    """Return the words of both vocabularies, without the special tokens."""
    sides = bundle.source_tokenizer, bundle.target_tokenizer
    return [tokenizer.tokens(range(4, len(tokenizer))) for tokenizer in sides]


@pytest.mark.parametrize("stored", FOLDERS, ids=lambda path: path.name)
def test_a_folder_of_an_earlier_release_computes_the_same(stored, tmp_path):
    folder = shutil.copytree(stored, tmp_path / "theirs")
    bundle = imported(folder)
    assert largest_difference(folder, bundle, *words(bundle)) < TOLERANCE
    texts = draw(words(bundle)[0], 8, 5)
    theirs = ctranslate2.Translator(str(folder), compute_type="float32")
    tokens = read_ctranslate2(folder).target
    # glassformer's search never writes these tokens either
    never = [[token] for token in ("<blank>", "[PAD]", "<s>", "[CLS]") if token in tokens]
    expected = theirs.translate_batch(
        texts, beam_size=1, min_decoding_length=0, max_decoding_length=12, suppress_sequences=never
    )
    found = gf.Translator.load(bundle.folder, device="cpu").translate([" ".join(one) for one in texts], beam_size=1)
    for ours, result in zip(found, expected, strict=True):
        assert [*ours.tokens][: len(result.hypotheses[0])] == result.hypotheses[0]


def in_vocabularies(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    """Return a function that changes the files of a folder's vocabularies."""
    return lambda folder: [path.write_bytes(change(path.read_bytes())) for path in folder.glob("*vocabulary.txt")]


COPIED: dict[str, Callable[[Path], object]] = {
    "no last line end": in_vocabularies(lambda content: content.rstrip(b"\n")),
    "line ends of Windows": in_vocabularies(lambda content: content.replace(b"\n", b"\r\n")),
    "a byte order mark": in_vocabularies(lambda content: b"\xef\xbb\xbf" + content),
    "an empty config.json": lambda folder: (folder / "config.json").write_text("{}"),
    "a map of words": lambda folder: (folder / "vmap.txt").write_text("s1\tt1 t2\n"),
    "files of a system": lambda folder: (folder / ".DS_Store").write_bytes(b"\0"),
}
"""Changes that archives, editors and other systems make to a folder; CTranslate2 still loads the changed folder."""


@pytest.mark.parametrize("how", COPIED)
def test_a_folder_that_was_copied_about_is_the_same(how, tmp_path):
    folder = shutil.copytree(FOLDERS[1], tmp_path / "an old model é")
    COPIED[how](folder)
    bundle = imported(folder)
    assert largest_difference(folder, bundle, *words(bundle)) < TOLERANCE


VERSIONS: dict[str, tuple[int, str, int, dict[str, Any], dict[str, Any]]] = {
    "1": (1, "", 1, {"positions": 0}, {}),
    "2": (2, "TransformerBase", 2, {}, {}),
    "2, 16 heads, int8": (2, "TransformerBig", 2, {"quantization": "int8"}, {}),
    "2, copies, int16": (2, "TransformerBase", 2, {"quantization": "int16", "positions": 0}, {}),
    "3, before num_heads": (3, "TransformerBase", 2, {"quantization": "int8"}, {}),
    "3, num_heads": (3, "TransformerBig", 3, {}, {"num_heads": np.int8(16)}),
    "4": (
        4,
        "TransformerBase",
        3,
        {"quantization": "float16"},
        {"num_heads": np.int8(8), "decoder/embeddings/multiply_by_sqrt_depth": FLAG[1]},
    ),
    "4, embeddings not scaled": (
        4,
        "TransformerSpec",
        3,
        {},
        {
            "num_heads": np.int8(3),
            **{f"{stack}/embeddings/multiply_by_sqrt_depth": FLAG[0] for stack in ("encoder", "decoder")},
        },
    ),
    "5": (
        5,
        "TransformerSpec",
        4,
        {"quantization": "int8_float16", "pre_norm": False, "activation": ctranslate2.specs.Activation.SWISH},
        {
            "num_heads": np.int8(3),
            "pre_norm": FLAG[0],
            "activation": np.int8(2),
            "alignment_layer": np.int16(-1),
            "with_relative_position": FLAG[0],
            "with_source_bos": FLAG[0],
            "with_source_eos": FLAG[1],
            "with_target_bos": FLAG[0],
            "encoder/scale_embeddings": FLAG[1],
            "encoder/embeddings_0/multiply_by_sqrt_depth": FLAG[0],
            "unk_token": text("<unk>"),
        },
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "one"),
    [
        pytest.param(what, one, marks=[] if number % 2 == one else [pytest.mark.long])
        for number, what in enumerate(VERSIONS)
        for one in (False, True)
    ],
)
def test_every_version_computes_the_same(tmp_path, what, one):
    version, specification, revision, settings, attributes = VERSIONS[what]
    tokens = [*OPENNMT, *SOURCE, *TARGET]
    folder = today(tmp_path / "new", specification, **settings)
    if one:
        heads, d_model = HEADS[specification], 32 if HEADS[specification] == 16 else 24
        joint = {"joint": True, "tied": True, "heads": heads, "d_model": d_model}
        folder = write_folder(tmp_path / "one", tokens, tokens, **joint, **settings)
    earlier = write_earlier(folder, tmp_path / "theirs", version, specification, revision, attributes)
    assert not (earlier / "config.json").exists()
    bundle = imported(earlier)
    assert bundle.model_config.heads == HEADS[specification]
    assert bundle.model_config.tie_embeddings == one
    assert bundle.model_config.tie_output == (one and "not scaled" not in what)
    assert largest_difference(earlier, bundle, *words(bundle)) < TOLERANCE


def test_a_vocabulary_without_the_unknown_token_has_it_at_its_end(tmp_path):
    """OpenNMT-tf's vocabulary files leave the unknown token out, although the embeddings have a row for it."""
    tokens = ["<blank>", "<s>", "</s>", *SOURCE, "<unk>"]
    folder = write_folder(tmp_path / "new", tokens, tokens, heads=8, positions=0, joint=True)
    earlier = write_earlier(folder, tmp_path / "theirs", 1)
    (earlier / "shared_vocabulary.txt").write_text("".join(f"{token}\n" for token in tokens[:-1]))
    bundle = imported(earlier)
    assert bundle.model_config.source_vocab_size == len(tokens)
    assert largest_difference(earlier, bundle, [*SOURCE, "nowhere"], [*SOURCE, "nowhere"]) < TOLERANCE


def test_a_16_bit_matrix_without_a_scale_was_multiplied_by_1000(tmp_path):
    def rounded(variables: dict[str, Any]) -> dict[str, Any]:
        return {
            name: (1000 * value).astype(np.int16) if name.endswith(("kernel:0", "w_embs:0")) else value
            for name, value in variables.items()
        }

    earlier = write_earlier(today(tmp_path / "new", "", positions=0), tmp_path / "theirs", 1, change=rounded)
    assert largest_difference(earlier, imported(earlier), SOURCE, TARGET) < TOLERANCE


def test_the_first_token_of_targets_is_what_config_json_adds_to_a_null(tmp_path):
    attributes = {"num_heads": np.int8(3), "user_decoder_start_tokens": FLAG[1]}
    folder = write_earlier(today(tmp_path / "new"), tmp_path / "theirs", 5, "TransformerSpec", 4, attributes)
    with pytest.raises(
        ConfigError, match=r"config\.json: decoder_start_token: expected a token, got null, .* write this token"
    ):
        imported(folder)
    (folder / "config.json").write_text('{"decoder_start_token": "t5", "bos_token": "t6"}')
    bundle = imported(folder)
    embedding, tokens = bundle.model().target.tokens.weight, bundle.target_tokenizer.tokens(range(24))
    assert (embedding[1] == embedding[tokens.index("t5")]).all()
    # CTranslate2, too, gives the attributes precedence over the file
    assert read_ctranslate2(folder).config["bos_token"] == "<s>"


REFUSED: dict[str, tuple[int, str, int, dict[str, Any], str]] = {
    "a newer version": (7, "TransformerSpec", 4, {}, r"expected binary version 1 to 6, .* got 7; convert the model"),
    "a newer revision": (5, "TransformerSpec", 8, {}, r"expected revision 1 to 7 of TransformerSpec, .* got 8"),
    "a language model": (
        5,
        "TransformerDecoderSpec",
        1,
        {},
        "expected a TransformerSpec, .* got 'TransformerDecoderSpec'",
    ),
    "speech": (5, "WhisperSpec", 1, {}, "expected a TransformerSpec, .* got 'WhisperSpec'; only such a model"),
    "relative positions": (
        4,
        "TransformerSpec",
        3,
        {
            "with_relative_position": FLAG[1],
            "encoder/layer_0/self_attention/relative_position_keys": np.ones((5, 8), np.float32),
        },
        r"the model has relative positions \(encoder/layer_0/self_attention/relative_position_keys\)",
    ),
    "features": (
        5,
        "TransformerSpec",
        4,
        {"encoder/embeddings_1/weight": np.ones((5, 8), np.float32)},
        r"additional features of the source's words \(encoder/embeddings_1/weight\)",
    ),
    "an unknown attribute": (5, "TransformerSpec", 4, {"colour": FLAG[1]}, r"a part of an unknown kind \(colour\)"),
    "an approximation": (5, "TransformerSpec", 4, {"activation": np.int8(1)}, "the tanh approximation of gelu"),
    "a token": (
        5,
        "TransformerSpec",
        4,
        {"eos_token": text("[SEP]")},
        r"eos_token is '\[SEP\]', which the vocabulary lacks",
    ),
    "no text": (5, "TransformerSpec", 4, {"eos_token": np.int8([-1, -2])}, "expected UTF-8 in eos_token"),
    "no number": (
        5,
        "TransformerSpec",
        4,
        {"with_source_eos": text("yes")},
        r"one number in with_source_eos, got shape",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_read_is_named(tmp_path, what):
    version, specification, revision, attributes, message = REFUSED[what]
    attributes = {"num_heads": np.int8(3), **attributes}
    folder = write_earlier(today(tmp_path / "new"), tmp_path / "theirs", version, specification, revision, attributes)
    with pytest.raises((CheckpointError, ConfigError, VocabularyError), match=message) as caught:
        imported(folder)
    assert "\n" not in str(caught.value)
    assert "copy" not in str(caught.value)  # the file is intact, so the message does not suggest a new copy


@pytest.mark.slow
@pytest.mark.parametrize(
    "stored",
    [FOLDERS[0], *(pytest.param(one, marks=pytest.mark.long) for one in FOLDERS[3::3])],
    ids=lambda path: path.name,
)
def test_no_damage_has_another_end_than_one_sentence_or_a_whole_run(stored, tmp_path):
    folder = shutil.copytree(stored, tmp_path / "theirs")
    (tmp_path / "runs").mkdir()
    content = (folder / "model.bin").read_bytes()
    with little_memory():
        for what, bad in damaged(content, 150, seed=1):
            (folder / "model.bin").write_bytes(bad)
            try:
                outcome(
                    lambda run: import_ctranslate2_run(folder, run, ForeignTexts(source_eos=False)),
                    tmp_path / "runs" / "run",
                )
            except Exception as error:
                raise AssertionError(what) from error
