"""Rescoring: candidates of several searches, scored by several models, and ranked by the weighted sum."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from glassformer.corpus.analogy import LEXICON, Lexicon, save_lexicon
from glassformer.errors import CheckpointError, ConfigError, DecodingError
from glassformer.recipes.configuration import DataConfig
from glassformer.text.reversal import from_right_to_left
from glassformer.translating.combination import COMBINATION, Combination, CombinationWeights
from glassformer.translating.rescoring import Rescorer, Rescoring, is_backward
from glassformer.translator import Translator
from models import random_translator

SOURCES = ["the big dog sleeps .", "a cat", "black and black"]
ENGLISH, FRENCH = "the cat sees a big black dog and sleeps .", "le chat voit un grand chien noir et dort ."
WEIGHTS = CombinationWeights(run=1.25, rescore=(0.75, 0.5, 0.25), length=0.3, confidence=0.0, listed=0.0)


def reversed_order(translator):
    """Return a translator with the same weights that writes from right to left."""
    bundle = translator.bundle
    configuration = replace(bundle.configuration, data=replace(bundle.configuration.data, reverse_target=True))
    target = from_right_to_left(bundle.target_tokenizer)
    return Translator(replace(bundle, configuration=configuration, target_tokenizer=target), translator.model)


@pytest.fixture
def models(tmp_path):
    """Return four runs in float64: a run, a second seed, a run from right to left, and a run that translates back."""
    run = random_translator(tmp_path, name="run", seed=31)
    other = random_translator(tmp_path, name="other", seed=32)
    right = reversed_order(random_translator(tmp_path, name="right", seed=33))
    back = random_translator(tmp_path, source=FRENCH, target=ENGLISH, name="back", seed=34)
    for one in (run, other, right, back):
        one.model.double()
    return run, other, right, back


def combination_of(run, *others, weights=WEIGHTS, lexicon=None, backward=()):
    """Return the translator of a run and models that rescore it."""
    rescorers = tuple(Rescorer(one, one in backward) for one in others)
    return Translator(
        run.bundle, run.model, rescoring=Rescoring(models=rescorers, lexicon=lexicon, weights=weights.vector)
    )


@pytest.fixture
def combination(models):
    return combination_of(*models, backward=models[3:])


def outputs(translation):
    return [translation, *translation.alternatives]


def test_each_candidate_has_the_log_probability_that_each_model_gives_it(models, combination):
    run, other, right, back = models
    for source, found in zip(SOURCES, combination.candidates(SOURCES), strict=True):
        assert len(found.texts) > 3
        pairs = [(source, text) for text in found.texts]
        expected = [[one.log_prob for one in each.score(pairs)] for each in (run, other, right)]
        expected += [[one.log_prob for one in back.score([(text, source) for text in found.texts])]]
        assert found.features[:, :4] == pytest.approx(np.array(expected).T, abs=1e-12)
        assert found.features[:, 4].tolist() == [len(one.tokens) for one in run.score(pairs)]
        assert not found.features[:, 5:].any()  # without a lexicon, these features are 0


def test_the_candidates_are_the_outputs_of_all_searches_forward_each_once(models, combination):
    run, other, right, _ = models
    how = {"n_best": 3, "beam_size": 3, "protect": False, "guards": False}
    writes = run.bundle.target_tokenizer
    searched = [[outputs(one) for one in model.translate(SOURCES, **how)] for model in (run, other, right)]
    for found, *each in zip(combination.candidates(SOURCES), *searched, strict=True):
        own, *others = [[one.text for one in several if one.text] for several in each]  # blank texts are not scored
        known = [text for several in others for text in several if writes.unk_id not in writes.encode(text)]
        assert list(found.texts) == list(dict.fromkeys([*own, *known]))


def test_outputs_are_ranked_by_the_weighted_sum(models, combination):
    found = combination.candidates(SOURCES)
    for one, candidates in zip(combination.translate(SOURCES, n_best=3), found, strict=True):
        scores = candidates.features @ np.array(WEIGHTS.vector)
        best = np.argsort(-scores)[:3]
        assert [each.text for each in outputs(one)] == [candidates.texts[place] for place in best]
        assert [each.score for each in outputs(one)] == pytest.approx(scores[best].tolist(), abs=1e-12)
        assert [each.log_prob for each in outputs(one)] == pytest.approx(candidates.features[best, 0].tolist())


def test_score_gives_the_scores_by_which_outputs_are_ranked(combination):
    [found] = combination.translate(SOURCES[:1], n_best=3)
    scored = combination.score([(SOURCES[0], one.text) for one in outputs(found)])
    assert [one.score for one in scored] == pytest.approx([one.score for one in outputs(found)], abs=1e-12)


def test_a_combination_whose_models_do_not_count_ranks_by_its_run(models):
    run = models[0]
    alone = combination_of(run, *models[1:3], weights=CombinationWeights(run=1.0, rescore=(0.0, 0.0)))
    for one, found in zip(alone.translate(SOURCES), alone.candidates(SOURCES), strict=True):
        assert one.score == one.log_prob == max(found.features[:, 0])


def test_one_model_that_counts_alone_chooses(models):
    run, other, *_ = models
    decided = combination_of(run, other, weights=CombinationWeights(run=0.0, rescore=(1.0,)))
    for source, one in zip(SOURCES, decided.translate(SOURCES), strict=True):
        [found] = decided.candidates([source])
        scores = [each.log_prob for each in other.score([(source, text) for text in found.texts])]
        assert one.text == found.texts[int(np.argmax(scores))]


@pytest.mark.slow
def test_the_stream_links_and_retries_as_other_translators_do(combination):
    assert [one.text for one in combination.stream(SOURCES, window=2)] == [
        one.text for one in combination.translate(SOURCES)
    ]
    for one in combination.translate(SOURCES, links=True):
        assert all(one.text[slice(*link.target)] in one.text.split() for link in one.links)
    assert len(combination.translate(SOURCES, retry=True)) == len(SOURCES)


def test_texts_without_a_translation_have_no_candidates(combination):
    translated = combination.translate(["", "a cat", "\udc80"])
    assert [one.status for one in translated] == ["blank", translated[1].status, "undecodable"]
    assert translated[1].text
    assert [len(one.texts) > 0 for one in combination.candidates(["", "a cat", "\udc80"])] == [False, True, False]


def test_a_prefix_holds_for_candidates_of_all_models(models):
    combination = combination_of(*models[:2], weights=CombinationWeights.equal(1))
    for one in combination.translate(SOURCES, prefix="un", n_best=2):
        assert all(each.text.startswith("un") for each in outputs(one))


def test_a_model_that_cannot_read_a_source_leaves_the_run_alone(models):
    run, other, *_ = models
    short = replace(other.bundle.configuration, decoding=replace(other.bundle.configuration.decoding, max_source=3))
    deaf = Translator(replace(other.bundle, configuration=short), other.model)
    both = combination_of(run, deaf, weights=CombinationWeights.equal(1)).translate(SOURCES)
    alone = run.translate(SOURCES)
    assert both[0].text == alone[0].text  # the other model cannot score outputs of five tokens
    assert both[0].log_prob == alone[0].log_prob


def test_more_outputs_than_the_beam_holds_are_refused_as_elsewhere(combination):
    with pytest.raises(DecodingError, match="n_best"):
        combination.translate(SOURCES, n_best=4)


def test_samples_are_not_rescored(combination):
    with pytest.raises(ConfigError, match="samples are not ranked"):
        combination.translate(SOURCES, sample=True)


def test_what_several_models_have_scored_is_not_inspected(combination):
    with pytest.raises(ConfigError, match="without the other models"):
        combination.explain(SOURCES[0])


def test_a_translator_without_other_models_has_no_candidates(models):
    with pytest.raises(ConfigError, match="no model rescores"):
        models[0].candidates(SOURCES)


# Lexicon


PAIRS = [
    (f"{stem}{ending}", f"{' '.join(stem)} {after}".strip())
    for stem in ("cat", "dog", "bat", "mat", "hat", "rat")
    for ending, after in (("", ""), ("s", "Z"))
]


def test_the_lexicon_adds_candidates_and_their_confidence(tmp_path):
    letters = " ".join("abcdghmort")
    run = random_translator(tmp_path, source="the cat sees dogs", target=f"{letters} Z")
    run.model.double()
    lexicon = Lexicon([*PAIRS, ("cog", "c o g")], run.bundle.target_tokenizer)
    combination = combination_of(
        run, lexicon=lexicon, weights=CombinationWeights(rescore=(), confidence=2.0, listed=100.0)
    )
    [found] = combination.candidates(["cogs"])
    [(target, confidence)] = lexicon.analogies("cogs").items()
    place = found.texts.index(target)
    assert target == "c o g Z"
    assert found.features[place, -2:] == pytest.approx([np.log(confidence), 1.0])
    assert not np.delete(found.features, place, 0)[:, -2:].any()
    [one] = combination.translate(["cogs"])
    assert one.text == target
    assert one.log_prob == pytest.approx(run.score([("cogs", target)])[0].log_prob, abs=1e-6)


# Direction


@pytest.mark.parametrize(
    ("run", "other", "backward"),
    [
        ({"source": "a.en", "target": "a.de"}, {"source": "a.de", "target": "a.en"}, True),
        ({"source": "a.en", "target": "a.de"}, {"source": "a.en", "target": "a.de"}, False),
        ({"source": "a.en", "target": "a.de"}, {"source": "b.de", "target": "b.en"}, False),
        ({"source": "w.tsv"}, {"source": "w.tsv", "source_column": 1, "target_column": 0}, True),
        ({"source": "w.tsv"}, {"source": "w.tsv", "source_column": 0, "target_column": 1}, False),
        ({"source": "w.jsonl"}, {"source": "w.jsonl", "source_column": "target", "target_column": "source"}, True),
        (
            {"source": "a.tsv", "source_language": "en", "target_language": "de"},
            {"source": "b.tsv", "source_language": "de", "target_language": "en"},
            True,
        ),
        (
            {"source": "a.tsv", "source_language": "en", "target_language": "en"},
            {"source": "b.tsv", "source_language": "en", "target_language": "en"},
            False,
        ),
        ({"task": "copy"}, {"task": "copy"}, False),
    ],
)
def test_the_direction_of_a_model_follows_from_its_files_or_languages(run, other, backward):
    assert is_backward(DataConfig(**run), DataConfig(**other)) == backward


# The file that describes a combination


def test_a_combination_is_stored_and_loaded(tmp_path):
    (tmp_path / "deep").mkdir()
    combination = Combination(
        run=tmp_path / "run",
        ensemble=(tmp_path / "second",),
        rescore=(tmp_path / "a", tmp_path / "b"),
        lexicon=True,
        beam_size=7,
        weights=CombinationWeights(run=0.5, rescore=(0.25, -0.125), length=1.5, confidence=0.75, listed=3.0),
        tuned={"metric": "BLEU"},
    )
    combination.save(tmp_path / "deep" / "combination.json")
    loaded = Combination.load(tmp_path / "deep" / "combination.json")
    assert loaded.models == combination.models
    assert (loaded.weights, loaded.beam_size, loaded.tuned) == (combination.weights, 7, {"metric": "BLEU"})
    assert CombinationWeights.of(combination.weights.vector) == combination.weights


@pytest.mark.parametrize("text", ["{}", '{"run": 3}', "[]", "nonsense", '{"format_version": 1, "run": "."}'])
def test_a_damaged_file_is_one_clear_error(tmp_path, text):
    (tmp_path / "combination.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"combination\.json"):
        Translator.load(tmp_path / "combination.json")


def test_models_and_weights_have_the_same_number():
    with pytest.raises(ConfigError, match=r"weights\.rescore: expected 2"):
        Combination(run=Path("run"), rescore=(Path("a"), Path("b")), weights=CombinationWeights.equal(1))


@pytest.fixture
def stored(models, tmp_path):
    """Return the folder of a run that is next to another run."""
    for one in models[:2]:
        one.model.float()
        one.bundle.save(one.model)
    return tmp_path / "run"


def test_a_file_is_loaded_like_a_run(stored, models):
    weights = CombinationWeights(run=0.75, rescore=(1.5,), length=0.25)
    Combination(run=stored, rescore=(stored.parent / "other",), beam_size=2, weights=weights).save(stored / COMBINATION)
    loaded = Translator.load(stored / COMBINATION)
    expected = combination_of(*models[:2], weights=weights).translate(SOURCES, beam_size=2)
    assert [one.text for one in loaded.translate(SOURCES)] == [one.text for one in expected]
    assert Translator.load(stored / COMBINATION, settings={"beam_size": 3}).bundle.configuration.decoding.beam_size == 3
    with pytest.raises(ConfigError, match="names all models"):
        Translator.load(stored / COMBINATION, rescore=[stored])


def test_tuned_weights_beside_the_run_are_used_for_the_same_models_only(stored):
    other = stored.parent / "other"
    weights = CombinationWeights(run=0.75, rescore=(1.5,))
    Combination(run=stored, rescore=(other,), weights=weights, tuned={"items": 1}).save(stored / COMBINATION)
    assert Combination.of(stored, rescore=[other]).weights == weights
    assert Combination.of(stored, rescore=[other, other]).weights == CombinationWeights.equal(2)
    assert Combination.of(stored, rescore=[stored]).weights == CombinationWeights.equal(1)
    assert not Combination.of(stored, rescore=[other], lexicon=True).tuned


def test_a_lexicon_is_made_before_it_is_used(stored):
    with pytest.raises(CheckpointError, match=r"tune .* --lexicon"):
        Translator.load(stored, lexicon=True)
    save_lexicon(stored / LEXICON, [("the cat", "le chat")])
    assert Translator.load(stored, lexicon=True).translate(["the cat"])[0].tokens


def test_an_ensemble_is_rescored_like_a_run(stored):
    other = stored.parent / "other"
    ensemble, rescored = Translator.load(stored, other), Translator.load(stored, other, rescore=[other])
    for source, found in zip(SOURCES, rescored.candidates(SOURCES), strict=True):
        expected = [one.log_prob for one in ensemble.score([(source, text) for text in found.texts])]
        assert found.features[:, 0] == pytest.approx(np.array(expected), abs=1e-5)


def test_ctranslate2_finds_the_same_outputs(stored):
    pytest.importorskip("ctranslate2")
    other = stored.parent / "other"
    how = {"rescore": [other], "settings": {"beam_size": 1}}
    fast, plain = (Translator.load(stored, engine=engine, **how) for engine in ("ctranslate2", "torch"))
    for one, expected in zip(fast.translate(SOURCES), plain.translate(SOURCES), strict=True):
        assert one.text == expected.text
        assert one.score == pytest.approx(expected.score, abs=1e-4)
