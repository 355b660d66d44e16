"""`glassformer compare`: whether two systems differ by more than chance."""

import json
import shutil

import pytest

from glassformer.cli.measure.compare import COMPARED_COLUMNS
from glassformer.evaluation.significance import Comparison

WORDS = {"read": ("R EH D", "R IY D"), "cat": ("K AE T",), "dog": ("D AO G",), "a": ("AH", "EY")}


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    """Write a dictionary and two systems' outputs, which give different right pronunciations of "read"."""
    monkeypatch.chdir(tmp_path)
    lines = [(word, phones) for word, several in WORDS.items() for phones in several] * 5
    (tmp_path / "words.tsv").write_text("".join(f"{word}{n // 6}\t{p}\n" for n, (word, p) in enumerate(lines)))
    (tmp_path / "good").write_text("".join(f"{WORDS[word][0]}\n" for word, _ in lines))
    (tmp_path / "bad").write_text("".join(f"{'K AH T' if word == 'cat' else WORDS[word][-1]}\n" for word, _ in lines))
    return tmp_path


def compare(glassformer, *arguments):
    result = glassformer("compare", *arguments, "--json")
    assert result.status == 0, result.err
    return json.loads(result.out)


def test_translations_of_words_are_compared_by_item(glassformer, outputs):
    result = glassformer("compare", "good", "bad", "words.tsv", "--hypotheses")
    assert result.err == "30 lines, 20 different sources\n"
    [comparison] = compare(glassformer, "good", "bad", "words.tsv", "--hypotheses")
    assert (comparison["lines"], comparison["sources"], comparison["differing"]) == (30, 20, 5)
    word_error, per = comparison["metrics"]
    assert (word_error["name"], word_error["first"], word_error["second"]) == ("WER (whole words)", 0, 25)
    assert word_error["difference"] == 25
    # Five words differ, so 2 of the 32 ways to swap their outputs give a difference at least this large: p = 1/16. With
    # 10 000 random swaps, five standard deviations are 0.012.
    assert word_error["p_value"] == pytest.approx(1 / 16, abs=0.012)
    assert (word_error["better"], per["better"]) == ("", "")


def test_the_table_explains_its_result_in_words(glassformer, outputs):
    (outputs / "worst").write_text("X\n" * 30)
    out = glassformer("compare", "good", "worst", "words.tsv", "--hypotheses", "--examples", 2).out
    assert out.startswith("A  good\nB  worst\n")
    row = next(line for line in out.splitlines() if line.startswith("WER"))
    assert " ".join(row.split()) == "WER (whole words) 0.00 100.00 +100.00 +100.00 … +100.00 0.0001 A is better"
    assert out.count("\nsource ") == out.count("\nreference ") == 2
    assert "The 2 of 20 lines that differ most" in out
    assert "may be chance" in glassformer("compare", "good", "bad", "words.tsv", "--hypotheses").out
    assert "no difference" in glassformer("compare", "good", "good", "words.tsv", "--hypotheses").out


def test_an_entry_adds_a_column(glassformer, outputs, monkeypatch):
    monkeypatch.setitem(COMPARED_COLUMNS, "B / A", lambda one: f"{one.second / one.first:.3f}" if one.first else "–")
    out = glassformer("compare", "bad", "good", "words.tsv", "--hypotheses").out.splitlines()
    [heading] = [line for line in out if line.startswith("metric")]
    [row] = [line for line in out if line.startswith("WER")]
    assert heading.split()[-3:] == ["B", "/", "A"]
    assert row.split()[-1] == "0.000"


def test_a_property_is_printed_as_json(glassformer, outputs, monkeypatch):
    monkeypatch.setattr(Comparison, "mean", property(lambda one: (one.first + one.second) / 2), raising=False)
    [comparison] = compare(glassformer, "good", "bad", "words.tsv", "--hypotheses")
    fields = ["name", "first", "second", "low", "high", "p_value", "higher_is_better", "signature"]
    assert list(comparison["metrics"][0]) == [*fields, "difference", "better", "mean"]
    assert comparison["metrics"][0]["mean"] == 12.5


def test_swapping_the_systems_swaps_every_figure(glassformer, outputs):
    [one] = compare(glassformer, "good", "bad", "words.tsv", "--hypotheses", "--metric", "cer")
    [other] = compare(glassformer, "bad", "good", "words.tsv", "--hypotheses", "--metric", "cer")
    [metric], [reverse] = one["metrics"], other["metrics"]
    assert metric["difference"] == -reverse["difference"]
    assert (metric["first"], metric["p_value"]) == (reverse["second"], reverse["p_value"])
    assert one["disagreements"][0]["outputs"] == other["disagreements"][0]["outputs"][::-1]


def test_the_same_seed_gives_the_same_table(glassformer, outputs):
    arguments = ["compare", "good", "bad", "words.tsv", "--hypotheses", "--no-group"]
    assert glassformer(*arguments).out == glassformer(*arguments).out != glassformer(*arguments, "--seed", 2).out


@pytest.mark.slow
def test_runs_are_compared_by_their_translations(glassformer, trained, corpus):
    (corpus / "test.tsv").write_text("".join((corpus / "train.tsv").read_text().splitlines(keepends=True)[:40]))
    options = ["--set", "training.steps=5", "--set", "training.validate_every=5", "--set", "run.directory=poor"]
    assert glassformer("train", "small.toml", "--data", corpus, *options).status == 0
    result = glassformer("compare", trained, "poor", "test.tsv", "--metric", "bleu", "--metric", "chrf")
    assert [line.split()[0] for line in result.out.splitlines() if "A is better" in line] == ["BLEU", "chrF2"]
    [comparison] = compare(glassformer, trained, trained, "test.tsv", "--beam-size", 1, "--metric", "wer")
    assert (comparison["differing"], comparison["disagreements"]) == (0, [])
    assert comparison["metrics"][0]["p_value"] == 1


@pytest.mark.slow
def test_runs_are_compared_on_their_own_test_set_by_default(glassformer, trained, corpus):
    run = shutil.copytree(trained, corpus / "run")
    config = (run / "config.toml").read_text()
    (corpus / "test.tsv").write_text("the cat\tle chat\n")
    named = config.replace("[data]\n", f'[data]\ntest_source = "{corpus / "test.tsv"}"\n')
    named = "\n".join(line for line in named.split("\n") if line not in ('test_source = ""', 'test_target = ""'))
    (run / "config.toml").write_text(named)
    [comparison] = compare(glassformer, run, run)
    assert (comparison["name"], comparison["lines"]) == ("test", 1)
    assert "the run's own test files" in glassformer("evaluate", run).err
    assert "names no test or validation files" in glassformer("compare", trained, run).err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good", "bad", "--hypotheses"], "give SRC and REF, or a .tsv file"),
        (["good", "bad", "good", "--hypotheses"], "expected SRC and REF, or one file that holds both sides"),
        (["good", "short", "words.tsv", "--hypotheses"], "expected 30 lines as in the test set, got 1"),
        (["good", "bad", "words.tsv", "--hypotheses", "--beam-size", 2], "have no effect"),
        (["good", "bad", "words.tsv", "--hypotheses", "--metric", "blue"], "did you mean 'bleu'"),
        (["nowhere", "bad", "words.tsv"], "does not exist; give the folder of a run"),
    ],
)
def test_an_impossible_comparison_is_an_error_of_one_line(glassformer, outputs, arguments, message):
    (outputs / "short").write_text("X\n")
    result = glassformer("compare", *arguments)
    assert (result.status, result.out) == (1, "")
    assert message in result.err
