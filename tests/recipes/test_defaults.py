"""The settings that a corpus decides if the configuration leaves them open, and the settings that it never changes."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import ConfigError
from glassformer.recipes.configuration import Configuration, DataConfig
from glassformer.recipes.defaults import SENTENCE_SIZES, WORD_SIZES, describe_choice, fit, is_open
from glassformer.recipes.toml import from_dict, load, model_config, to_toml

DATA = {"data": {"source": "a.tsv"}}
SPOKEN = [("the cat sees a dog", "le chat voit un chien"), ("a big house", "une grande maison")]
PHONES = [("cat", "K AE T"), ("house", "HH AW S"), ("straße", "ʃ t ʁ aː s ə"), ("new york", "N UW Y AO R K")] + [
    ("dog", "D AO G")
] * 20
LETTERS = [("آبادي", "abadie"), ("آرلن", "arlen")]
SPACED = [("falla", "ф а л ь я"), ("gnohere", "г н о х е р е")]
GLOSSES = [("Haus", "a building to live in"), ("Hund", "an animal that barks")]
SCRIPT = [("我昨天在学校里遇见了一位很久没有见过面的老朋友", "我昨天在學校裡遇見了一位很久沒有見過面的老朋友")]


def translation(**overrides):
    """Return the recipe with all settings open."""
    return load("translation", ["data.source=a.tsv", *(f"{name}={value}" for name, value in overrides.items())])


@pytest.mark.parametrize("pairs", [1, 7_999, 29_000, 160_000, 1_900_000, 4_500_000, 36_000_000])
@pytest.mark.parametrize("sample", [SPOKEN, PHONES, []], ids=["sentences", "words", "nothing"])
def test_every_open_setting_is_chosen_once(pairs, sample):
    configuration = fit(translation(), pairs, sample)
    assert not is_open(configuration)
    assert fit(configuration, 17, SPOKEN) == configuration
    assert configuration.tokenizer.kind != "auto"
    assert configuration.training.metric in ("bleu", "exact")
    model = model_config(configuration, 101, 101 if configuration.tokenizer.joint else 103)
    assert (model.d_model, model.dropout) == (configuration.model["d_model"], configuration.model["dropout"])


def test_the_chosen_settings_are_in_the_runs_configuration():
    configuration = fit(translation(), 29_000, SPOKEN)
    text = to_toml(configuration, model_config(configuration, 101, 101))
    for line in ('kind = "unigram"', "vocab_size = 8000", "d_model = 128", "batch_tokens = 4096", 'optimiser = "muon"'):
        assert line in text.splitlines()


@pytest.mark.parametrize(
    ("sample", "kinds", "metric"),
    [
        (SPOKEN, ("unigram", "unigram"), "bleu"),
        (PHONES, ("characters", "words"), "exact"),
        (SPACED, ("characters", "words"), "exact"),
        (LETTERS, ("characters", "characters"), "exact"),
        (GLOSSES, ("unigram", "unigram"), "bleu"),
        (SCRIPT, ("unigram", "unigram"), "bleu"),
    ],
    ids=["sentences", "phones", "spaced letters", "letters", "glosses", "a script without spaces"],
)
def test_the_kind_of_the_corpus_decides_the_tokenizer(sample, kinds, metric):
    configuration = fit(translation(), 10_000, sample)
    assert configuration.tokenizer.kinds == kinds
    assert configuration.tokenizer.joint == (metric == "bleu")
    assert configuration.training.metric == metric


def test_a_script_of_thousands_of_characters_gets_a_large_vocabulary():
    letters = random.Random(3).sample([chr(code) for code in range(0x4E00, 0x9FA5)], 3001)
    lines = [("".join(letters[start : start + 40]) + " 。", "a b") for start in range(0, 3001, 40)]
    assert fit(translation(), 5_000, lines).tokenizer.vocab_size > 4 * 3001
    assert fit(translation(), 5_000, SPOKEN).tokenizer.vocab_size == 2_000


@pytest.mark.parametrize("rows", [SENTENCE_SIZES, WORD_SIZES], ids=["sentences", "words"])
def test_more_pairs_never_lead_to_a_smaller_model_or_more_regularisation(rows):
    assert [row.pairs for row in rows] == sorted({row.pairs for row in rows})
    assert rows[-1].pairs == float("inf")
    for smaller, larger in pairwise(rows):
        assert (smaller.r_drop, smaller.model["dropout"]) >= (larger.r_drop, larger.model["dropout"])
        assert smaller.sampling >= larger.sampling
        for name in ("d_model", "d_ff", "encoder_layers", "decoder_layers"):
            assert smaller.model[name] <= larger.model[name]
        assert smaller.vocab_size <= larger.vocab_size
        assert smaller.batch_tokens <= larger.batch_tokens


def test_a_configuration_of_data_only_is_completed_by_the_corpus():
    configuration = fit(from_dict(DATA), 29_000, SPOKEN)
    assert (configuration.tokenizer.kind, configuration.tokenizer.vocab_size) == ("unigram", 8_000)
    assert configuration.model["d_model"] == 128
    assert configuration.training == from_dict(DATA).training


OPEN = {
    "tokenizer": [("kind", "bpe"), ("vocab_size", 300), ("byte_fallback", True), ("joint", False), ("sampling", 0.1)],
    "model": [("d_model", 64), ("dropout", 0.25), ("norm", "pre"), ("activation", "gelu"), ("encoder_layers", 5)],
    "training": [
        ("batch_tokens", 700),
        ("warmup", 33),
        ("learning_rate", 0.02),
        ("metric", "chrf"),
        ("r_drop", 1.5),
        ("steps", 9),
        ("optimiser", "adamw"),
    ],
}
SETTINGS = [(section, name, value) for section, fields in OPEN.items() for name, value in fields]


@given(given_=st.sets(st.sampled_from(SETTINGS)), pairs=st.integers(0, 10**8))
def test_given_settings_are_kept_for_any_corpus(given_, pairs):
    configuration = translation(**{f"{section}.{name}": _toml(value) for section, name, value in given_})
    fitted = fit(configuration, pairs, SPOKEN)
    assert not is_open(fitted)
    for section, name, value in given_:
        part = getattr(fitted, section)
        assert (part[name] if section == "model" else getattr(part, name)) == value
    assert (fitted.data, fitted.run, fitted.cleaning, fitted.decoding) == (
        configuration.data,
        configuration.run,
        configuration.cleaning,
        configuration.decoding,
    )


def _toml(value):
    return str(value).lower() if isinstance(value, bool) else value


def test_setting_only_dropout_does_not_choose_the_base_model():
    configuration = from_dict({**DATA, "model": {"dropout": 0.25}})
    assert fit(configuration, 29_000, SPOKEN).model == {**SENTENCE_SIZES[2].model, "dropout": 0.25}


@pytest.mark.parametrize("model", [{"preset": "base"}, {"preset": "tiny", "dropout": 0.0}, {"d_model": 64}])
def test_a_preset_or_a_size_fixes_the_model(model):
    assert fit(from_dict({**DATA, "model": model}), 29_000, SPOKEN).model == model


def test_a_given_warmup_leaves_the_rate_to_the_papers_formula():
    training = fit(translation(**{"training.warmup": 4000}), 29_000, SPOKEN).training
    assert (training.warmup, training.learning_rate) == (4000, 0)


@pytest.mark.parametrize("pairs", [100, 29_000, 10**6])
def test_the_learning_rate_depends_on_the_optimiser(pairs):
    for optimiser, as_of in (("muon", "muon"), ("adam", "adam"), ("adamw", "adam")):
        training = fit(translation(**{"training.optimiser": optimiser}), pairs, SPOKEN).training
        row = next(row for row in SENTENCE_SIZES if pairs <= row.pairs)
        assert (training.optimiser, training.learning_rate) == (optimiser, row.rates[as_of])


def test_a_setting_without_effect_on_the_corpus_is_refused():
    configuration = translation(**{"tokenizer.byte_fallback": "true"})
    with pytest.raises(ConfigError, match=r"tokenizer\.byte_fallback: expected its default with the kinds charac"):
        fit(configuration, 10_000, PHONES)


def test_given_kinds_of_the_sides_are_kept():
    configuration = translation(**{"tokenizer.joint": "false", "tokenizer.target_kind": "characters"})
    assert fit(configuration, 10_000, PHONES).tokenizer.kinds == ("characters", "characters")
    assert fit(configuration, 10_000, SPOKEN).tokenizer.kinds == ("unigram", "characters")


def test_only_the_beginning_of_a_sample_is_read():
    sample = iter(SPOKEN * 10_000)
    fit(translation(), 20_000, sample)
    assert len(list(sample)) == 10_000


@pytest.mark.parametrize(
    ("pairs", "sample", "overrides", "r_drop", "sampling"),
    [
        (14_000, SPOKEN, {}, 3, 0.3),
        (29_000, SPOKEN, {}, 0, 0),
        (14_000, PHONES, {}, 0, 0),
        (14_000, SPOKEN, {"tokenizer.kind": "characters"}, 3, 0),
        (14_000, SPOKEN, {"model.dropout": 0.0}, 0, 0.3),
        (14_000, SPOKEN, {"model.preset": "tiny"}, 3, 0.3),
        (14_000, SPOKEN, {"training.r_drop": 0.0, "tokenizer.sampling": 0.0}, 0, 0),
    ],
    ids=["few sentences", "more sentences", "words", "characters", "no dropout", "a preset", "given"],
)
def test_few_sentences_are_regularised_where_it_has_an_effect(pairs, sample, overrides, r_drop, sampling):
    configuration = fit(translation(**overrides), pairs, sample)
    assert (configuration.training.r_drop, configuration.tokenizer.sampling) == (r_drop, sampling)


def test_the_chosen_settings_are_reported_in_words():
    before = translation()
    assert describe_choice(before, fit(before, 14_000, SPOKEN), 14_000) == (
        "14,000 pairs: unigram vocabulary of 4,000, subword sampling 0.3, 4 + 4 layers of width 128, dropout 0.2, "
        "Muon, batches of 3,000 tokens, 400 steps of warm-up, learning rate 0.005, R-Drop 3, scored by bleu"
    )
    assert describe_choice(before, fit(before, 29_000, SPOKEN), 29_000) == (
        "29,000 pairs: unigram vocabulary of 8,000, 4 + 4 layers of width 128, dropout 0.3, Muon, batches of 4,096 "
        "tokens, 400 steps of warm-up, learning rate 0.005, scored by bleu"
    )
    assert describe_choice(before, fit(before, 9_999, PHONES), 9_999) == (
        "9,999 pairs: characters to words, 4 + 4 layers of width 128, dropout 0.3, Muon, batches of 3,000 tokens, "
        "400 steps of warm-up, learning rate 0.005, scored by exact"
    )
    closed = Configuration(data=DataConfig(task="copy"), tokenizer=before.tokenizer, model={"preset": "tiny"})
    closed = replace(closed, tokenizer=fit(closed, 7, SPOKEN).tokenizer)
    assert describe_choice(closed, fit(closed, 7, SPOKEN), 7) == ""
