"""Two trained models from PyPI give, after the import, the same results as in their own packages."""

import json
import random
import re
from pathlib import Path

import pytest
import torch

import glassformer as gf
from glassformer.cli import main
from glassformer.decoding.greedy_search import greedy
from glassformer.decoding.transformer_step import TransformerStep, padded
from glassformer.interop.importing import read_vocabulary, special_ids
from glassformer.interop.torch.state_dicts import import_state_dict, recognised
from glassformer.interop.torch.weight_files import read_state_dicts

pytestmark = pytest.mark.client

IDS = {"pad_id": 1, "bos_id": 2, "eos_id": 3}
ROOM = 10
"""Tokens by which an output of tg2fa_translit may be longer than its source with `<bos>` and `<eos>`."""


def package(client, name: str) -> Path:
    """Return the folder of a package in the clients' environment."""
    [folder] = (client("transformers") / "lib").glob(f"python*/site-packages/{name}")
    return folder


def drawn_ids(count: int, size: int, longest: int, seed: int) -> list[list[int]]:
    chance = random.Random(seed)
    return [[2, *chance.choices(range(4, size), k=chance.randint(1, longest)), 3] for _ in range(count)]


def difference(one, other) -> float:
    return (torch.tensor(one) - torch.tensor(other)).abs().max().item()


def largest_difference(model: gf.Transformer, sources, targets, expected) -> float:
    dtype = model.output.weight.dtype
    found = []
    with torch.no_grad():
        for source, target, logits in zip(sources, targets, expected, strict=True):
            ours = model(torch.tensor([source]), torch.tensor([target]))[0]
            found.append((ours - torch.tensor(logits, dtype=dtype)).abs().max().item())
    return max(found)


@pytest.fixture
def alphabet(client) -> dict[str, list[str]]:
    """The vocabularies of tg2fa_translit, from its source: the package is not importable here."""
    code = (package(client, "tg2fa_translit") / "decode.py").read_text(encoding="utf-8")
    values: dict[str, object] = {}
    exec(code.split("def decode")[0].replace("import numpy as np", ""), values)
    return {"source": values["tg_keys"], "target": values["fa_values"]}


def test_tg2fas_logits_are_the_same(client, ask):
    _, state = recognised(read_state_dicts(package(client, "tg2fa_translit") / "model_2.9.zip"))
    sources = drawn_ids(20, 43, 12, 1)
    targets = [ids[:-1] for ids in drawn_ids(20, 45, 12, 2)]
    theirs = ask("transformers", "tg2fa", words=[], source=sources, target=targets)
    double = {name: tensor.double() for name, tensor in state.items()}
    exact = import_state_dict(double, heads=8, positions="learned", **IDS)
    assert largest_difference(exact, sources, targets, theirs["double"]) <= 1e-9
    computed = import_state_dict(double, heads=8, **IDS)
    assert computed.config.positions == "interleaved"
    # The package rounds its table of positions to float32: 6e-8 for each number, amplified by the layers.
    assert largest_difference(computed, sources, targets, theirs["double"]) <= 1e-5
    ours = import_state_dict(state, heads=8, **IDS)
    # Logits near 25 are rounded to float32 in both programs, by kernels that differ from machine to machine.
    rounding = max(difference(*pair) for pair in zip(theirs["single"], theirs["double"], strict=True))
    assert largest_difference(ours, sources, targets, theirs["double"]) <= 4 * rounding


def test_tg2fas_words_are_written_as_by_its_own_decoder(client, ask, alphabet, tmp_path):
    for side, tokens in alphabet.items():
        (tmp_path / f"{side}.json").write_text(json.dumps(tokens), encoding="utf-8")
    options = ["--heads", "8", "--tokens", "characters", "--source-bos", "--languages", "tg,fa"]
    vocabularies = [f"--{side}-vocabulary={tmp_path / side}.json" for side in alphabet]
    file = package(client, "tg2fa_translit") / "model_2.9.zip"
    with pytest.raises(SystemExit) as end:
        main(["import", str(file), str(tmp_path / "run"), *options, *vocabularies])
    assert not end.value.code
    chance = random.Random(1)
    letters = [letter for letter in alphabet["source"][4:] if letter not in " -~"]
    words = ["салом", *("".join(chance.choices(letters, k=chance.randint(3, 12))) for _ in range(500))]
    theirs = ask("transformers", "tg2fa", words=words, source=[], target=[])["texts"]
    translator = gf.Translator.load(tmp_path / "run")
    ours = translator.translate(words, beam_size=1, extra_length=ROOM)
    # The package's decoder drops the last token, even where it is a letter instead of `<eos>`.
    cut = [one.text if one.status == "ok" else one.text[:-1] for one in ours]
    assert cut == theirs
    assert cut[0] == "سلام"


PARTS = ("C", "CC", "O", "N", "F", "Cl", "c1ccccc1", "c1ccncc1", "C(=O)O", "C(=O)N", "C(C)C", "CCO", "S(=O)(=O)N")
"""Pieces of SMILES texts; most of their chains are molecules."""


def test_annalogs_logits_and_greedy_outputs_are_the_same(client, ask):
    folder = package(client, "annalog") / "ckpt_and_vocab"
    tokens = read_vocabulary(folder / "stereo_experiment_vocab_ttf.pkl")
    assert special_ids(tokens) == (1, 2, 3, 0)
    (_, state), chance = recognised(read_state_dicts(folder / "Lev_extended.pt")), random.Random(1)
    molecules = ["".join(chance.choices(PARTS, k=chance.randint(2, 7))) for _ in range(200)]
    sources = [[2, *map(tokens.index, re.findall("Cl|.", text)), 3] for text in molecules]
    theirs = ask("transformers", "annalog", source=sources, longest=60)
    targets = [[2, *written] for written in theirs["greedy"]]
    double = {name: tensor.double() for name, tensor in state.items()}
    exact, model = (import_state_dict(one, heads=8, **IDS) for one in (double, state))
    # in the package, √d is rounded to float32
    assert largest_difference(exact, sources, targets, theirs["double"]) <= 1e-5
    # Between float32 and float64, the package's own logits differ by 5e-4, and ours by 9e-4: only by rounding.
    rounding = max(map(difference, theirs["single"], theirs["double"]))
    assert largest_difference(model, sources, targets, theirs["double"]) <= 2 * rounding
    ours = greedy(TransformerStep(model, padded(model, sources)), max_lengths=[60] * len(sources))
    assert [list(one.tokens) for one in ours] == theirs["greedy"]
