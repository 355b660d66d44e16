"""Each sentence of the explorer's page is true of the model that it shows: PyTorch computes what it claims."""

import random
from collections.abc import Callable

import pytest
from benchmarks.truth.checks import CHECKS, GENERAL
from benchmarks.truth.claims import Claim, differs, differs_in_times, read
from benchmarks.truth.visit import visited

import glassformer as gf
from cuts import trained
from glassformer.watch.explorer.module import strings

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


def test_each_template_has_a_check() -> None:
    """Labels and buttons claim nothing."""
    kinds = ("stage.said.", "stage.more.", "stage.turned", "zoom.about.", "beam.scene.looks", "beam.scene.writes")
    templates = {key for key in strings()["en"] if key.startswith(kinds)}
    planted = {
        "zoom.about.late",
        "zoom.about.columns",
    }  # only said of planted mistakes, as test_attention_zoom.py checks
    assert templates - planted - {*CHECKS, *GENERAL} == set()


def test_a_sentence_is_read_as_its_template() -> None:
    key = "stage.said.decoder.cross_attention"
    for language, text, target, source in (
        ("en", "When . is written, this head looks at end.", ".", "end"),
        ("zh", "写 il 时，这个头看着 rue。", "il", "rue"),
    ):
        assert read(text, language, [key]) == [Claim(key, {"target": target, "source": source})]


def test_a_text_without_a_template_is_none() -> None:
    assert read("This head looks at many words.", "en", ["stage.said."]) is None


def test_numbers_are_compared_as_they_are_printed() -> None:
    for text, value, wrong in (("0.884", 0.88449, 0.8851), ("< 0.0001", 4e-5, 2e-4), ("−1.50", -1.5, 1.5)):
        assert differs(text, value) == ""
        assert differs(text, wrong)
    assert differs_in_times("3.4", 1.2238) == ""
    assert differs_in_times("3.5", 1.2238)
