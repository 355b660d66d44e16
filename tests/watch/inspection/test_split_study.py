"""Measurements on a split equal a translation of the split, with and without heads."""

import pytest

import glassformer as gf
from glassformer.corpus.tasks import Example
from glassformer.watch.inspection.edits import without_heads
from glassformer.watch.inspection.split_study import split_examples, split_measure, study_heads

CROSS = "decoder.layers.1.cross_attention"


@pytest.fixture
def examples(translator):
    """Return pairs of the copy task; the model copies some of them correctly."""
    sources = [f"{one} {other} {one}" for one in range(1, 8) for other in range(2, 6)]
    found = [one.text for one in translator.translate(sources, beam_size=1)]
    assert {text == source for text, source in zip(found, sources, strict=True)} == {True, False}
    return [Example(source=source, target=source, pair=place // 2) for place, source in enumerate(sources)]


def exact_by_search(translator, examples):
    found = translator.translate([one.source for one in examples], beam_size=1)
    right = [one.text == example.target for one, example in zip(found, examples, strict=True)]
    pairs = {}
    for example, one in zip(examples, right, strict=True):
        pairs.setdefault(example.pair, []).append(one)
    return 100 * sum(right) / len(right), 100 * sum(map(all, pairs.values())) / len(pairs)


@pytest.mark.slow
@pytest.mark.parametrize("edits", [{}, without_heads({CROSS: [0, 1, 2]})], ids=["whole", "without heads"])
def test_exactness_equals_that_of_greedy_translation(translator, examples, edits):
    with gf.intervene(translator.model, edits):
        values = split_measure(translator.model, translator.bundle, examples)()
        exact, pairs = exact_by_search(translator, examples)
    assert values["exact"] == pytest.approx(exact)
    assert values["pairs"] == pytest.approx(pairs)


@pytest.mark.slow
def test_log_probabilities_equal_those_of_scoring(translator, examples):
    values = split_measure(translator.model, translator.bundle, examples)()
    scored = translator.score([(one.source, one.target) for one in examples])
    assert values["log_prob"] == pytest.approx(sum(one.log_prob for one in scored) / len(scored), abs=1e-4)


@pytest.mark.slow
def test_a_pair_is_decided_where_its_references_diverge(translator):
    pair = [
        Example(source="1 2", target="3 4 5", pair=0),
        Example(source="2 1", target="3 9", pair=0),
        Example(source="2", target="3"),
    ]
    values = split_measure(translator.model, translator.bundle, pair)()
    scored = translator.score([(one.source, other.target) for one in pair[:2] for other in pair[:2]])
    second = [one.token_log_probs[1] for one in scored]
    margins = [second[0] - second[1], second[3] - second[2]]
    assert values["margin"] == pytest.approx(sum(margins) / 2, abs=1e-5)
    assert values["decided"] == 50 * sum(margin > 0 for margin in margins)


@pytest.mark.slow
def test_a_reference_that_the_tokenizer_cannot_write_is_never_exact(translator):
    values = split_measure(translator.model, translator.bundle, [Example(source="1", target="eleven")])()
    assert values["exact"] == 0
    assert "pairs" not in values


@pytest.mark.slow
def test_the_heads_of_a_run_are_studied_on_its_task(translator):
    effects = list(study_heads(translator, "test", limit=5))
    assert len(effects) == effects[0].total == 16
    assert effects[0].row().keys() == {"set", "layer", "head", "exact", "log_prob", "exact change", "log_prob change"}


@pytest.mark.slow
def test_a_limit_spreads_over_the_split(translator):
    every, few = (split_examples(translator.bundle, "test", limit=limit) for limit in (None, 4))
    assert [every.index(one) for one in few] == [0, 250, 500, 750]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("split", "kind", "message"),
    [
        ("tests", None, "did you mean 'test'"),
        ("test", "unequal", "expected one of copy .*, got 'unequal'"),
    ],
)
def test_an_unknown_split_or_kind_is_refused(translator, split, kind, message):
    with pytest.raises(gf.ConfigError, match=message):
        split_examples(translator.bundle, split, kind=kind)
