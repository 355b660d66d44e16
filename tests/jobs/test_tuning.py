"""Tuning a combination: the gain is cross-fitted, and the lexicon comes from the training pairs alone."""

import json

import pytest

import word_by_word
from glassformer.corpus.analogy import LEXICON, Lexicon
from glassformer.errors import DataError
from glassformer.evaluation.items import Items
from glassformer.evaluation.metrics import METRICS
from glassformer.jobs import train
from glassformer.jobs.tuning import keep_lexicon, tune
from glassformer.recipes.toml import load
from glassformer.translating.combination import COMBINATION, Combination
from glassformer.translator import Translator

CONFIG = """
[data]
source = "train.tsv"
valid_source = "valid.tsv"
[cleaning]
duplicates = "keep"
max_ratio = 0
[tokenizer]
kind = "characters"
target_kind = "words"
joint = false
[model]
d_model = 24
heads = 4
d_ff = 32
encoder_layers = 1
decoder_layers = 1
dropout = 0.0
[training]
steps = 120
batch_tokens = 400
learning_rate = 1e-2
warmup = 20
[decoding]
beam_size = 3
"""
STEMS = ("dog", "cat", "bird", "fish", "lamp", "book", "tree", "bag", "mud", "kit", "leg", "rib", "tin", "gap", "log")


def pairs(stems):
    """Return words that are spelled as they sound, except for their endings."""
    endings = (("", ""), ("s", " Z"), ("ing", " IH NG"), ("er", " ER"))
    return [(stem + end, " ".join(stem.upper()) + sound) for stem in stems for end, sound in endings]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the folders of two trained runs that differ in their seed and order, and the validation pairs."""
    folder = tmp_path_factory.mktemp("tuning")
    every = [(one + other, sound + " " + sounds) for one, sound in pairs(STEMS) for other, sounds in pairs(STEMS[:3])]
    valid = every[::7]
    train_pairs = [one for one in every if one not in valid]
    for name, some in (("train", train_pairs), ("valid", valid)):
        (folder / f"{name}.tsv").write_text("".join(f"{word}\t{sounds}\n" for word, sounds in some))
    (folder / "words.toml").write_text(CONFIG)
    for number, (name, changes) in enumerate((("run", []), ("right", ["data.reverse_target=true"])), 1):
        own = [f"run.directory={folder / name}", f"run.seed={number + word_by_word.SEED}"]
        train(load(folder / "words.toml", [*own, *changes], data=folder))
    return folder / "run", folder / "right", train_pairs, Items.of(valid, group=True)


def tuned(run, items, *others, lexicon=False, metric=None):
    translator = Translator.load(run, rescore=others, lexicon=lexicon)
    return tune(translator, Combination.of(run, rescore=others, lexicon=lexicon), items, metric)


@pytest.mark.slow
def test_a_tuned_combination_has_the_figures_that_evaluating_it_gives(runs, tmp_path):
    run, right, _, items = runs
    keep_lexicon(run)
    found = tuned(run, items, right, lexicon=True)
    alone = [one.text for one in Translator.load(run).translate(items.sources)]
    word_error = METRICS["word_error"]
    assert found.comparison.first == pytest.approx(word_error(alone, items.references).value)
    assert found.comparison.second == pytest.approx(word_error(found.outputs, items.references).value)
    assert found.oracle <= min(found.comparison.first, found.comparison.second)
    assert found.comparison.second <= found.comparison.first
    found.combination.save(tmp_path / COMBINATION)
    stored = Translator.load(tmp_path / COMBINATION)
    outputs = [one.text for one in stored.translate(items.sources)]
    # the final weights are fitted to all items
    assert word_error(outputs, items.references).value <= found.comparison.second + 5
    content = json.loads((tmp_path / COMBINATION).read_text())
    assert content["tuned"]["combination"] == found.comparison.second
    assert content["tuned"]["items"] == len(items.sources)


@pytest.mark.slow
def test_features_that_there_are_not_have_no_weight(runs):
    run, right, _, items = runs
    weights = tuned(run, items, right).combination.weights
    assert (weights.confidence, weights.listed) == (0.0, 0.0)
    assert weights.run
    assert tuned(run, items, right, metric="per").comparison.name == "PER"


@pytest.mark.slow
def test_the_lexicon_holds_the_training_pairs_and_no_others(runs):
    run, right, train_pairs, items = runs
    for folder in (run, right):
        (folder / LEXICON).unlink(missing_ok=True)
        path = keep_lexicon(folder)
        lexicon = Lexicon.load(path, Translator.load(folder).bundle.target_tokenizer)
        held = {(word, " ".join(target)) for word, targets in lexicon.words.items() for target in targets}
        assert held == set(train_pairs)
        assert not lexicon.words.keys() & set(items.sources)
        before = path.stat().st_mtime_ns
        assert keep_lexicon(folder).stat().st_mtime_ns == before


@pytest.mark.slow
def test_pairs_held_out_from_the_training_file_are_not_in_the_lexicon(runs, tmp_path):
    run, *_ = runs
    changes = [f"run.directory={tmp_path / 'run'}", "data.valid_source=", "training.steps=1", "data.valid_lines=9"]
    train(load(run.parent / "words.toml", changes, data=run.parent))
    lexicon = Lexicon.load(keep_lexicon(tmp_path / "run"), Translator.load(run).bundle.target_tokenizer)
    valid = [json.loads(line) for line in (tmp_path / "run" / "prepared" / "valid.jsonl").read_text().splitlines()]
    assert len(valid) == 9
    assert not lexicon.words.keys() & {word for word, _ in valid}


@pytest.mark.slow
def test_too_few_texts_are_refused(runs):
    run, right, _, items = runs
    with pytest.raises(DataError, match="at least 20"):
        tuned(run, items.first(5), right)
