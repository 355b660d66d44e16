"""`glassformer tune`, and the commands that use the file that it writes."""

import json
import shutil

import pytest

import word_by_word
from glassformer.bundle import Bundle
from glassformer.jobs.evaluation import validation_items
from glassformer.jobs.prepared.folder import read_valid_pairs

VALID = word_by_word.pairs(40, 99)


@pytest.fixture
def two(trained, tmp_path, monkeypatch):
    """Return the folder with a run and a copy of it, as the current folder."""
    for name in ("run", "other"):
        shutil.copytree(trained, tmp_path / name)
    for name in ("combination.json", "lexicon.tsv.gz"):
        (tmp_path / "run" / name).unlink(missing_ok=True)
    shutil.copy(trained.parent / "train.tsv", tmp_path)
    (tmp_path / "valid.tsv").write_text(word_by_word.tsv(VALID))
    (tmp_path / "nonsense.json").write_text("nonsense")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_tuned_combination_is_used_like_a_run(glassformer, two):
    result = glassformer("tune", "run", "valid.tsv", "--rescore", "other", "--metric", "exact")
    assert result.status == 0
    untuned = glassformer("translate", "run", "--rescore", "other", "--rescore", "other", stdin=b"a cat\n")
    assert untuned.err.startswith("all models have equal weights")
    assert "cross-fitted" in result.out
    assert "use it:  glassformer translate run/combination.json FILE" in result.out
    assert json.loads((two / "run" / "combination.json").read_text())["rescore"] == ["../other"]
    stdin = b"the big dog\na cat\n"
    by_file = glassformer("translate", "run/combination.json", "--n-best", "2", stdin=stdin)
    by_option = glassformer("translate", "run", "--rescore", "other", "--n-best", "2", stdin=stdin)
    assert by_file.out == by_option.out
    assert by_file.err == by_option.err == ""  # no warning, because the weights have been tuned
    moved = two / "elsewhere"
    moved.mkdir()
    for name in ("run", "other"):
        (two / name).rename(moved / name)
    assert glassformer("translate", moved / "run" / "combination.json", "--n-best", "2", stdin=stdin).out == by_file.out


@pytest.mark.slow
def test_a_combination_is_evaluated_and_compared(glassformer, two):
    tune = ("tune", "run", "valid.tsv", "--rescore", "other", "--output", "both.json", "--metric", "exact", "--json")
    glassformer(*tune)
    [exact] = json.loads(glassformer("evaluate", "both.json", "valid.tsv", "--metric", "exact", "--json").out)
    [option] = json.loads(
        glassformer("evaluate", "run", "valid.tsv", "--metric", "exact", "--rescore", "other", "--json").out
    )
    assert exact["name"] == "exact"
    # the exact system is at least as good on the texts it was tuned on, whatever the model has learned
    assert exact["value"] >= option["value"]
    compared = glassformer("compare", "run", "both.json", "valid.tsv", "--metric", "exact", "--json")
    assert json.loads(compared.out)[0]["metrics"][0]["second"] == exact["value"]


@pytest.mark.slow
def test_bulk_translates_by_a_combination_and_knows_its_weights(glassformer, two):
    glassformer("tune", "run", "valid.tsv", "--rescore", "other")
    (two / "texts").write_text("the big dog\na cat\nthe cat\n")
    assert glassformer("bulk", "run/combination.json", "texts", "--output", "out").status == 0
    [part] = (two / "out" / "parts").glob("*.txt")
    assert part.read_text() == glassformer("translate", "run/combination.json", "texts").out
    content = json.loads((two / "run" / "combination.json").read_text())
    content["weights"]["run"] += 1
    (two / "run" / "combination.json").write_text(json.dumps(content))
    assert "weights" in glassformer("bulk", "run/combination.json", "texts", "--output", "out").err


@pytest.mark.slow
def test_json_and_the_lexicon(glassformer, two):
    result = glassformer("tune", "run", "valid.tsv", "--lexicon", "--json")
    assert result.status == 0
    content = json.loads(result.out)
    assert content["items"] == len({source for source, _ in VALID})
    assert len(content["weights"]) == 4
    assert (two / "run" / "lexicon.tsv.gz").exists()
    assert glassformer("translate", "run", "--lexicon", stdin=b"a cat\n").out.strip()


@pytest.mark.slow
def test_the_validation_pairs_are_the_default(glassformer, two):
    result = glassformer("tune", "run", "--rescore", "other")
    texts = len(validation_items(Bundle.load("run").configuration, read_valid_pairs(two / "run" / "prepared")).sources)
    assert f"expected at least 20 texts that can be translated, got {texts};" in result.err
    assert glassformer("tune", "run", "--rescore", "other", "--group").err.startswith("error: --group has no effect")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tune", "run"], "nothing to tune"),
        (["tune", "run", "--rescore", "nowhere"], "'nowhere' does not exist"),
        (["tune", "run", "--lexicon", "--output", "both"], "ends in .json"),
        (["translate", "valid.tsv"], "'valid.tsv' is a file; give the folder of a run"),
        (["translate", "nonsense.json"], "nonsense.json"),
        (["translate", "run", "--rescore", "other", "--explain"], "cannot be inspected"),
        (["translate", "run", "--lexicon", "--beam-size", "2", "--n-best", "3"], "n_best"),
        (["explore", "run/combination.json"], "does not exist"),
    ],
)
def test_mistakes_are_one_line(glassformer, two, arguments, message):
    result = glassformer(*arguments, stdin=b"a cat\n")
    assert result.status == 1
    assert message in result.err
    assert result.err.splitlines()[-1].startswith("error:")
    assert "Traceback" not in result.err


@pytest.mark.slow
def test_commands_that_need_a_folder_refuse_a_combination(glassformer, two):
    glassformer("tune", "run", "valid.tsv", "--rescore", "other")
    for command in (
        ["export", "run/combination.json", "out", "--to", "ctranslate2"],
        ["trace", "run/combination.json", "a cat"],
    ):
        result = glassformer(*command)
        assert result.status == 1
        assert "Traceback" not in result.err
    refused = glassformer("translate", "run/combination.json", "--rescore", "other", stdin=b"a cat\n")
    assert "names all models of its combination" in refused.err
