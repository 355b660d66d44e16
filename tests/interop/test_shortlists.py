"""CTranslate2 with a shortlist gives the same outputs as PyTorch, whatever other texts are in the batch."""

import math
import random
import shutil
from dataclasses import replace

import numpy as np
import pytest

from glassformer.bundle import SHORTLIST, Bundle
from glassformer.corpus.shortlist import Shortlist
from glassformer.decoding.engine import Job, Search
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop.choice import EngineRequest, load_engine
from glassformer.interop.ctranslate2.model import import_ctranslate2
from glassformer.interop.ctranslate2.writer import converted, export_ctranslate2, read_export
from glassformer.recipes.toml import from_dict, to_toml
from glassformer.translator import Translator
from interop.small_runs import some

pytestmark = pytest.mark.slow

COUNT = 7


@pytest.fixture(scope="module")
def run(trained_once, tmp_path_factory):
    """Return a run in which each source word suggests one or two target words, often not its translation."""
    folder = shutil.copytree(trained_once(), tmp_path_factory.mktemp("shortlists") / "run")
    bundle = Bundle.load(folder)
    sizes, draw = (len(bundle.source_tokenizer), len(bundle.target_tokenizer)), random.Random(4)
    rows = [draw.sample(range(4, sizes[1]), draw.randint(1, 2)) if id > 3 else [] for id in range(sizes[0])]
    Shortlist(
        frequent=np.array([5, 9, 7, 4], np.int32),
        candidates=np.array([id for row in rows for id in row], np.int32),
        ends=np.cumsum([len(row) for row in rows]),
        target_size=sizes[1],
    ).save(folder / SHORTLIST)
    return bundle


def load(run, engine, count=COUNT):
    return Translator.load(run.folder, engine=engine, settings={"shortlist": count})


@pytest.fixture(scope="module")
def engines(run):
    return load(run, "torch"), load(run, "ctranslate2")


def outputs(found):
    return [[each.tokens for each in (one, *one.alternatives)] for one in found]


def test_greedy_search_equals_pytorchs(engines):
    ours, theirs = engines
    texts = some(61)
    expected = ours.translate(texts, beam_size=1)
    free = ours.translate(texts, beam_size=1, shortlist=0)
    assert any(one.tokens != other.tokens for one, other in zip(expected, free, strict=True))
    assert outputs(theirs.translate(texts, beam_size=1)) == outputs(expected)
    for one, other in zip(theirs.translate(texts, beam_size=1), expected, strict=True):
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_an_output_does_not_depend_on_other_texts(engines, beam_size):
    for translator in engines:
        texts, options = some(41), {"beam_size": beam_size, "n_best": beam_size, "log_probs": False}
        together = outputs(translator.translate(texts, **options))
        alone = [outputs(translator.translate([text], **options))[0] for text in texts]
        assert together == alone


@pytest.mark.parametrize("beam_size", [1, 3])
def test_outputs_consist_of_candidates_unless_they_have_a_prefix(run, engines, beam_size):
    shortlist = Shortlist.load(run.folder / SHORTLIST, len(run.source_tokenizer), len(run.target_tokenizer))
    texts, prefixes = some(31), ["chien" if number % 3 == 0 else "" for number in range(31)]
    for translator in engines:
        found = translator.translate(texts, prefix=prefixes, beam_size=beam_size)
        free = translator.translate(texts, prefix=prefixes, beam_size=beam_size, shortlist=0)
        for text, prefix, one, other in zip(texts, prefixes, found, free, strict=True):
            if prefix:
                assert (one.tokens, one.text) == (other.tokens, other.text)
            else:
                allowed = shortlist.of(run.source_tokenizer.encode(text), COUNT, (2, 3))
                assert {*one.tokens} <= {*run.target_tokenizer.tokens(allowed)}


def test_log_probabilities_and_scores_count_all_tokens(engines):
    for translator in engines:
        found = translator.translate(some(9), beam_size=3)
        scored = translator.score([(text, one.text) for text, one in zip(some(9), found, strict=True)])
        for one, other in zip(found, scored, strict=True):
            assert other.status == "blank" or one.log_prob == pytest.approx(other.log_prob, abs=1e-4)


def test_without_log_probabilities_there_are_no_sums(engines):
    ours, theirs = engines
    search = Search(settings=replace(ours.bundle.configuration.decoding, shortlist=COUNT), log_probs=False, sums=True)
    tokenizer = ours.bundle.source_tokenizer
    jobs = [Job(((*tokenizer.encode(text), 2),), (), 20, 0, tuple(range(2, 9))) for text in some(5)]
    for translator in (ours, theirs):
        for [one] in translator.engine.decode(jobs, search):
            assert math.isnan(one.log_prob)
            assert one.token_log_probs == ()


def test_an_export_carries_the_map_that_the_package_itself_uses(run, engines, tmp_path):
    """CTranslate2's own call with use_vmap, one text at a time, gives the same outputs as `Translator`.

    If CTranslate2 cuts an output at the maximum length, it ranks this output by its own rule, so the text is left out.
    """
    decoding = replace(run.configuration.decoding, shortlist=COUNT)
    bundle = replace(run, configuration=replace(run.configuration, decoding=decoding))
    export_ctranslate2(bundle, tmp_path / "export", "float32")
    assert read_export(tmp_path / "export").shortlist == COUNT
    itself = import_ctranslate2().Translator(str(tmp_path / "export"))
    texts = some(61)
    cut = [run.source_tokenizer.tokens(run.source_tokenizer.encode(text)) for text in texts]
    for beam_size in (1, 3):
        found = Translator.load(tmp_path / "export", engine="ctranslate2").translate(texts, beam_size=beam_size)
        assert outputs(found) == outputs(engines[1].translate(texts, beam_size=beam_size))
        options = {"beam_size": beam_size, "length_penalty": 0.8, "return_end_token": True, "min_decoding_length": 0}
        compared = 0
        for place in range(len(texts)):
            longest = len(cut[place]) + 50
            [result] = itself.translate_batch(
                [cut[place]], num_hypotheses=beam_size, max_decoding_length=longest, use_vmap=True, **options
            )
            if all(tokens[-1] == "<eos>" for tokens in result.hypotheses):
                assert found[place].tokens in map(tuple, result.hypotheses)
                compared += 1
        assert compared > 9


def test_a_model_is_loaded_for_one_shortlist(run, engines):
    with pytest.raises(ConfigError, match=f"expected 0 or {COUNT}, with which the model was loaded, got 9"):
        engines[1].translate(some(2), shortlist=9)
    assert engines[1].translate(some(2), shortlist=0) == load(run, "ctranslate2", 0).translate(some(2))
    with pytest.raises(ConfigError, match="expected 0, as the model has none, got 3"):
        load(run, "ctranslate2", 0).translate(some(2), shortlist=3)
    with pytest.raises(ConfigError, match="expected more than 2 · beam_size = 8 with CTranslate2, got 7"):
        engines[1].translate(some(2), beam_size=4)


def test_each_shortlist_has_a_conversion_of_its_own_that_follows_the_table(run):
    bundles = [
        replace(
            run, configuration=replace(run.configuration, decoding=replace(run.configuration.decoding, shortlist=n))
        )
        for n in (0, COUNT, 2)
    ]
    folders = [converted(one, "float32") for one in bundles]
    assert len(set(folders)) == 3
    assert not (folders[0] / "vmap.txt").exists()
    before = (folders[2] / "vmap.txt").read_text(encoding="utf-8")
    path = run.folder / SHORTLIST
    kept = path.read_bytes()
    found = Shortlist.load(path, len(run.source_tokenizer), len(run.target_tokenizer))
    replace(found, frequent=found.frequent[::-1].copy()).save(path)
    try:
        assert (converted(bundles[2], "float32") / "vmap.txt").read_text(encoding="utf-8") != before
    finally:
        path.write_bytes(kept)


def test_auto_chooses_ctranslate2_with_a_shortlist(run):
    assert load(run, "auto").translate(some(3), beam_size=1)[0].tokens
    bundle = load(run, "torch").bundle
    greedy = replace(bundle.configuration, decoding=replace(bundle.configuration.decoding, beam_size=1))
    assert load_engine(replace(bundle, configuration=greedy), EngineRequest(engine="auto")).name == "ctranslate2"


def test_a_run_without_a_table_says_how_to_make_it(trained_once, tmp_path):
    folder = shutil.copytree(trained_once(), tmp_path / "run")
    for engine in ("torch", "ctranslate2"):
        with pytest.raises(CheckpointError, match=r"shortlist.safetensors does not exist; `glassformer calibrate"):
            Translator.load(folder, engine=engine, settings={"shortlist": 5}).translate(some(2))


def test_guards_belong_to_the_search_with_or_without_the_shortlist(run, tmp_path):
    from glassformer.evaluation.items import Items
    from glassformer.jobs.calibration import calibrate

    folder = shutil.copytree(run.folder, tmp_path / "run", ignore=shutil.ignore_patterns("ctranslate2"))
    for count in (0, COUNT):
        translator = Translator.load(folder, settings={"shortlist": count})
        items = Items.of(((text, "") for text in some(120)), group=False)
        calibrate(translator, items).save(folder)
        again = Translator.load(folder)
        assert (again.guards(shortlist=0) is None) == bool(count)
        assert (again.guards(shortlist=COUNT) is None) == (not count)


def test_explanations_are_searched_among_all_tokens(engines):
    ours, _ = engines
    text = "the black dog sleeps"
    explained = ours.explain(text, beam_size=3)
    assert explained.settings.shortlist == 0
    assert explained.translation.tokens == ours.translate([text], beam_size=3, shortlist=0)[0].tokens


def test_a_glossary_term_is_searched_among_all_tokens(engines):
    ours, _ = engines
    texts = [f"{text} dog" for text in some(20)]
    found = ours.translate(texts, glossary={"dog": "fleuve"}, beam_size=3)
    # a model that has learned little may lose the word in some outputs
    assert any("fleuve" in one.text for one in found)


def test_the_setting_is_kept_in_a_configuration(run):
    configuration = replace(run.configuration, decoding=replace(run.configuration.decoding, shortlist=100))
    assert "shortlist = 100" in to_toml(configuration, run.model_config)
    assert from_dict({"data": {"source": "a.tsv"}}).decoding.shortlist == 0
