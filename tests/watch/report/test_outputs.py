"""Translations of validation sentences, ranked and compared with their references."""

import copy
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.bundle import load_weights
from glassformer.evaluation.items import Items
from glassformer.evaluation.metrics import METRICS
from glassformer.translating.translation import Translation
from glassformer.translator import Translator
from glassformer.watch.explorer.training_history import progress, snapshots_in
from glassformer.watch.report.outputs import TRANSLATED_TOGETHER, Outputs, Piece, at_snapshots, example, translated


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run)


def made(values: list[float], higher_is_better: bool = True) -> Outputs:
    names = [f"{'x' * place}" for place in range(1, len(values) + 1)]
    return Outputs(
        items=Items.of([(name, "right") for name in names], group=False),
        texts=tuple("right" if value == 100 else "wrong" for value in values),
        scores=(),
        measure="chrF2" if higher_is_better else "CER",
        higher_is_better=higher_is_better,
        values=tuple(values),
        right=tuple(value == 100 for value in values),
        log_probs=tuple(-value / 100 for value in values),
    )


def test_the_best_outputs_come_first_and_the_longest_of_equals():
    found = made([50.0, 100.0, 20.0, 100.0, 70.0, 60.0, 10.0])
    assert [one.value for one in found.best()] == [100, 100, 70, 60, 50]
    assert [len(one.source) for one in found.best()][:2] == [4, 2]


def test_the_worst_outputs_are_all_wrong():
    found = made([100.0, 50.0, 100.0, 20.0])
    assert [one.value for one in found.worst()] == [20, 50]
    assert made([100.0, 100.0]).worst() == []


def test_equal_outputs_are_sorted_by_their_probability():
    found = replace(made([100.0] * 3), log_probs=(-0.5, -2.0, -0.1))
    assert not found.differ
    assert made([100.0, 50.0]).differ
    assert [one.probability for one in found.hardest()] == pytest.approx([math.exp(-2), math.exp(-0.5), math.exp(-0.1)])


@pytest.mark.slow
def test_probabilities_are_those_of_the_model(translator):
    found = translated(translator, Items.of([("the cat sees", "le chat voit"), ("a dog", "un chien")], group=False))
    scored = translator.score(list(zip(found.items.sources, found.texts, strict=True)))
    assert found.log_probs == pytest.approx([one.log_prob for one in scored], abs=1e-4)


@pytest.mark.slow
def test_the_same_sentences_are_translated_at_the_snapshots():
    translator = Translator.load("demo")
    sources = [
        "A cat sleeps.",
        "The tired animal slept in the park.",
        "The cat slept.",
        "The dogs ran.",
        "The cat ran.",
    ]
    early = at_snapshots(translator, sources)
    assert list(early.texts) == [32, 128, progress(translator.bundle.folder)["step"]]
    assert len(early.sources) == 3
    assert early.texts[32] != early.texts[128]
    assert [*early.texts.values()][-1] == tuple(one.text for one in translator.translate(early.sources, beam_size=1))
    model = copy.deepcopy(translator.model)
    load_weights(model, snapshots_in(translator.bundle.folder)[128])
    [first, *_] = Translator(translator.bundle, model).translate(early.sources[:1], beam_size=1)
    assert early.texts[128][0] == first.text


def test_a_run_without_snapshots_shows_none(translator):
    assert at_snapshots(translator, ["the cat"]) is None


def test_a_low_error_rate_is_best():
    assert [one.value for one in made([30.0, 5.0, 90.0], higher_is_better=False).best()] == [5, 30, 90]


def pieces(text: str, references: list[str], measure: str = "chrF2") -> tuple[Piece, ...]:
    """Return the marked parts of an output, as in a report."""
    items = Items.of([("source", *references)], group=False)
    [output] = replace(made([0.0]), items=items, texts=(text,), measure=measure).best()
    return output.pieces


words = st.lists(st.sampled_from(["a", "b", "<b>", "ç", "你"]), max_size=9)


@given(words, st.lists(words, min_size=1, max_size=3))
def test_the_marked_parts_of_an_output_make_the_output(text, references):
    found = pieces(" ".join(text), [" ".join(reference) for reference in references])
    assert [word for piece, _ in found for word in piece.split()] == text
    if text in references:
        assert not any(differs for _, differs in found)


def test_differences_from_the_nearest_reference_are_marked():
    found = pieces("a big cat sleeps", ["no such thing", "a small cat sleeps"])
    assert found == (("a", False), ("big", True), ("cat sleeps", False))
    assert pieces("cot", ["cat"], METRICS["cer"].name) == (("c", False), ("o", True), ("t", False))
    assert pieces("", ["cat"]) == ()


@pytest.mark.slow
def test_sentences_are_measured_by_chrf_and_words_by_their_edits(translator):
    sentences = Items.of([("the cat sees", "le chat voit"), ("a dog", "un chien"), ("the", "le")], group=False)
    found = translated(translator, sentences)
    assert (found.measure, [score.name for score in found.scores]) == ("chrF2", ["BLEU", "chrF2", "exact"])
    assert [text == several[0] for text, several in zip(found.texts, sentences.references, strict=True)] == [
        *found.right
    ]
    phones = Items.of([("cat", "k ae t"), ("dog", "d ao g")], group=True)
    assert translated(translator, phones).measure == "PER"


@pytest.mark.slow
def test_at_most_300_sentences_are_translated(translator):
    items = Items.of([("the cat", "le chat")] * 310, group=False)
    found = translated(translator, items)
    assert len(found.texts) == len(found.values) == len(found.items.sources) == 300


@pytest.mark.slow
def test_a_slow_model_translates_fewer(translator):
    items = Items.of([("the cat", "le chat")] * 310, group=False)
    assert len(translated(translator, items, seconds=0.0).texts) == TRANSLATED_TOGETHER


@pytest.mark.slow
def test_the_example_is_a_sentence_of_readable_length(translator):
    texts = ["the", "the big dog sees the big cat", "a " * 40]
    found = translated(translator, Items.of([(text, "le chien") for text in texts], group=False))
    explanation = example(translator, found)
    assert explanation.text == texts[1]
    assert isinstance(explanation.translation, Translation)
    assert len(explanation.attention) == len(explanation.translation.tokens)
    short = translated(translator, Items.of([("the cat", "le chat"), ("the", "le")], group=False))
    assert example(translator, short).text == "the"
