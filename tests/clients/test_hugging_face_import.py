"""Folders that transformers wrote give, after the import, the same results as in transformers."""

import json
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from sentencepiece import SentencePieceTrainer

import glassformer as gf
from glassformer.corpus.readers import read_lines
from glassformer.decoding.beam import beam_search
from glassformer.decoding.greedy_search import greedy
from glassformer.decoding.transformer_step import TransformerStep, padded
from glassformer.interop.huggingface.reader import import_hugging_face
from glassformer.text.tokenizer import Tokenizer
from interop.small_weights import add_small_model

pytestmark = pytest.mark.client

ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared" / "data" / "marian-tokenizers"

SIZES = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 128,
    "scale_embedding": True,
}
MARIAN = {**SIZES, "model_type": "marian"}
PEGASUS = {**SIZES, "model_type": "pegasus"}
VOCABULARY = 40
LAST = {"vocab_size": VOCABULARY, "pad_token_id": 39, "decoder_start_token_id": 39, "eos_token_id": 0}
"""Settings of older OPUS-MT folders: `<pad>` is the last token, and starts the decoder."""
MIDDLE = {"vocab_size": VOCABULARY, "pad_token_id": 20, "decoder_start_token_id": 20, "eos_token_id": 31}
FIRST = {"vocab_size": VOCABULARY, "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1}
ANSWERS = "answers.json"
UNTIED = {"share_encoder_decoder_embeddings": False}
FOLDERS = {
    "swish": ({**MARIAN, **LAST, "activation_function": "swish"}, {}),
    "relu": ({**MARIAN, **MIDDLE, "activation_function": "relu"}, {}),
    "gelu": ({**MARIAN, **LAST, "activation_function": "gelu"}, {}),
    "no scale": ({**MARIAN, **LAST, "scale_embedding": False}, {}),
    "halves": ({**MARIAN, **MIDDLE, "activation_function": "swish"}, {"half": True}),
    "in parts": ({**MARIAN, **LAST, "encoder_layers": 3}, {"shard": "10KB"}),
    "uneven layers": ({**MARIAN, **LAST, "encoder_layers": 4, "decoder_layers": 1}, {}),
    "one head": ({**MARIAN, **LAST, "encoder_attention_heads": 1, "decoder_attention_heads": 1}, {}),
    "start is another token": ({**MARIAN, **LAST, "decoder_start_token_id": 7}, {}),
    "start is the end": ({**MARIAN, **LAST, "decoder_start_token_id": 0}, {}),
    "two vocabularies": ({**MARIAN, **LAST, **UNTIED, "decoder_vocab_size": VOCABULARY}, {}),
    "Pegasus": ({**PEGASUS, **FIRST}, {}),
    "Pegasus, relu, halves": ({**PEGASUS, **LAST, "activation_function": "relu"}, {"half": True}),
    "Pegasus, no scale": ({**PEGASUS, **FIRST, "scale_embedding": False, "decoder_layers": 3}, {}),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, bytes]:
    """Two sentencepiece models; the vocabularies below do not have all their pieces."""
    lines = ["a cat sees a dog", "the dog sleeps", "a black cat", "ein Hund schläft", "die Katze sieht den Hund"]
    found = {}
    for name, some in (("source.spm", lines[:3]), ("target.spm", lines[3:])):
        stem = tmp_path_factory.mktemp("spm") / "model"
        SentencePieceTrainer.train(
            sentence_iterator=iter(some), model_prefix=str(stem), vocab_size=30, hard_vocab_limit=False, minloglevel=2
        )
        found[name] = stem.with_suffix(".model").read_bytes()
    return found


def complete(folder: Path, config: dict, models: dict[str, bytes], *, separate: bool) -> None:
    """Add the tokenizer's files to a folder with a model."""
    for name, content in models.items():
        (folder / name).write_bytes(content)
    names = {config["pad_token_id"]: "<pad>", config["eos_token_id"]: "</s>"}
    free = [id for id in range(VOCABULARY) if id not in names]
    names[free[0]] = "<unk>"
    pieces = [f"▁{letter}" for letter in "abcdefghijklmnopqrstuvwxyzäöüABCDEFGHIJKLMNOP"]
    names |= dict(zip(free[1:], pieces, strict=False))
    vocabulary = {token: id for id, token in sorted(names.items())}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    if separate:
        (folder / "target_vocab.json").write_text(json.dumps(vocabulary))
    settings = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": separate}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def drawn(config: dict, count: int, seed: int) -> list[list[int]]:
    """Return random sentences with `</s>`, in the folder's ids."""
    special = {config[f"{name}_token_id"] for name in ("pad", "eos", "decoder_start")}
    ids, chance = [id for id in range(VOCABULARY) if id not in special], random.Random(seed)
    return [[*chance.choices(ids, k=chance.randint(1, 9)), config["eos_token_id"]] for _ in range(count)]


def searched(model: gf.Transformer, sources: list[list[int]], beams: int) -> list[list[int]]:
    step = TransformerStep(model, padded(model, sources))
    most = [max(map(len, sources)) + 20] * len(sources)
    if beams == 1:
        return [list(one.tokens) for one in greedy(step, max_lengths=most)]
    found = beam_search(step, max_lengths=most, beam_size=beams, length_penalty=0.0)
    return [list(best.tokens) for [best, *_] in found]


def in_ids_of(tokenizer: Tokenizer, vocabulary: dict[str, int]) -> dict[int, int]:
    """Return the tokenizer's id of each id of a folder's vocabulary."""
    names = {token: id for id, token in enumerate(tokenizer.tokens(range(len(tokenizer))))}
    return {id: names["<eos>" if token == "</s>" else token] for token, id in vocabulary.items()}


def make_folders(place: Path, *, ask: Callable[..., Any]) -> None:
    """Make transformers write all folders and answer the questions about them, in one process."""
    place.mkdir()
    questions = [
        {
            "folder": str(place / name),
            "make": {"config": config, "seed": seed, **options},
            "sources": drawn(config, 200, 1),
            "targets": drawn(config, 200, 2),
        }
        for seed, (name, (config, options)) in enumerate(FOLDERS.items())
    ]
    answers = ask("transformers", "hugging_face", questions=questions)
    (place / ANSWERS).write_text(json.dumps(dict(zip(FOLDERS, answers, strict=True))))


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_transformers_answers_as_there(ask, made_once, tmp_path, models, name):
    config, _ = FOLDERS[name]
    made = made_once("folders of transformers", partial(make_folders, ask=ask))
    folder = Path(shutil.copytree(made / name, tmp_path / "theirs"))
    theirs = json.loads((made / ANSWERS).read_text())[name]
    theirs_of = drawn(config, 200, 1), drawn(config, 200, 2)
    complete(folder, config, models, separate="decoder_vocab_size" in config)
    run = import_hugging_face(folder, tmp_path / "run").bundle
    vocabulary = json.loads((folder / "vocab.json").read_text())
    ids, ours = in_ids_of(run.target_tokenizer, vocabulary), run.model()
    sources, targets = ([[ids[id] for id in one] for one in side] for side in theirs_of)
    # transformers computes its table of positions in float32, so even float64 only agrees up to this rounding.
    for dtype, key, tolerance in ((torch.float32, "single", 1e-5), (torch.float64, "double", 1e-5)):
        ours = ours.to(dtype)
        for source, target, expected in zip(sources, targets, theirs[key], strict=True):
            with torch.no_grad():
                logits = ours(torch.tensor([source]), torch.tensor([[1, *target[:-1]]]))[0]
            assert logits.softmax(-1)[:, 1].max() == 0
            found = logits.log_softmax(-1).gather(-1, torch.tensor(target)[:, None])[:, 0]
            assert (found - torch.tensor(expected)).abs().max() <= tolerance
    for beams, key in ((1, "greedy"), (4, "beam")):
        expected = [[ids[id] for id in one if id != config["pad_token_id"]] for one in theirs[key]]
        # the two programs cut off the other outputs at different lengths
        assert sum(one[-1] == 2 for one in expected) >= 150
        for mine, one in zip(searched(ours, sources, beams), expected, strict=True):
            assert mine == one or one[-1] != 2
        assert len({*map(tuple, expected)}) > 50


NASTY = [
    "",
    " ",
    "a",
    "  two  spaces\tand a tab ",
    "no-break\u00a0space, zero\u200bwidth",
    "ﬁ ½ Ａ ß İ ǆ",
    "e\u0301 and é",
    "中文 and العربية and עברית",
    "😀 👩‍👩‍👧 🇫🇷",
    "▁ the mark ▁",
    ">>fra<< a code",
    ">>fra<<without a space",
    ">>not<< << twice",
    ">> no end",
    "\u0000 null \u0007",
    "x" * 3000,
    "1,234.56 % — “quoted” ‘text’ …",
    "\ufeffa byte order mark",
]


@pytest.mark.skipif(not REAL.exists(), reason="the development corpora are not here")
@pytest.mark.parametrize("name", ["en-mg", "fr-en"])
def test_two_published_tokenizers_cut_and_join_as_there(ask, tmp_path, name):
    files = [REAL.parent / "multi30k" / f"train.{language}.gz" for language in ("en", "fr")]
    texts = [*NASTY, *(line for file in files for line in [*read_lines(file)][:1000])]
    [theirs] = ask("transformers", "hugging_face", questions=[{"folder": str(REAL / name), "texts": texts}])
    folder = shutil.copytree(REAL / name, tmp_path / "theirs", copy_function=shutil.copyfile)
    folder.chmod(0o755)
    add_small_model(folder, tmp_path)
    run = import_hugging_face(folder, tmp_path / "imported").bundle
    source, target = run.source_tokenizer, run.target_tokenizer
    ids = in_ids_of(target, json.loads((REAL / name / "vocab.json").read_text()))
    for tokenizer, key in ((source, "ids"), (target, "target_ids")):
        for text, expected in zip(texts, theirs[key], strict=True):
            assert [*tokenizer.encode(text), 2] == [ids[id] for id in expected], text
    known = [place for place, one in enumerate(theirs["target_ids"]) if ids[one[0]] != 3 and 3 not in map(ids.get, one)]
    assert len(known) > 1900
    for place in known:
        assert target.decode(target.encode(texts[place])) == theirs["decoded"][place], texts[place]
