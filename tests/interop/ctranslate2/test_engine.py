"""CTranslate2 gives the same answers as the searches in PyTorch: outputs, log probabilities, statuses."""

import math
import random
from dataclasses import replace

import pytest

from glassformer.decoding.engine import Engine, Job, Search
from glassformer.errors import CheckpointError, ConfigError, DecodingError
from glassformer.interop.choice import EngineRequest, load_engine
from glassformer.interop.ctranslate2.engine import CTranslate2Engine, device_and_index
from glassformer.interop.ctranslate2.model import import_ctranslate2
from glassformer.interop.ctranslate2.writer import converted
from glassformer.recipes.configuration import DecodingConfig
from glassformer.translator import Translator
from interop.small_runs import KINDS, WORDS, some
from models import random_translator
from tiers import in_tiers

# The tolerance for float32: the same sums in a different order, over a few layers of width 24.
CLOSE = 1e-4


def both(bundle):
    """Return a run's translators with PyTorch and with CTranslate2."""
    return Translator.load(bundle.folder), Translator.load(bundle.folder, engine="ctranslate2")


def assert_same(ours, theirs):
    assert (ours.text, ours.tokens, ours.status) == (theirs.text, theirs.tokens, theirs.status)
    assert (ours.log_prob, ours.score) == pytest.approx((theirs.log_prob, theirs.score), abs=CLOSE * len(ours.tokens))
    assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=CLOSE)


def assert_all_same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        assert_same(one, other)


@pytest.fixture(scope="module")
def translators(run):
    return both(run)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", in_tiers(KINDS, {"the paper's", "halves, gelu", "pre-norm without final norms, output bias of its own"})
)
def test_greedy_search_and_scores_equal_pytorchs(make_run, kind):
    ours, theirs = both(make_run(**KINDS[kind]))
    expected = ours.translate(some(23), beam_size=1)
    assert len({len(one.tokens) for one in expected}) > 2
    assert_all_same(theirs.translate(some(23), beam_size=1), expected)
    pairs = [(text, " ".join(reversed(WORDS.values()))) for text in some(7)]
    assert_all_same(theirs.score(pairs), ours.score(pairs))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "joint"),
    [
        ("unigram", True),
        ("characters", False),
        *(
            pytest.param(kind, joint, marks=pytest.mark.long)
            for kind, joint in (("words", True), ("words", False), ("characters", True), ("unigram", False))
        ),
    ],
)
def test_every_kind_of_vocabulary_is_converted(make_run, kind, joint):
    ours, theirs = both(make_run(kind=kind, joint=joint))
    texts = [*some(7), "the zebra 日本 <eos> ▁cat"]
    assert_all_same(theirs.translate(texts, beam_size=1), ours.translate(texts, beam_size=1))


@pytest.mark.slow
@pytest.mark.parametrize("beam_size", [2, 5])
@pytest.mark.parametrize(("alpha", "share"), [(0.0, 0.9), (0.6, 0.9), (1.3, 0.3)])
def test_a_beam_equals_ours_unless_ours_searches_longer(translators, beam_size, alpha, share):
    """A large α rewards long outputs, so a search that continues for longer often finds a better output.

    Outputs that are cut at the maximum length are left out, because each search then ranks its hypotheses by its own
    rules.
    """
    ours, theirs = translators
    texts, options = some(41), {"beam_size": beam_size, "length_penalty": alpha, "n_best": beam_size}
    found, expected = theirs.translate(texts, **options), ours.translate(texts, **options)
    equal = []
    for one, other in zip(found, expected, strict=True):
        several = [one, *one.alternatives]
        assert [each.score for each in several] == sorted((each.score for each in several), reverse=True)
        assert len({each.tokens for each in several}) == len(several) == beam_size
        if one.tokens == other.tokens:
            assert_same(replace(one, alternatives=()), replace(other, alternatives=()))
        if "max_length" not in (one.status, other.status):
            assert one.score <= other.score + CLOSE * len(one.tokens)
            equal.append(one.tokens == other.tokens)
    assert len(equal) > 15
    assert sum(equal) >= share * len(equal)


def test_an_output_has_pytorchs_log_probabilities(translators):
    ours, theirs = translators
    pairs = [(text, one.text) for text, one in zip(some(11), theirs.translate(some(11)), strict=True) if one.text]
    found = theirs.translate([text for text, _ in pairs])
    whole = [one.status == "ok" for one in found]
    for keep, one, other in zip(whole, found, ours.score(pairs), strict=True):
        if keep:
            assert_same(one, other)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_without_log_probabilities_the_texts_are_the_same(translators, beam_size):
    _, theirs = translators
    whole = theirs.translate(some(23), beam_size=beam_size, n_best=beam_size)
    bare = theirs.translate(some(23), beam_size=beam_size, n_best=beam_size, log_probs=False)
    for one, other in zip(bare, whole, strict=True):
        assert (one.text, one.tokens, one.status) == (other.text, other.tokens, other.status)
        assert [each.text for each in one.alternatives] == [each.text for each in other.alternatives]
        assert one.token_log_probs == ()
    known = [not math.isnan(one.log_prob) for one in bare if one.text]
    assert any(known) == (beam_size > 1), "a beam knows the sums anyway"


@pytest.mark.parametrize("beam_size", [1, 3])
def test_sums_of_log_probabilities_are_those_of_the_tokens(translators, beam_size):
    ours, theirs = translators
    settings = replace(ours.bundle.configuration.decoding, beam_size=beam_size)
    search = Search(settings=settings, log_probs=False, n_best=beam_size)
    tokenizer = ours.bundle.source_tokenizer
    jobs = [Job(((*tokenizer.encode(text), tokenizer.eos_id),), max_length=30) for text in some(41) if text.strip()]
    alone, found, plain = (
        list(theirs.engine.decode(jobs, one))
        for one in (replace(search, log_probs=True), replace(search, sums=True), search)
    )
    known = 0
    for expected, several, bare in zip(alone, found, plain, strict=True):
        assert [one.tokens for one in several] == [one.tokens for one in expected] == [one.tokens for one in bare]
        if all(math.isnan(one.log_prob) for one in several):  # NaN: its beam has reached the maximum length
            assert beam_size > 1 or len(several[0].tokens) >= 29
            continue
        for one, other in zip(several, expected, strict=True):
            assert (one.log_prob, one.score) == pytest.approx((other.log_prob, other.score), abs=1e-4)
        known += 1
    assert known > 3


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_text_has_the_same_translation_in_any_batch(translators, run, beam_size):
    _, theirs = translators
    together = theirs.translate(some(23), beam_size=beam_size)
    for text, one in zip(some(23), together, strict=True):
        assert_same(theirs.translate([text], beam_size=beam_size)[0], one)
    engine = CTranslate2Engine(converted(run, "float32"), run, positions=theirs.engine.longest, budget=40)
    assert_all_same(Translator(run, engine).translate(some(23), beam_size=beam_size), together)


@pytest.mark.slow
@pytest.mark.parametrize("beam_size", [1, 4])
def test_an_output_of_maximum_length_is_the_same_in_any_batch(tmp_path, beam_size):
    """The maximum length of a batch is the maximum length of its longest text."""
    ours = random_translator(tmp_path, extra_length=5, seed=1)
    ours.bundle.save(ours.model)
    theirs = Translator.load(ours.bundle.folder, engine="ctranslate2")
    chance, words = random.Random(2), ["the", "cat", "sees", "a", "big", "black", "dog", "and", "sleeps"]
    texts = [" ".join(chance.choices(words, k=chance.randint(2, 17))) for _ in range(60)]
    together = theirs.translate(texts, beam_size=beam_size, n_best=beam_size)
    assert 5 < sum(one.status == "max_length" for one in together) < 55
    for text, one in zip(texts, together, strict=True):
        [alone] = theirs.translate([text], beam_size=beam_size, n_best=beam_size)
        assert_all_same([alone, *alone.alternatives], [one, *one.alternatives])


def test_each_text_has_one_result(translators):
    ours, theirs = translators
    texts = ["the cat", "", "a dog", " \t", "the \udcff cat", "cat " * 1024, "the cat", "zebra 日本"]
    results = theirs.translate(texts, beam_size=1)
    assert [one.status for one in results] == [one.status for one in ours.translate(texts, beam_size=1)]
    assert [bool(one.tokens) for one in results] == [True, False, True, False, False, False, True, True]
    assert results[0] == results[6]
    assert theirs.translate([]) == theirs.score([]) == []


@pytest.mark.parametrize("window", [1, 3, 100])
def test_a_stream_reads_ahead_and_gives_the_same(translators, window):
    _, theirs = translators
    texts, asked = [*some(11), "", "\udcff"], []
    results = theirs.stream((asked.append(text) or text for text in texts), window=window)
    first = next(results)
    assert len(asked) == (1 if window == 1 else min(2 * window, len(texts)))
    assert_all_same([first, *results], theirs.translate(texts))


# Lengths and prefixes


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("extra", [0, 3])
def test_an_output_is_cut_at_the_same_length_as_ours(translators, beam_size, extra):
    ours, theirs = translators
    found, expected = (each.translate(some(23), beam_size=beam_size, extra_length=extra) for each in (theirs, ours))
    assert "max_length" in {one.status for one in expected}
    assert all(len(one.tokens) <= len(text.split()) + 1 + extra for text, one in zip(some(23), found, strict=True))
    for one, other in zip(found, expected, strict=True):
        if beam_size == 1 or one.tokens == other.tokens:
            assert_same(one, other)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_an_output_of_one_token_is_eos(run, beam_size):
    engines: list[Engine] = [
        load_engine(run, EngineRequest(engine="torch")),
        load_engine(run, EngineRequest(engine="ctranslate2")),
    ]
    jobs = [Job(((5, 6, 2),), (), 1), Job(((7, 2),), (), 2)]
    search = Search(settings=DecodingConfig(beam_size=beam_size), n_best=beam_size)
    expected, found = (list(engine.decode(jobs, search)) for engine in engines)
    assert [one.tokens for one in found[0]] == [one.tokens for one in expected[0]] == [(2,)]
    assert {one.tokens[-1] for one in found[1]} == {2}
    assert max(len(one.tokens) for one in found[1]) <= 2


def test_a_prefix_begins_the_output_and_counts(translators):
    ours, theirs = translators
    texts, prefixes = some(4), ["le chat", "", "noir", "un"]
    expected = ours.translate(texts, prefix=prefixes, beam_size=1)
    assert_all_same(theirs.translate(texts, prefix=prefixes, beam_size=1), expected)
    for one in theirs.translate(texts, prefix="un chien", beam_size=3, n_best=2):
        assert one.tokens[:2] == ("un", "chien")
        assert one.score > one.alternatives[0].score


@pytest.mark.slow
def test_learned_positions_end_where_the_table_ends(make_run):
    ours, theirs = both(make_run(positions="learned", max_length=11))
    texts = ["cat " * 10, "cat " * 11, "a dog"]
    assert_all_same(theirs.translate(texts, beam_size=1), ours.translate(texts, beam_size=1))
    assert [one.status for one in theirs.translate(texts, beam_size=1)][1] == "too_long"


@pytest.mark.slow
def test_the_table_of_sinusoids_ends(translators):
    _, theirs = translators
    statuses = [one.status for one in theirs.translate(["cat " * 2047, "cat " * 2048], max_source=5000, beam_size=1)]
    assert statuses[1] == "too_long" != statuses[0]


@pytest.mark.slow
def test_forbidden_tokens_are_never_written(make_run):
    bundle = make_run()
    network = bundle.model()
    # makes <pad> and <bos> the likeliest tokens in many places
    network.output.weight.data[:2] = 5 * network.output.weight.data.mean(0)
    network.output.weight.data[0, ::2] += 1
    bundle.save(network)
    ours, theirs = both(bundle)
    unchecked = theirs.engine._translator.translate_batch([text.split() for text in some(11)], beam_size=1)
    assert any({"<pad>", "<bos>"} & set(one.hypotheses[0]) for one in unchecked)
    assert_all_same(theirs.translate(some(11), beam_size=1), ours.translate(some(11), beam_size=1))
    for one in theirs.translate(some(11), beam_size=3, n_best=3):
        assert not any({"<pad>", "<bos>"} & {*each.tokens} for each in (one, *one.alternatives))


# Unsupported requests


def test_unsupported_requests_are_refused_with_the_reason(translators, run):
    ours, theirs = translators
    with pytest.raises(ConfigError, match="CTranslate2 cannot sample"):
        theirs.translate(["cat"], sample=True)
    with pytest.raises(ConfigError, match="the engine ctranslate2 does not show what it computes"):
        theirs.explain("cat")
    with pytest.raises(ConfigError, match="CTranslate2 does not support ensembles"):
        Translator.load(run.folder, run.folder, engine="ctranslate2")
    with pytest.raises(ConfigError, match="an ensemble needs the engine torch"):
        Translator(ours.bundle, ours.engine, theirs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, r"decoding\.beam_size: expected"),
        ({"beam_size": 2, "n_best": 3}, "n_best: expected a number from 1 to beam_size"),
        ({"length_penalty": math.nan}, r"decoding\.length_penalty: expected"),
        ({"prefix": "chat " * 60}, "leaves no room for <eos>"),
    ],
)
def test_options_out_of_range_are_refused_like_ours(translators, options, message):
    for translator in translators:
        with pytest.raises((ConfigError, DecodingError), match=message):
            translator.translate(["the cat"], **options)


def test_a_damaged_folder_is_reported(run, tmp_path):
    folder = converted(run, "float32")
    (tmp_path / "model.bin").write_bytes((folder / "model.bin").read_bytes()[:999])
    with pytest.raises(CheckpointError, match="CTranslate2 cannot read"):
        CTranslate2Engine(tmp_path, run, positions=61)


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_another_formula_of_the_length_penalty_is_used_by_every_search(run, monkeypatch, engine):
    """Ranking, pruning, bounds, rescoring and explanations use the same two functions."""
    monkeypatch.setattr("glassformer.decoding.hypothesis.length_penalty", lambda length, alpha: length**alpha)
    translator = Translator.load(run.folder, engine=engine)
    for one in translator.translate(some(11), beam_size=3, n_best=3, length_penalty=1.5):
        several = (one, *one.alternatives)
        assert [each.score for each in several] == sorted((each.score for each in several), reverse=True)
        assert all(each.score == pytest.approx(each.log_prob / len(each.tokens) ** 1.5) for each in several)
        [scored] = translator.score([(some(11)[0], one.text)], length_penalty=1.5)
        assert scored.score == pytest.approx(scored.log_prob / len(scored.tokens) ** 1.5)
    if engine == "torch":
        explanation = translator.explain(some(11)[0], beam_size=3, length_penalty=1.5)
        found = [node for node in explanation.tree.nodes if node.score is not None]
        assert found
        assert all(node.score == pytest.approx(node.log_prob / (node.position + 1) ** 1.5) for node in found)
        [drawn] = translator.translate(["the cat"], sample=True, length_penalty=1.5)
        assert drawn.score == pytest.approx(drawn.log_prob / len(drawn.tokens) ** 1.5)


@pytest.mark.parametrize("device", ["mps", "gpu", "cuda:x", "cuda:99", "auto:1"])
def test_a_device_that_ctranslate2_does_not_have_is_refused(device):
    with pytest.raises(ConfigError, match=r"device: expected .* got") as refused:
        device_and_index(device)
    assert repr(device) in str(refused.value)


def test_the_cpu_is_chosen_where_ctranslate2_finds_no_gpu():
    gpus = import_ctranslate2().get_cuda_device_count()
    assert device_and_index("cpu") == ("cpu", 0)
    assert device_and_index("auto") == (("cuda", 0) if gpus else ("cpu", 0))
