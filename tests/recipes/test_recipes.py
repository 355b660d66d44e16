"""The built-in recipes: their settings, and the paper's numbers in the paper's recipes."""

import re

import pytest

from glassformer.cli.train.recipes import RECIPE_GROUPS
from glassformer.corpus.files import files_of, format_of
from glassformer.recipes.files import recipes
from glassformer.recipes.toml import load, model_config

FILES = sorted(set(recipes()) - {"adapt", "copy", "demo", "translation"})
WORDS = {name for name in FILES if name.startswith(("cmudict", "sigmorphon", "wikipron", "netrans", "ar2en"))}
PAPER = ("wmt14-base", "wmt14-base-en-fr", "wmt14-big", "wmt14-big-en-fr")


def test_each_corpus_has_a_recipe():
    corpora = {"multi30k-de-en", "multi30k-en-de", "multi30k-en-fr", "tatoeba-de-en", "cmudict", "sigmorphon2021-eng"}
    corpora |= {"wikipron-kat", "wikipron-ita", "wikipron-isl", "netrans-en-ru", "ar2en", "iwslt14", *PAPER}
    assert set(recipes()) == {"adapt", "copy", "demo", "translation", *corpora}


@pytest.mark.parametrize("name", recipes())
def test_the_first_line_of_a_recipe_has_its_group_and_purpose(name):
    first = recipes()[name].read_text(encoding="utf-8").splitlines()[0]
    group, colon, text = first.removeprefix("# ").partition(": ")
    assert group in RECIPE_GROUPS
    assert colon
    assert text.endswith(".")
    assert len(name) + len(text) < 118  # fits into one line of the list


@pytest.mark.parametrize("name", FILES)
def test_a_recipe_names_the_origin_of_its_files_and_the_expected_result(name):
    lines = recipes()[name].read_text(encoding="utf-8").splitlines()
    comments = " ".join(lines[: next(i for i, line in enumerate(lines) if not line.startswith("#"))])
    assert "Data: " in comments
    assert "benchmarks/README.md" in comments or re.search("Published results|reports", comments)
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("name", ["demo", *FILES])
def test_a_recipe_names_its_languages(name):
    data = load(name).data
    assert data.source_language
    assert data.target_language


@pytest.mark.parametrize("name", FILES)
def test_training_and_test_files_of_a_recipe_differ(name):
    data = load(name).data
    train, valid, test = (
        {*files_of(getattr(data, f"{part}source")), *files_of(getattr(data, f"{part}target"))} - {""}
        for part in ("", "valid_", "test_")
    )
    assert train
    assert valid
    assert not (train & valid) | (train & test) | (valid & test)
    assert bool(test) == (name not in {"cmudict", "sigmorphon2021-eng", "netrans-en-ru"})


@pytest.mark.parametrize("name", sorted(WORDS))
def test_recipes_for_words_use_characters_with_two_vocabularies(name):
    configuration = load(name)
    assert not configuration.tokenizer.joint
    assert configuration.tokenizer.kinds == ("characters", "characters" if name == "ar2en" else "words")
    assert format_of(str(configuration.data.source)) == "tsv"


@pytest.mark.parametrize("name", sorted(set(FILES) - WORDS))
def test_the_files_of_a_language_pair_are_named_alike(name):
    data = load(name).data
    for part in ("", "valid_", "test_"):
        source, target = files_of(getattr(data, f"{part}source")), files_of(getattr(data, f"{part}target"))
        assert len(source) == len(target)
        assert all(one != other for one, other in zip(source, target, strict=True))


TABLE_3 = {
    # Name: d_model, d_ff, heads, dropout, steps, number of averaged checkpoints, vocabulary size, number of parameters.
    "wmt14-base": (512, 2048, 8, 0.1, 100_000, 5, 37_000, 63_082_496),
    "wmt14-base-en-fr": (512, 2048, 8, 0.1, 100_000, 5, 32_000, 63_082_496 - 5_000 * 512),
    "wmt14-big": (1024, 4096, 16, 0.3, 300_000, 20, 37_000, 214_245_376),
    "wmt14-big-en-fr": (1024, 4096, 16, 0.1, 300_000, 20, 32_000, 214_245_376 - 5_000 * 1024),
}


@pytest.mark.parametrize("name", PAPER)
def test_the_models_of_the_papers_recipes_follow_table_3(name):
    from glassformer.jobs.speed.estimate import count_parameters

    configuration = load(name)
    size = configuration.tokenizer.vocab_size
    model = model_config(configuration, size, size)
    training = configuration.training
    assert (
        model.d_model,
        model.d_ff,
        model.heads,
        model.dropout,
        training.steps,
        training.average,
        size,
        count_parameters(model),
    ) == TABLE_3[name]
    assert (model.encoder_layers, model.decoder_layers, model.d_k, model.d_v) == (6, 6, 64, 64)
    assert (model.norm, model.activation, model.tie_embeddings, model.tie_output) == ("post", "relu", True, True)
    assert (model.attention_dropout, model.activation_dropout) == (0, 0)


@pytest.mark.parametrize("name", PAPER)
def test_the_trainings_of_the_papers_recipes_follow_section_5(name):
    configuration = load(name)
    training, tokenizer, decoding = configuration.training, configuration.tokenizer, configuration.decoding
    assert training.batch_tokens * training.accumulate == 25_000
    assert (training.optimiser, training.epsilon) == ("adam", 1e-9)
    assert (training.schedule, training.warmup, training.learning_rate) == ("paper", 4000, 0)
    assert (training.label_smoothing, training.weight_decay, training.clip_norm) == (0.1, 0, 0)
    assert (training.minutes, training.patience, training.ema) == (0, 0, 0)
    seconds_a_step = 0.4 if "base" in name else 1.0
    assert training.checkpoint_every * seconds_a_step == 10 * 60
    assert training.keep_checkpoints == training.average
    assert (tokenizer.kind, tokenizer.joint, tokenizer.sampling) == ("bpe", True, 0)
    assert (decoding.beam_size, decoding.length_penalty) == (4, 0.6)


def test_the_longest_translation_follows_the_paper():
    from glassformer.decoding.hypothesis import max_length

    configuration = load("wmt14-base")
    config, extra = model_config(configuration, 37_000, 37_000), configuration.decoding.extra_length
    assert max_length(config, 17, extra) - 17 == 50


@pytest.mark.slow
def test_the_rate_of_the_base_model_peaks_at_7e_4_and_halves_at_four_times_the_warmup():
    from glassformer.training.schedule import learning_rate, paper_peak

    training = load("wmt14-base").training
    peak = paper_peak(512, training.warmup)
    rates = [
        learning_rate(training.schedule, step, peak=peak, warmup=training.warmup, progress=0)
        for step in (1, 4000, 16_000)
    ]
    assert peak == pytest.approx(7.0e-4, abs=1e-5)
    assert rates == pytest.approx([peak / 4000, peak, peak / 2])


def test_the_iwslt_recipe_uses_the_common_settings():
    configuration = load("iwslt14")
    model, training = model_config(configuration, 10_000, 10_000), configuration.training
    assert (model.d_model, model.d_ff, model.heads, model.encoder_layers, model.dropout) == (512, 1024, 4, 6, 0.3)
    assert (training.learning_rate, training.warmup, training.schedule) == (5e-4, 4000, "paper")
    assert (training.batch_tokens * training.accumulate, training.weight_decay) == (4096, 1e-4)
    assert configuration.decoding.beam_size == 5
