"""Exported folders compute in Hugging Face's transformers the same numbers as the runs in glassformer."""

import subprocess
from dataclasses import replace
from itertools import product

import ctranslate2
import pytest
import torch

from glassformer.decoding.torch_engine import TorchEngine
from glassformer.interop.activations import OF_HUGGING_FACE
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.huggingface.writer import export_hugging_face
from glassformer.recipes.toml import from_dict, without_none
from interop.small_runs import some, write_run
from models import new_bundle, random_model, with_new_activations

pytestmark = pytest.mark.client

SIZES = {"d_model": 24, "heads": 3, "d_ff": 37, "encoder_layers": 2, "decoder_layers": 3}
TEXTS = ["the cat sees a black dog", "a dog sleeps in the house", "le chat voit un chien noir", "le chien dort"]
MODELS = {
    **{
        f"{norm}, {positions}": {"norm": norm, "positions": positions}
        for norm, positions in product(("post", "pre"), ("interleaved", "halves"))
    },
    "gelu": {"activation": "gelu"},
    "silu, pre": {"activation": "silu", "norm": "pre"},
    "output bias": {"output_bias": True},
    "output bias, pre": {"output_bias": True, "norm": "pre"},
    "output of its own": {"tie_output": False, "output_bias": True},
    "output of its own, pre": {"tie_output": False, "norm": "pre"},
    "nothing tied": {"tie_output": False, "tie_embeddings": False},
    "two vocabularies": {"joint": False},
    "two vocabularies, output of its own": {"joint": False, "tie_output": False},
    "odd width": {"d_model": 15, "heads": 3},
}
MODELS |= with_new_activations(MODELS.values(), OF_HUGGING_FACE.values())


def random_run(folder, *, joint=True, kind="bpe", **settings):
    values = {
        "data": {"source": "a.tsv", "source_language": "en", "target_language": "fr"},
        "tokenizer": {"kind": kind, "joint": joint, "vocab_size": 50},
        "model": {**SIZES, **settings},
    }
    bundle = new_bundle(folder, from_dict(values), TEXTS[:2], TEXTS[2:])
    torch.manual_seed(3)
    given = without_none(bundle.model_config.to_dict())
    bundle.save(random_model(**given))
    return bundle


def test_logits_are_the_same_in_float64(ask, tmp_path):
    source = torch.tensor([[7, 5, 9, 11, 2], [6, 8, 2, 0, 0]])
    target = torch.tensor([[1, 4, 9, 13], [1, 7, 6, 5]])
    folders, expected = [], []
    for name, settings in MODELS.items():
        bundle = random_run(tmp_path / "runs" / name, **settings)
        export_hugging_face(bundle, tmp_path / name, ExportOptions(verified=False))
        folders.append(str(tmp_path / name))
        with torch.no_grad():
            expected.append(bundle.model().double()(source, target))
    found = ask("transformers", "hugging_face_logits", folders=folders, source=source.tolist(), target=target.tolist())
    differences = {
        name: (torch.tensor(theirs, dtype=torch.float64) - ours).abs().max().item()
        for name, theirs, ours in zip(MODELS, found, expected, strict=True)
    }
    assert max(differences.values()) <= 1e-12, differences


def trained(folder, **settings):
    """Return a run that has learned to translate word by word, with languages."""
    bundle = write_run(folder, **settings)
    data = replace(bundle.configuration.data, source_language="en", target_language="fr")
    named = replace(bundle, configuration=replace(bundle.configuration, data=data))
    named.save_configuration()
    return named


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "bpe", "joint": True},
        {"kind": "unigram", "joint": True, "norm": "pre"},
        {"kind": "bpe"},
        {"kind": "words", "joint": True},
        {"kind": "characters", "joint": True, "norm": "pre"},
    ],
    ids=str,
)
def test_an_export_is_verified_by_transformers(client, tmp_path, settings):
    bundle = trained(tmp_path / "run", **settings)
    python = str(client("transformers") / "bin/python")
    found = export_hugging_face(bundle, tmp_path / "out", ExportOptions(python=python, probes=some(40)))
    assert (found.outputs, found.equal, found.cut_differently) == (40, 40, 0)
    assert found.largest <= 1e-4
    random = export_hugging_face(bundle, tmp_path / "out", ExportOptions(python=python))
    assert random.largest <= 1e-4


def test_texts_with_other_white_space_are_counted(client, tmp_path):
    python = str(client("transformers") / "bin/python")
    texts = ["the\u2028cat", *some(10)]
    found = export_hugging_face(
        trained(tmp_path / "run", kind="bpe", joint=True), tmp_path / "out", ExportOptions(python=python, probes=texts)
    )
    assert (found.outputs, found.cut_differently) == (10, 1)


@pytest.mark.parametrize("settings", [{}, {"output_bias": True, "activation": "silu"}], ids=str)
def test_ctranslate2s_converter_gives_the_same_model_from_a_pre_norm_folder(client, tmp_path, settings):
    bundle = random_run(tmp_path / "run", norm="pre", **settings)
    export_hugging_face(bundle, tmp_path / "folder", ExportOptions(verified=False))
    converter = client("transformers") / "bin/ct2-transformers-converter"
    folders = ("--model", tmp_path / "folder", "--output_dir", tmp_path / "converted")
    subprocess.run([converter, *folders], check=True, capture_output=True, env={"HF_HUB_OFFLINE": "1"})
    sources, targets = [(7, 5, 9, 11, 2), (6, 8, 2)], [(4, 9, 13, 2), (7, 6, 5, 12, 2)]
    ours = TorchEngine(bundle.model()).score(
        [((source,), target) for source, target in zip(sources, targets, strict=True)]
    )
    tokens = bundle.source_tokenizer.tokens
    scores = ctranslate2.Translator(str(tmp_path / "converted")).score_batch(
        [tokens(source) for source in sources], [tokens(target[:-1]) for target in targets]
    )
    for own, score in zip(ours, scores, strict=True):
        assert score.log_probs == pytest.approx(own, abs=1e-5)
