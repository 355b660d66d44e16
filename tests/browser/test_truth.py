"""Each sentence of the explorer's page is true of the model that it shows: PyTorch computes what it claims."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.claims import CHECKS, GENERAL
from benchmarks.truth import visited

import glassformer as gf
from cuts import trained

WORDS = ["the", "cat", "sees", "a", "big", "black", "dog", "and", "sleeps", "."]


def sentences(count: int) -> list[str]:
    """Return sentences of a random model's words; one has a word that the model does not know."""
    chance = random.Random(3)
    made = [" ".join(chance.choices(WORDS, k=chance.randint(3, 9))) for _ in range(count - 1)]
    return [*made, "the cat sees a xylophone ."]


def of_pieces(make: Callable[..., gf.Translator]) -> gf.Translator:
    tokenizer = trained("marian unigram")
    return make(tokenizers=(tokenizer, tokenizer), tie_embeddings=True, norm="pre", extra_length=3)


MODELS: dict[str, Callable[[Callable[..., gf.Translator]], gf.Translator]] = {
    "post-norm, words": lambda make: make(seed=6, extra_length=3),
    "pre-norm, pieces": of_pieces,
    "learned positions": lambda make: make(positions="learned", extra_length=3),
}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_every_sentence_is_true(make_translator, page, tmp_path, model):
    translator = MODELS[model](make_translator)
    tally = visited(page, translator, tmp_path / "page.html", sentences(10))
    assert tally.false == []
    assert sum(tally.claims.values()) > 500


@pytest.fixture
def texts() -> dict[str, str]:
    from glassformer.watch.explorer.module import strings

    return strings()["en"]


def test_each_template_has_a_check(texts: dict[str, Any]) -> None:
    kinds = ("stage.said.", "stage.more.")
    templates = {key for key in texts if key.startswith(kinds)}
    assert templates - {*CHECKS, *GENERAL} == set()
