"""The diagnosis finds no mistake in two trained models from PyPI, given the loss of their own outputs."""

import random

import pytest

from glassformer.decoding.greedy_search import greedy
from glassformer.decoding.transformer_step import TransformerStep, padded
from glassformer.interop.torch.state_dicts import import_state_dict, recognised
from glassformer.interop.torch.weight_files import read_state_dicts
from glassformer.watch.inspection import Diagnosis, diagnose

pytestmark = pytest.mark.client

IDS = {"pad_id": 1, "bos_id": 2, "eos_id": 3}


def diagnosis(client, package: str, weights: str, longest: int) -> Diagnosis:
    """Return the diagnosis of a package's model from 150 random sources and its greedy outputs that end."""
    [folder] = (client("transformers") / "lib").glob(f"python*/site-packages/{package}")
    _, state = recognised(read_state_dicts(folder / weights))
    model = import_state_dict(state, heads=8, **IDS)
    chance = random.Random(1)
    letters = range(4, model.config.source_vocab_size)
    sources = [[2, *chance.choices(letters, k=chance.randint(3, 12)), 3] for _ in range(150)]
    found = greedy(TransformerStep(model, padded(model, sources)), max_lengths=[longest] * len(sources))
    pairs = [(source, one.tokens) for source, one in zip(sources, found, strict=True) if one.tokens[-1] == 3]
    assert len(pairs) > 100
    return diagnose(model, pairs)


@pytest.mark.parametrize(
    ("package", "weights", "longest"),
    [("tg2fa_translit", "model_2.9.zip", 24), ("annalog", "ckpt_and_vocab/Lev_extended.pt", 60)],
)
def test_models_of_others_are_not_blamed(client, package, weights, longest):
    found = diagnosis(client, package, weights, longest)
    assert found.passed, str(found)
    decided = [one.id for one in found.mistakes if one.verdict == "does not fall"]
    assert len(decided) >= 10, str(found)
