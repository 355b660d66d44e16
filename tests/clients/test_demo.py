"""The trained demo in other programs: the pronoun is still "elle" for the street, and "il" for the animal."""

from collections.abc import Callable
from pathlib import Path

import ctranslate2
import pytest

import glassformer as gf
from end_to_end.test_demo import train_demo
from glassformer.bundle import Bundle
from glassformer.corpus.tasks import CLASSIC, english_french
from glassformer.interop.argos.writer import export_argos
from glassformer.interop.ctranslate2.writer import export_ctranslate2
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.huggingface.writer import export_hugging_face
from glassformer.interop.onnx.writer import export_onnx
from glassformer.translator import Translator

pytestmark = [pytest.mark.client, pytest.mark.long]

TEXTS = [example.source for example in CLASSIC[1:3]]
TARGETS = [example.target for example in CLASSIC[1:3]]
EXPORTS = {"transformers": export_hugging_face, "onnx": export_onnx, "argos": export_argos}
SHORT = {
    "data.task": "",
    "tokenizer.kind": "unigram",
    "tokenizer.joint": "true",
    "training.steps": 400,
    "training.batch_tokens": 1500,
    "training.warmup": 60,
    "training.label_smoothing": 0.0,
    "training.workers": 1,
    "training.validate_every": 400,
    "training.snapshots": 0,
}


def train_pronouns(folder: Path) -> None:
    """Train the demo in subwords, for a minute, on those sentences of its corpus whose adjective decides a pronoun."""
    pairs = [one for one in english_french(train=60_000).splits["train"] if one.kind == "coreference"]
    folder.mkdir()
    corpus = folder / "corpus.tsv"
    corpus.write_text("".join(f"{one.source}\t{one.target}\n" for one in pairs), encoding="utf-8")
    settings = SHORT | {"data.source": corpus, "run.directory": folder / "run"}
    gf.train("demo", overrides=[f"{name}={value}" for name, value in settings.items()])


def checked(folder: Path) -> Bundle:
    """Check that a run translates both texts correctly in glassformer; return the run."""
    ours = [one.text for one in Translator.load(folder).translate(TEXTS, beam_size=1)]
    assert ours == TARGETS
    assert "qu'il était" in ours[0]
    assert "qu'elle était" in ours[1]
    return Bundle.load(folder)


@pytest.fixture(scope="module")
def demo(made_once: Callable[..., Path]) -> Bundle:
    """The demo as it is: words, and two vocabularies."""
    return checked(made_once("demo", train_demo) / "demo")


@pytest.fixture(scope="module")
def subwords(made_once: Callable[..., Path]) -> Bundle:
    """The demo in subwords, with one vocabulary."""
    return checked(made_once("pronouns", train_pronouns) / "run")


def by_ctranslate2(bundle: Bundle, folder: Path) -> list[str]:
    """Return CTranslate2's translations with an export; glassformer only makes the tokens."""
    export_ctranslate2(bundle, folder, "float32", TEXTS)
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    tokens = [source.tokens(ids) for ids in source.encode_all(TEXTS)]
    written = ctranslate2.Translator(str(folder)).translate_batch(tokens, beam_size=1)
    ids = {token: id for id, token in enumerate(target.tokens(range(len(target))))}
    return target.decode_all([[ids[token] for token in one.hypotheses[0]] for one in written])


def test_the_demos_pronoun_survives_in_ctranslate2(demo, tmp_path):
    assert by_ctranslate2(demo, tmp_path / "out") == TARGETS


def test_the_demos_pronoun_survives_in_onnxruntime(client, demo, tmp_path):
    """The folder has two tokenizers."""
    options = ExportOptions(probes=TEXTS, python=str(client("onnx") / "bin/python"))
    found = export_onnx(demo, tmp_path / "out", options)
    assert (found.equal, found.outputs, found.cut_differently) == (2, 2, 0)
    assert found.largest < 1e-4


@pytest.mark.parametrize("name", EXPORTS)
def test_a_pronoun_in_subwords_survives_in_python(client, subwords, tmp_path, name):
    """The verification compares the other program's texts with ours, both by greedy search."""
    options = ExportOptions(probes=TEXTS, python=str(client(name) / "bin/python"))
    found = EXPORTS[name](subwords, tmp_path / "out", options)
    assert (found.equal, found.outputs, found.cut_differently) == (2, 2, 0)
    assert found.largest < 1e-4


def test_a_pronoun_in_subwords_survives_in_ctranslate2(subwords, tmp_path):
    assert by_ctranslate2(subwords, tmp_path / "out") == TARGETS


def test_a_pronoun_in_subwords_survives_in_transformers_js(ask, subwords, tmp_path):
    export_onnx(subwords, tmp_path / "out", ExportOptions(verified=False))
    found = ask("node", "translate", folder=str(tmp_path / "out"), texts=TEXTS, limits=[60, 60])
    assert found["texts"] == TARGETS
