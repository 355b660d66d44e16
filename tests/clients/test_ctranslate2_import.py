"""Marian and Pegasus folders that CTranslate2 converted are imported as runs that compute the same numbers."""

import json
import subprocess

import ctranslate2
import pytest
import torch

from glassformer.interop.ctranslate2.reader import ForeignTexts, import_ctranslate2_run
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.huggingface.writer import export_hugging_face
from glassformer.recipes.toml import from_dict, without_none
from glassformer.text.tokenizer import SentencePieceTokenizer
from models import new_bundle, random_model

pytestmark = pytest.mark.client

TEXTS = ["the cat sees a black dog", "a dog sleeps in the house", "le chat voit un chien noir", "le chien dort"]
TOLERANCE = 1e-4


def largest_difference(client, folder):
    """Convert a folder of transformers, import the result, and compare the log probabilities of both."""
    converted = folder.with_name("converted")
    command = [client("transformers") / "bin/ct2-transformers-converter", "--model", folder, "--output_dir", converted]
    copied = ["--copy_files", "source.spm", "target.spm"]
    subprocess.run([*command, *copied], check=True, capture_output=True, env={"HF_HUB_OFFLINE": "1"})
    # The converter does not add </s> to sources: callers must, as Hugging Face's tokenizer does.
    end = json.loads((converted / "config.json").read_text())["eos_token"]
    bundle = import_ctranslate2_run(converted, folder.with_name("back"), ForeignTexts(source_eos=True)).bundle
    model, source_tokenizer, target_tokenizer = bundle.model(), bundle.source_tokenizer, bundle.target_tokenizer
    theirs = ctranslate2.Translator(str(converted), compute_type="float32")
    differences = []
    for source, target in zip(TEXTS[:2], TEXTS[2:], strict=True):
        [scores] = theirs.score_batch([[*source_tokenizer.split(source), end]], [target_tokenizer.split(target)])
        ids = [*target_tokenizer.encode(target), 2]
        with torch.no_grad():
            logits = model(torch.tensor([[*source_tokenizer.encode(source), 2]]), torch.tensor([[1, *ids[:-1]]]))
        ours = logits.log_softmax(-1)[0, range(len(ids)), ids]
        differences.append((ours - torch.tensor(scores.log_probs)).abs().max().item())
    return max(differences)


@pytest.mark.parametrize("activation", ["swish", "relu"])
def test_a_converted_marian_computes_the_same(client, ask, tmp_path, activation):
    folder = tmp_path / "folder"
    folder.mkdir()
    tokenizer = SentencePieceTokenizer.train("unigram", TEXTS, 50)
    tokens = ["</s>", "<unk>", *tokenizer.tokens(range(4, len(tokenizer))), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({token: id for id, token in enumerate(tokens)}))
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(tokenizer.model)
    fields = {"activation_function": activation, "scale_embedding": True, "max_position_embeddings": 128}
    assert ask("transformers", "marian_folder", folder=str(folder), fields=fields) == {"size": len(tokens)}
    assert largest_difference(client, folder) < TOLERANCE


@pytest.mark.parametrize("settings", [{}, {"activation": "gelu", "output_bias": True}], ids=str)
def test_a_converted_pegasus_computes_the_same(client, tmp_path, settings):
    values = {
        "data": {"source": "a.tsv", "source_language": "en", "target_language": "fr"},
        "tokenizer": {"kind": "unigram", "joint": True, "vocab_size": 50},
        "model": {"d_model": 24, "heads": 3, "d_ff": 37, "encoder_layers": 2, "decoder_layers": 3, "norm": "pre"},
    }
    values["model"].update(settings)
    bundle = new_bundle(tmp_path / "run", from_dict(values), TEXTS[:2], TEXTS[2:])
    torch.manual_seed(3)
    bundle.save(random_model(**without_none(bundle.model_config.to_dict())))
    export_hugging_face(bundle, tmp_path / "folder", ExportOptions(verified=False))
    assert largest_difference(client, tmp_path / "folder") < TOLERANCE
