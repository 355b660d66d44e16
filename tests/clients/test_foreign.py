"""Programs too large for CI open exported models; `make test-clients` runs them, and the guide has the last result."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import glassformer as gf
from glassformer.bundle import Bundle
from glassformer.interop.argos.writer import export_argos
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.huggingface.writer import export_hugging_face
from interop.small_runs import some, write_run

pytestmark = pytest.mark.foreign

TEXTS = some(40, 3)
FLOAT32 = ExportOptions(quantization="float32", verified=False)


def in_languages(bundle: Bundle, source: str, target: str) -> Bundle:
    data = replace(bundle.configuration.data, source_language=source, target_language=target)
    return replace(bundle, configuration=replace(bundle.configuration, data=data))


@pytest.fixture(scope="module", params=["post", "pre"])
def run(request, tmp_path_factory) -> Bundle:
    """A run of subwords that translates well, so that small differences do not change its outputs."""
    folder = tmp_path_factory.mktemp("run") / request.param
    sizes = {"decoder_layers": 2, "norm": request.param}  # TransformerLens requires equally many layers in both stacks
    return in_languages(write_run(folder, kind="unigram", joint=True, updates=900, **sizes), "en", "fr")


@pytest.fixture(scope="module")
def folder(run) -> Path:
    """The run's export for Hugging Face's transformers."""
    folder = run.folder.with_name("exported")
    export_hugging_face(run, folder, FLOAT32)
    return folder


@pytest.fixture(scope="module")
def translations(run) -> list[str]:
    """The run's own outputs by greedy search."""
    return [one.text for one in gf.Translator.load(run.folder).translate(TEXTS, beam_size=1, extra_length=500)]


def test_the_pipeline_of_transformers_4_and_optimums_own_onnx_give_the_texts(ask, folder, translations):
    theirs = ask("optimum", "pipeline_4", folder=str(folder), texts=TEXTS)
    assert theirs == {"pipeline": translations, "optimum": translations}


def test_inseq_attributes_the_texts(ask, run, folder, translations):
    theirs = ask("inseq", "inseq_attribution", folder=str(folder), texts=TEXTS[:8])
    assert theirs["texts"] == translations[:8]
    tokens = [len(run.target_tokenizer.encode(text)) + 1 for text in translations[:8]]
    assert theirs["attributed"] == tokens


def test_transformer_lens_computes_the_logits(ask, run, folder):
    ids = {"source": [[7, 5, 9, 2], [6, 8, 11, 2]], "target": [[1, 4, 9], [1, 7, 6]]}
    theirs = ask("lens", "lens_logits", folder=str(folder), **ids)
    with torch.no_grad():
        ours = run.model()(*map(torch.tensor, ids.values()))
    assert (torch.tensor(theirs["logits"]) - ours).abs().max() <= 1e-4
    assert theirs["hooks"] > 100


def test_a_libretranslate_server_hosts_the_package(ask, run, translations, tmp_path):
    # with one package only, Argos downloads more
    packages = [tmp_path / "there.argosmodel", tmp_path / "back.argosmodel"]
    export_argos(run, packages[0], FLOAT32)
    export_argos(in_languages(run, "fr", "en"), packages[1], FLOAT32)
    files = [str(file) for file in packages]
    theirs = ask("libretranslate", "libretranslate_server", packages=files, source="en", target="fr", texts=TEXTS)
    settings = {"beam_size": 4, "length_penalty": 0.2, "extra_length": 256}  # Argos's settings
    ours = gf.Translator.load(run.folder, engine="ctranslate2").translate(TEXTS, **settings)
    assert theirs == [one.text for one in ours]
