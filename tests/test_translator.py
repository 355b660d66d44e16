"""Text in, text out: one result for each text, the same in any batch."""

import random
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
import word_by_word
from glassformer.bundle import Bundle
from glassformer.corpus.batching import Examples
from glassformer.decoding import length_penalty
from glassformer.decoding.engine import Job, Search
from glassformer.decoding.torch_engine import TorchEngine
from glassformer.errors import ConfigError, DecodingError, ShapeError
from glassformer.recipes.configuration import TrainingConfig
from glassformer.recipes.toml import from_dict
from glassformer.text.links import word_spans
from glassformer.text.normalisation import normalise
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers
from glassformer.training import steps as training_steps
from glassformer.translator import Translator
from models import new_bundle, random_translator
from profiles import scaled

SOURCE_WORDS = ("the", "cat", "dog", "sees", "a", "big", "black", "house", "and", "river", "sleeps")
TARGET_WORDS = ("le", "chat", "chien", "voit", "un", "grand", "noir", "maison", "et", "fleuve", "dort", "pas", "ne")
SIZES = {"d_model": 32, "heads": 4, "d_ff": 48, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0, "norm": "pre"}

ENGINES = ("torch", "ctranslate2")
KINDS = ("words", "characters", "bpe", "unigram")

few = scaled(5)
some_texts = st.lists(st.lists(st.sampled_from(SOURCE_WORDS), min_size=1, max_size=11).map(" ".join), max_size=7)


class Counting(gf.Transformer):
    """A Transformer that counts the translated sources."""

    started = 0

    def start(self, source):
        """Count, and start."""
        self.started += len(source)
        return super().start(source)


def save_run(folder, *, seed=7, steps=200, source_words=SOURCE_WORDS, target_words=TARGET_WORDS, **model):
    """Write a run that has learned to translate word by word and to end."""
    values = {
        "data": {"source": "a.tsv", "max_length": model.get("max_length", 256)},
        "tokenizer": {"kind": "words", "joint": False},
        "model": {**SIZES, **model},
    }
    configuration = from_dict({**values, "decoding": {"beam_size": 3, "length_penalty": 0.8}})
    pairs = [(text, " ".join(TARGET_WORDS[SOURCE_WORDS.index(word)] for word in text.split())) for text in some(1000)]
    bundle = new_bundle(folder, configuration, [" ".join(source_words)], [" ".join(target_words)])
    torch.manual_seed(seed + word_by_word.SEED)
    network = gf.Transformer(bundle.model_config)
    sides = (bundle.source_tokenizer, bundle.target_tokenizer)
    examples, _ = Examples.encode(pairs, *sides, max_length=bundle.model_config.max_length)
    training = TrainingConfig(steps=steps, batch_tokens=300, learning_rate=0.01, warmup=20)
    for _ in training_steps(network, examples, training):
        pass
    bundle.save(network)


def beam_of(translator, text):
    """Return all hypotheses that a beam of 5 holds at its end."""
    tokenizer, decoding = translator.bundle.source_tokenizer, translator.bundle.configuration.decoding
    job = Job(((*tokenizer.encode(text), tokenizer.eos_id),), max_length=len(tokenizer.encode(text)) + 1 + 9)
    search = Search(settings=replace(decoding, beam_size=5), n_best=5)
    return next(iter(translator.engine.decode([job], search)))


@pytest.fixture(scope="module")
def of_kinds(tmp_path_factory):
    """Return a translator with random weights for each kind of tokenizer."""
    lines = ["le chat voit un grand chien noir et dort . l'été , ça va - t - il ?", "the cat sees a big black dog"] * 9
    made = {}
    for kind in KINDS:
        tokenizers = train_tokenizers(lines, lines, TokenizerConfig(kind=kind, vocab_size=60, joint=True))
        folder = tmp_path_factory.mktemp(kind)
        made[kind] = random_translator(folder, tokenizers=tokenizers, extra_length=9)
    return made


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the folder of a run."""
    folder = tmp_path_factory.mktemp("runs") / "small"
    with torch.random.fork_rng(devices=[]):
        save_run(folder)
    return folder


@pytest.fixture
def translator(run):
    """Return the run's translator, which counts the translated sources."""
    bundle = Bundle.load(run)
    network = Counting(bundle.model_config)
    network.load_state_dict(bundle.model().state_dict())
    return Translator(bundle, network.eval())


def test_the_languages_of_a_run_decide_which_letters_are_capitals(run):
    bundle, texts = Bundle.load(run), []
    for languages in ({"source_language": "tr", "target_language": "az"}, {}):
        configuration = replace(bundle.configuration, data=replace(bundle.configuration.data, **languages))
        translator = Translator(replace(bundle, configuration=configuration), bundle.model())
        texts += [one.text for one in translator.translate(["IŞIK", "IŞIK."], glossary={"ışık": "ilik"})]
    assert texts[:2] == ["İlik", "İlik."]
    assert "lik" not in "".join(texts[2:])


def some(count, seed=1):
    """Return texts of different lengths."""
    chance = random.Random(seed)
    return [" ".join(chance.choices(SOURCE_WORDS, k=chance.randint(1, 13))) for _ in range(count)]


def assert_same(ours, theirs):
    # A different batch sums the same float32 numbers in a different order.
    assert (ours.text, ours.tokens, ours.status) == (theirs.text, theirs.tokens, theirs.status)
    assert (ours.log_prob, ours.score) == pytest.approx((theirs.log_prob, theirs.score), abs=1e-4)
    assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=1e-4)


def assert_all_same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        assert_same(one, other)


def status_of(result):
    """Return the status of a finished output: a model that has learned little may end at once."""
    return "ok" if result.text else "empty"


# Results


def test_a_saved_run_translates(run, translator):
    loaded = Translator.load(run)
    assert_all_same(loaded.translate(some(5)), translator.translate(some(5)))
    assert not loaded.model.training


def test_a_result_has_all_its_fields(translator):
    for result in translator.translate(some(7)):
        assert result.status == status_of(result)
        assert result.tokens[-1] == "<eos>"
        assert result.text == " ".join(result.tokens[:-1])
        assert len(result.token_log_probs) == len(result.tokens)
        assert result.log_prob == pytest.approx(sum(result.token_log_probs))
        assert result.score == pytest.approx(result.log_prob / length_penalty(len(result.tokens), 0.8))
        assert result.log_prob < 0
        assert result.alternatives == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_links_join_words_of_both_texts(run, engine):
    translator = Translator.load(run, engine=engine)
    texts = [*some(60), "", "the  cat\u00a0sleeps", "the cat sleeps"]
    results = translator.translate(texts, links=True)
    assert results == list(translator.stream(texts, links=True))
    for text, result in zip(texts, results, strict=True):
        assert {link.source for link in result.links} == set(word_spans(text) if result.text else ())
        assert list(dict.fromkeys(link.target for link in result.links)) == word_spans(result.text)
    assert len(set().union(*(one.links for one in results))) > 60
    assert not any(result.links for result in translator.translate(texts))


def test_alternatives_have_links_of_their_own(translator):
    [result] = translator.translate(some(1), n_best=3, links=True)
    for one in (result, *result.alternatives):
        assert list(dict.fromkeys(link.target for link in one.links)) == word_spans(one.text)


def test_both_engines_look_at_the_same_words(run):
    """The test uses greedy search, because the engines' beams can end with different outputs."""
    ours, theirs = (
        Translator.load(run, engine=engine).translate(some(40, seed=3), beam_size=1, links=True) for engine in ENGINES
    )
    assert [(one.text, one.links) for one in ours] == [(one.text, one.links) for one in theirs]


def test_the_texts_of_this_file_have_different_translations(translator):
    results = translator.translate(some(23))
    assert len({result.text for result in results}) > 15
    assert len({len(result.tokens) for result in results}) > 3


@few
@given(texts=some_texts, beam_size=st.sampled_from([1, 3]))
def test_a_text_has_the_same_translation_in_any_batch(translator, texts, beam_size):
    results = translator.translate(texts, beam_size=beam_size)
    for text, result in zip(texts, results, strict=True):
        assert_same(result, translator.translate([text], beam_size=beam_size)[0])


@few
@given(texts=some_texts, order=st.randoms(use_true_random=False))
def test_the_order_of_the_texts_does_not_matter(translator, texts, order):
    places = list(range(len(texts)))
    order.shuffle(places)
    shuffled = translator.translate([texts[place] for place in places])
    straight = translator.translate(texts)
    assert_all_same(shuffled, [straight[place] for place in places])


@pytest.mark.slow
def test_small_and_large_batches_give_the_same_translations(translator):
    texts = some(23)
    expected = translator.translate(texts)
    for budget in (1, 40, 100):
        small = Translator(translator.bundle, TorchEngine(translator.model, budget=budget))
        assert_all_same(small.translate(texts), expected)


@pytest.mark.slow
def test_equal_texts_are_translated_once(translator):
    texts = ["the cat sees", "a dog", "the  cat sees ", "a dog", "the cat sees", "", "a dog"]
    results = translator.translate(texts)
    assert translator.model.started == 2
    assert [result.text for result in results] == [
        translator.translate([text])[0].text if text else "" for text in texts
    ]


def test_equal_texts_with_different_prefixes_are_different_jobs(translator):
    translator.translate(["the cat"] * 5, prefix=["le", "un", "le", "", ""])
    assert translator.model.started == 3


def test_no_texts_give_no_translations(translator):
    assert translator.translate([]) == []
    assert translator.score([]) == []
    assert list(translator.stream([])) == []
    assert translator.model.started == 0


# Texts that cannot be translated


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", "blank"),
        (" \t\n", "blank"),
        ("\u3000\u00a0", "blank"),
        ("▁ ▁", "blank"),
        ("the \udcff cat", "undecodable"),
        ("\ud800", "undecodable"),
        ("cat " * 1024, "too_long"),
    ],
)
def test_a_text_that_cannot_be_translated_has_a_status_and_no_text(translator, text, status):
    first, middle, last = translator.translate(["the cat", text, "a dog"])
    assert (middle.text, middle.status, middle.log_prob, middle.tokens) == ("", status, 0.0, ())
    assert_all_same([first, last], translator.translate(["the cat", "a dog"]))
    assert translator.model.started == 4


def test_a_source_may_have_the_maximum_length_including_eos(translator):
    texts = ["cat " * length for length in (5, 6, 7)]
    assert [one.status for one in translator.translate(texts, max_source=7)] == ["ok", "ok", "too_long"]
    with pytest.raises(ConfigError, match=r"decoding\.max_source: expected an integer from 1 to 1,000,000,000, got -5"):
        translator.translate(texts, max_source=-5)


def test_a_truncated_output_has_a_status(translator):
    text = max(some(23), key=lambda text: len(translator.translate([text], extra_length=0)[0].tokens))
    [result] = translator.translate(["dog"], prefix="le", extra_length=0)
    assert result.status == "max_length"
    assert result.tokens == ("le", "<eos>")
    [result] = translator.translate([text], extra_length=0)
    assert len(result.tokens) <= len(text.split()) + 1


def test_unknown_words_do_not_prevent_a_translation(translator):
    [result] = translator.translate(["the zebra 日本 🦓"])
    assert result.status == status_of(result)


@pytest.mark.slow
def test_learned_positions_end_where_the_table_ends(tmp_path, seed):
    save_run(tmp_path / "run", steps=30, positions="learned", max_length=11)
    translator = Translator.load(tmp_path / "run")
    texts = ["cat " * 10, "cat " * 11, "a dog"]
    long, too_long, short = translator.translate(texts)
    assert (too_long.status, too_long.text) == ("too_long", "")
    assert max(len(long.tokens), len(short.tokens)) <= 11
    scored = translator.score([("a dog", "chat " * 10), ("a dog", "chat " * 11), ("cat " * 11, "chat")])
    assert [one.status for one in scored] == ["ok", "too_long", "too_long"]


# Searches


def test_the_search_follows_the_configuration_by_default(translator):
    texts = some(7)
    assert translator.translate(texts) == translator.translate(texts, beam_size=3, length_penalty=0.8)
    plain = translator.translate(texts, length_penalty=0.0)
    assert all(result.score == result.log_prob for result in plain)


def test_the_alternatives_are_the_next_best_outputs(translator):
    for one, best in zip(translator.translate(some(7), n_best=3), translator.translate(some(7)), strict=True):
        assert_same(replace(one, alternatives=()), best)
        every = [one, *one.alternatives]
        assert len({candidate.tokens for candidate in every}) == 3
        scores = [candidate.score for candidate in every]
        assert scores == sorted(scores, reverse=True)
        assert all(candidate.alternatives == () for candidate in one.alternatives)


def test_a_larger_beam_finds_nothing_worse(translator):
    texts = some(23)
    small, large = (translator.translate(texts, beam_size=size, length_penalty=0.0) for size in (1, 17))
    assert sum(one.score for one in large) > sum(one.score for one in small)


def test_one_prefix_can_begin_every_output(translator):
    for result in translator.translate(some(7), prefix="le  chat"):
        assert result.tokens[:2] == ("le", "chat")
        assert result.text.startswith("le chat")


def test_a_prefix_of_many_texts_is_read_once(translator, monkeypatch):
    tokenizer, read = translator.bundle.target_tokenizer, []
    encode = type(tokenizer).encode
    monkeypatch.setattr(type(tokenizer), "encode", lambda self, text: read.append(text) or encode(self, text))
    translator.translate(some(7), prefix="le chat")
    assert read.count("le chat") == 1


def test_each_text_may_have_its_own_prefix(translator):
    texts, prefixes = some(4), ["le chat", "", "noir", "un"]
    results = translator.translate(texts, prefix=prefixes)
    assert [result.tokens[0] for result in (results[0], *results[2:])] == ["le", "noir", "un"]
    for text, prefix, result in zip(texts, prefixes, results, strict=True):
        assert_same(result, translator.translate([text], prefix=prefix)[0])
    assert_same(results[1], translator.translate(texts)[1])


@pytest.mark.parametrize(
    ("prefix", "why"),
    [
        ("zebra", "its target vocabulary lacks 'zebra'"),
        ("le chat voit Zorglub et l'hermite", "lacks 'Zorglub', \"l'\", 'hermite'"),
        ("le <unk>", "which spells it as|lacks"),
        ("LE CHAT", "lacks 'LE', 'CHAT'"),
        ("le cha", "lacks 'cha'"),
        ("le chat ,", "lacks ','"),
        ("<b>le</b>", "lacks '<b>le</b>'"),
        ("{name} le", "lacks '{', 'name', '}'"),
        ("😀 le", "lacks '😀'"),
        ("\u200cle", r"lacks '\\u200cle'"),
        ("le ⟦0⟧", "lacks '⟦0⟧'"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, {"sample": True}], ids=str)
def test_a_prefix_that_the_vocabulary_cannot_write_is_refused_before_anything_runs(translator, prefix, why, options):
    with pytest.raises(DecodingError, match=why):
        translator.translate(some(3), prefix=["le", "", prefix], **options)
    with pytest.raises(DecodingError, match=why):
        next(translator.stream(some(3), prefix=prefix, **options))
    with pytest.raises(DecodingError, match=why):
        translator.explain("the cat", prefix=prefix)


@few
@given(kind=st.sampled_from(KINDS), prefix=st.text("abcdehlt éç'.-,", max_size=9) | st.text(max_size=3))
def test_an_output_begins_with_its_prefix_or_the_prefix_is_refused(of_kinds, kind, prefix):
    try:
        [one] = of_kinds[kind].translate(["the cat sleeps"], prefix=prefix)
    except DecodingError:
        return
    assert one.text.startswith(normalise(prefix))


@pytest.mark.parametrize("kind", ["characters", "unigram"])
@pytest.mark.parametrize("count", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_several_outputs_are_different_texts_and_the_best_of_the_beam(of_kinds, kind, count):
    """Many token sequences can spell the same text; of the outputs with the same text, only the best is kept."""
    translator, shorter = of_kinds[kind], 0
    for text in some(9):
        translations = translator.translate([text], beam_size=5, n_best=count, protect=False)
        found = [(one.text, one.score) for one in (translations[0], *translations[0].alternatives)]
        hypotheses = beam_of(translator, text)
        best = {}
        for hypothesis in hypotheses:
            best.setdefault(translator.bundle.target_tokenizer.decode(hypothesis.tokens), hypothesis.score)
        assert found == [(written, pytest.approx(score)) for written, score in list(best.items())[:count]]
        shorter += len(best) < len(hypotheses)
    assert shorter or kind == "characters"


def test_the_prefix_counts_in_the_log_probability(translator):
    [result] = translator.translate(["the cat"], prefix="noir noir noir")
    [scored] = translator.score([("the cat", result.text)])
    assert_same(result, scored)


# Explanations


@few
@given(text=st.sampled_from(some(20)), beam_size=st.sampled_from([1, 2, 5]), alpha=st.sampled_from([0.0, 0.8]))
def test_an_explanation_shows_the_same_translation(translator, text, beam_size, alpha):
    options = {"beam_size": beam_size, "length_penalty": alpha}
    explanation = translator.explain(text, **options)
    [translation] = translator.translate([text], n_best=beam_size, **options)
    assert_same(explanation.translation, translation)
    assert_all_same(explanation.translation.alternatives, translation.alternatives)
    assert (explanation.settings.beam_size, explanation.settings.length_penalty) == (beam_size, alpha)


def test_an_explanation_follows_the_configuration_by_default(translator):
    explanation = translator.explain("the cat sleeps")
    assert (explanation.settings.beam_size, explanation.settings.length_penalty) == (3, 0.8)
    assert_same(replace(explanation.translation, alternatives=()), translator.translate(["the cat sleeps"])[0])


def test_every_output_is_in_the_tree_with_its_numbers(translator):
    explanation = translator.explain("the big cat sees a dog")
    tree, words = explanation.tree, explanation.tree_tokens
    best = explanation.translation
    finished = {
        tuple(words[one.id] for one in tree.path(node.id)): node for node in tree.nodes if node.state == "finished"
    }
    assert len(words) == len(tree.nodes)
    assert words[0] == "<bos>"
    for one in (best, *best.alternatives):
        node = finished[one.tokens]
        assert (node.log_prob, node.score) == (one.log_prob, one.score)
        assert tuple(each.token_log_prob for each in tree.path(node.id)) == one.token_log_probs


def test_attention_is_taken_at_the_position_that_predicts_each_token(translator):
    explanation = translator.explain("the big cat sees a dog")
    target = [1, *translator.bundle.target_tokenizer.encode(explanation.translation.text)]
    source = [*translator.bundle.source_tokenizer.encode("the big cat sees a dog"), 2]
    with torch.no_grad(), gf.record(translator.model) as trace:
        translator.model(torch.tensor([source]), torch.tensor([target]))
    expected = trace["decoder.layers.0.cross_attention.weights"][0].mean(0)
    assert explanation.attention_layer == "decoder.layers.0.cross_attention"
    torch.testing.assert_close(torch.tensor(explanation.attention), expected)
    assert expected.shape == (len(explanation.translation.tokens), len(explanation.source))
    assert explanation.source == ("the", "big", "cat", "sees", "a", "dog", "<eos>")


def test_an_explanation_names_unknown_words(translator):
    explanation = translator.explain("the zebra sees a 日本")
    assert explanation.unknown == ("zebra", "日本")
    assert explanation.source[1] == "<unk>"


def test_a_prefix_is_followed_by_the_explained_search(translator):
    explanation = translator.explain("the cat sleeps", prefix="grand chien", beam_size=2)
    assert explanation.translation.text.startswith("grand chien")
    assert [len(nodes) for nodes in explanation.tree.steps()[:3]] == [1, 1, 4]


@pytest.mark.parametrize(("text", "status"), [("  ", "blank"), ("cat " * 30, "too_long"), ("\udc80", "undecodable")])
def test_a_text_that_cannot_be_translated_is_explained_by_its_status(translator, text, status):
    explanation = translator.explain(text, max_source=20)
    assert (explanation.translation.status, explanation.translation.text) == (status, "")
    assert (explanation.source, explanation.attention, explanation.tree.nodes) == ((), (), ())


# Samples


def test_samples_depend_only_on_the_seed_and_the_place(translator):
    texts, sampling = some(7), {"sample": True, "seed": 5}
    results = translator.translate(texts, **sampling)
    assert results == translator.translate(texts, **sampling)
    others = ["a cat", *texts[1:3], "", "the dog and the cat", *texts[5:]]
    for place, result in enumerate(translator.translate(others, **sampling)):
        if others[place] == texts[place]:
            assert_same(result, results[place])
    assert [one.text for one in results] != [one.text for one in translator.translate(texts, sample=True, seed=6)]


def test_equal_texts_at_different_places_have_different_samples(translator):
    assert len({one.text for one in translator.translate(["the cat"] * 11, sample=True)}) > 3


def test_any_integer_is_a_seed(translator):
    for seed in (-1, 0, 2**40):
        [result] = translator.translate(["the cat"], sample=True, seed=seed)
        assert result.status == status_of(result)


def test_a_sample_has_the_score_of_its_text(translator):
    options = {"temperature": 1.7, "top_k": 5, "top_p": 0.9}
    results = translator.translate(["the cat"] * 5, sample=True, **options, length_penalty=0.3)
    scored = translator.score([("the cat", one.text) for one in results], length_penalty=0.3)
    written = [number for number, one in enumerate(results) if one.text]  # blank texts cannot be scored
    assert len({results[number].text for number in written}) > 1
    assert_all_same([results[number] for number in written], [scored[number] for number in written])


def test_sampling_can_be_limited_to_the_most_probable_tokens(translator):
    texts = some(5)
    assert_all_same(translator.translate(texts, sample=True, top_k=1), translator.translate(texts, beam_size=1))


# Streams


@pytest.mark.parametrize("window", [1, 3, 100])
@pytest.mark.parametrize("sampling", [{}, {"sample": True, "seed": 3}])
def test_a_stream_gives_the_same_as_translate(translator, window, sampling):
    texts = [*some(7), "", "the cat", "the cat", "\udcff"]
    streamed = translator.stream(iter(texts), window=window, length_penalty=0.3, **sampling)
    assert_all_same(streamed, translator.translate(texts, length_penalty=0.3, **sampling))


def test_a_stream_holds_no_more_than_its_window(translator):
    asked = []
    results = translator.stream((asked.append(text) or text for text in some(7)), window=3)
    assert asked == []
    next(results)
    assert len(asked) == 3


# Scores


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_score_of_a_translation_is_the_score_of_the_search(translator, beam_size):
    found = dict(zip(some(41), translator.translate(some(41), beam_size=beam_size), strict=True))
    whole = {text: one for text, one in found.items() if one.text and one.status == "ok"}
    assert len(whole) > 30
    assert_all_same(translator.score([(text, one.text) for text, one in whole.items()]), whole.values())


def test_pairs_that_cannot_be_scored_have_a_status(translator):
    pairs = [("the cat", "le chat"), ("", "le"), ("a", " "), ("\udcff", "le"), ("a", "\udcff"), ("a " * 1024, "le")]
    results = translator.score([*pairs, ("a", "le " * 1024), ("the cat", "le chat")])
    statuses = ["ok", "blank", "blank", "undecodable", "undecodable", "too_long", "too_long", "ok"]
    assert [one.status for one in results] == statuses
    assert [one.text for one in results[:6]] == [target for _, target in pairs]
    assert_same(results[0], results[-1])
    assert [one.log_prob for one in results[1:7]] == [0.0] * 6


# Mistakes


def test_one_string_instead_of_a_list_is_refused(translator):
    with pytest.raises(ShapeError, match=r"a list of strings, got one string; call translate\(\['the cat'\]\)"):
        translator.translate("the cat")


def test_a_wrong_number_of_prefixes_is_refused(translator):
    with pytest.raises(ShapeError, match="expected one for each of 2 texts, got 1"):
        translator.translate(["the cat", "a dog"], prefix=["le"])


@pytest.mark.parametrize("options", [{"beam_size": 2}, {"n_best": 2}, {"beam_size": 1, "n_best": 2}])
def test_sampling_with_a_beam_is_refused(translator, options):
    with pytest.raises(ConfigError, match="sampling draws one output per text: leave out beam_size and n_best"):
        translator.translate(["the cat"], sample=True, **options)


@pytest.mark.parametrize("size", ["four", None])
def test_a_beam_size_that_is_not_a_number_is_refused_for_sampling_too(translator, size):
    with pytest.raises(ConfigError, match=r"decoding\.beam_size: expected an integer"):
        translator.translate(["the cat"], sample=True, beam_size=size)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, r"decoding\.beam_size: expected"),
        ({"n_best": 4}, "n_best: expected a number from 1 to beam_size = 3, got 4"),
        ({"n_best": 0}, "n_best: expected a number from 1"),
        ({"beam_size": 1, "n_best": 0}, "n_best: expected a number from 1"),
        ({"prefix": "le " * 60}, "leaves no room for <eos>"),
        ({"temperature": 0.0}, r"decoding\.temperature: expected"),
        ({"top_p": 1.5}, r"decoding\.top_p: expected"),
        ({"top_k": -1}, r"decoding\.top_k: expected"),
        ({"temperatur": 1.0}, r"decoding\.temperatur: unknown field \(did you mean 'temperature'\?\)"),
        ({"beam_size": "four"}, r"decoding\.beam_size: expected"),
    ],
)
def test_impossible_options_are_named(translator, options, message):
    with pytest.raises((ConfigError, DecodingError), match=message):
        translator.translate(["the cat"], **options)


# Ensembles


@pytest.fixture(scope="module")
def other_run(tmp_path_factory):
    """Return the folder of a run with a different size, seed and source vocabulary, but the same target tokens."""
    folder = tmp_path_factory.mktemp("runs") / "other"
    with torch.random.fork_rng(devices=[]):
        save_run(folder, seed=11, steps=120, source_words=("aardvark", *SOURCE_WORDS), d_model=40)
    return folder


@pytest.fixture
def ensemble(run, other_run):
    """Return the translator of both runs as an ensemble."""
    return Translator.load(run, other_run)


def test_an_ensemble_of_a_model_with_itself_is_the_model(run, translator):
    twice = Translator.load(run, run)
    for options in ({}, {"beam_size": 1}, {"n_best": 3}, {"sample": True, "seed": 5}, {"prefix": "le"}):
        ours, theirs = twice.translate(some(7), **options), translator.translate(some(7), **options)
        assert_all_same(ours, theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_all_same(one.alternatives, other.alternatives)


@pytest.mark.slow
def test_an_ensemble_differs_from_each_of_its_models(run, other_run, ensemble):
    results = [each.translate(some(23)) for each in (ensemble, Translator.load(run), Translator.load(other_run))]
    ours, first, second = ([one.log_prob for one in several] for several in results)
    assert all(a != b for a, b in zip(ours, first, strict=True))
    assert all(a != b for a, b in zip(ours, second, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, {"n_best": 2}, {"prefix": "le chat"}], ids=str)
def test_a_translation_of_an_ensemble_has_the_mean_probability_of_its_models(run, other_run, ensemble, options):
    members, compared = (Translator.load(run), Translator.load(other_run)), 0
    for text, result in zip(some(7), ensemble.translate(some(7), **options), strict=True):
        found = [
            replace(one, alternatives=()) for one in (result, *result.alternatives) if one.text and one.status == "ok"
        ]
        compared += len(found)
        pairs = [(text, one.text) for one in found]
        each = [[torch.tensor(one.token_log_probs).exp() for one in member.score(pairs)] for member in members]
        for one, a, b in zip(found, *each, strict=True):
            assert one.token_log_probs == pytest.approx(((a + b) / 2).log().tolist(), abs=1e-4)
        assert_all_same(ensemble.score(pairs), found)
    assert compared >= 5


@pytest.mark.slow
def test_an_ensemble_gives_a_text_the_same_translation_in_any_batch(ensemble):
    texts = some(11)
    for beam_size in (1, 3):
        together = ensemble.translate(texts, beam_size=beam_size)
        assert_all_same(together, [ensemble.translate([text], beam_size=beam_size)[0] for text in texts])


def test_the_order_of_the_models_decides_only_the_defaults(run, other_run, ensemble):
    assert_all_same(Translator.load(other_run, run).translate(some(7)), ensemble.translate(some(7)))


def test_a_nested_ensemble_is_an_ensemble_of_all_models(run, other_run, ensemble):
    nested = Translator(ensemble.bundle, Translator.load(run).model, ensemble)
    assert_all_same(nested.translate(some(7)), Translator.load(run, run, other_run).translate(some(7)))


def test_the_shortest_maximum_length_decides_for_an_ensemble(run, tmp_path, seed):
    save_run(tmp_path / "short", steps=1, positions="learned", max_length=11)
    short, long = Translator.load(run, tmp_path / "short").translate(["cat " * 10, "cat " * 11])
    assert (short.status in ("ok", "max_length"), long.status) == (True, "too_long")
    [scored] = Translator.load(run, tmp_path / "short").score([("a dog", "chat " * 11)])
    assert scored.status == "too_long"


def test_an_ensemble_cannot_be_inspected(ensemble):
    with pytest.raises(ConfigError, match="cannot be inspected: explain or explore one of its models"):
        ensemble.explain("the cat")
    with pytest.raises(ConfigError, match="cannot be inspected"):
        gf.explore(ensemble, "the cat")


def test_an_ensemble_cannot_be_checked(ensemble, unchecked):
    with pytest.raises(ConfigError, match="cannot be inspected"):
        gf.check(ensemble)


@pytest.mark.parametrize(
    ("words", "message"),
    [(TARGET_WORDS[1:], "17 words and 16 words"), (("el", *TARGET_WORDS[1:]), "differ first in id 7, 'et' and 'el'")],
    ids=["fewer", "another"],
)
def test_models_with_different_target_tokens_cannot_form_an_ensemble(run, tmp_path, seed, words, message):
    save_run(tmp_path / "other", steps=1, target_words=words)
    with pytest.raises(ConfigError, match=f"{message}.* with the same run.seed unless data.valid_source names"):
        Translator.load(run, tmp_path / "other")
