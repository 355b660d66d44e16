"""Small runs of every kind that have learned to translate word by word and to end."""

from dataclasses import replace
from pathlib import Path

import torch

import glassformer as gf
from glassformer.bundle import Bundle
from glassformer.corpus.batching import Examples
from glassformer.interop.activations import OF_CTRANSLATE2
from glassformer.recipes.configuration import TrainingConfig
from glassformer.recipes.toml import from_dict
from glassformer.text.habits import Habits
from glassformer.training import steps
from models import new_bundle, with_new_activations
from word_by_word import SEED, pairs

WORDS = {
    "the": "le",
    "cat": "chat",
    "dog": "chien",
    "sees": "voit",
    "a": "un",
    "big": "grand",
    "black": "noir",
    "house": "maison",
    "and": "et",
    "river": "fleuve",
    "sleeps": "dort",
}
SIZES = {"d_model": 24, "heads": 3, "d_ff": 37, "encoder_layers": 2, "decoder_layers": 1, "dropout": 0.0}
KINDS = {
    "the paper's": {},
    "pre-norm": {"norm": "pre", "decoder_layers": 3},
    "halves, gelu": {"positions": "halves", "activation": "gelu"},
    "learned, silu": {"positions": "learned", "max_length": 61, "activation": "silu"},
    "no positions": {"positions": "none", "norm": "pre"},
    "nothing tied": {"tie_output": False},
    "joint": {"joint": True},
    "joint, nothing tied": {"joint": True, "tie_embeddings": False, "tie_output": False},
    "one head": {"heads": 1},
    "post-norm and final norms, output bias": {"final_norm": True, "output_bias": True},
    "pre-norm without final norms, output bias of its own": {
        "norm": "pre",
        "final_norm": False,
        "tie_output": False,
        "output_bias": True,
    },
}
KINDS |= with_new_activations(KINDS.values(), OF_CTRANSLATE2.values())
"""The kinds of models that CTranslate2 must express."""


def some(count: int, seed: int = 1) -> list[str]:
    """Return texts of different lengths."""
    return [source for source, _ in pairs(count, seed, 1, 13, WORDS)]


def with_facts(bundle: Bundle) -> Bundle:
    """Return a run's bundle with what trainings know of how their sources are written."""
    path = bundle.folder / "counted.txt"
    path.write_text("London\nété\n", encoding="utf-8")
    return replace(bundle, habits=Habits(several_sentences=0.25, capitals=0.5), spellings=path)


def write_run(folder: Path, *, joint: bool = False, kind: str = "words", updates: int = 100, **model: object) -> Bundle:
    """Write a run of a small model with these settings."""
    values = {
        "data": {"source": "a.tsv", "max_length": min(61, model.get("max_length", 61))},
        "tokenizer": {"kind": kind, "joint": joint, "vocab_size": 60},
        "model": {**SIZES, **model},
        "decoding": {"beam_size": 3, "length_penalty": 0.8},
    }
    configuration = from_dict(values)
    corpus = pairs(500, 2, 1, 13, WORDS)
    bundle = new_bundle(folder, configuration, *map(list, zip(*corpus, strict=True)))
    sides = (bundle.source_tokenizer, bundle.target_tokenizer)
    examples, _ = Examples.encode(corpus, *sides, max_length=configuration.data.max_length)
    training = TrainingConfig(steps=updates, batch_tokens=300, learning_rate=0.01, warmup=20)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5 + SEED)
        network = gf.Transformer(bundle.model_config)
        for _ in steps(network, examples, training):
            pass
    bundle.save(network)
    return bundle
