"""`glassformer evaluate`: test sets in one file or two, several references, intervals, ensembles."""

import json
import shutil

import pytest


@pytest.fixture
def readings(tmp_path, glassformer, trained):
    """Write test sets in which "the cat" has two references; the model's output is the second."""
    said, other = glassformer("translate", trained, stdin=b"the cat\na dog\n").out.splitlines()
    lines = [("the cat", "x"), ("a dog", other), ("", "y"), ("the cat", said)]
    (tmp_path / "test.tsv").write_text("".join(f"{source}\t{reference}\n" for source, reference in lines))
    (tmp_path / "test.jsonl").write_text("".join(json.dumps({"source": s, "target": r}) + "\n" for s, r in lines))
    (tmp_path / "src").write_text("the cat\na dog\nthe cat\n")
    (tmp_path / "ref").write_text(f"x\n{other}\n{said}\n")
    return tmp_path


def values(glassformer, *arguments):
    result = glassformer("evaluate", *arguments, "--json")
    assert result.status == 0, result.err
    return {score["name"]: score for score in json.loads(result.out)}


@pytest.mark.slow
@pytest.mark.parametrize("file", ["test.tsv", "test.jsonl"])
def test_lines_with_the_same_source_are_one_item_with_several_references(glassformer, trained, readings, file):
    result = glassformer("evaluate", trained, readings / file, "--metric", "exact", "--metric", "word_error")
    assert [line.split("   ")[0] for line in result.out.splitlines()] == ["exact 100.00", "WER (whole words) 0.00"]
    assert "nrefs:var" in result.out
    assert result.err == "3 lines, 2 different sources (1 with a blank side left out)\n"


def test_two_files_are_scored_line_by_line_by_default(glassformer, trained, readings):
    pair = readings / "src", readings / "ref"
    for arguments, exact, sources in [
        (pair, 200 / 3, 3),
        ((*pair, "--group"), 100, 2),
        ((readings / "test.tsv", "--no-group"), 200 / 3, 3),
    ]:
        score = values(glassformer, trained, *arguments, "--metric", "exact")["exact"]
        assert (score["value"], score["sources"], score["lines"]) == (pytest.approx(exact), sources, 3)


def test_further_references_count_as_right(glassformer, trained, readings):
    more = ["--reference", readings / "src", "--reference", readings / "ref"]
    arguments = [trained, readings / "src", readings / "src", "--metric", "exact"]
    assert values(glassformer, *arguments)["exact"]["value"] == 0
    assert values(glassformer, *arguments, *more)["exact"]["value"] == pytest.approx(200 / 3)


def test_each_line_of_the_file_gets_a_translation(glassformer, trained, readings):
    glassformer("evaluate", trained, readings / "test.tsv", "--output", readings / "out")
    written = (readings / "out").read_text().split("\n")
    assert written[0] == written[3]
    assert [bool(line) for line in written] == [True, True, False, True, False]


def test_the_default_metrics_suit_the_data(glassformer, trained, readings):
    assert list(values(glassformer, trained, readings / "test.tsv")) == ["BLEU", "chrF2", "exact"]
    (readings / "words.tsv").write_text("cat\tk a t\ndog\td o g\n")
    assert list(values(glassformer, trained, readings / "words.tsv")) == ["WER (whole words)", "PER"]


def test_each_interval_contains_its_value(glassformer, trained, readings):
    arguments = [trained, readings / "src", readings / "ref", "--metric", "wer"]
    score = values(glassformer, *arguments, "--bootstrap")["WER"]
    assert score["interval"][0] <= score["value"] <= score["interval"][1]
    assert values(glassformer, *arguments)["WER"]["interval"] is None
    assert "[" in glassformer("evaluate", *arguments, "--bootstrap").out


def test_an_ensemble_of_a_run_with_itself_scores_like_the_run(glassformer, trained, readings):
    arguments = [trained, readings / "src", readings / "ref"]
    assert values(glassformer, *arguments, "--ensemble", trained) == values(glassformer, *arguments)


def test_sources_without_a_translation_are_counted(glassformer, trained, readings):
    (readings / "src").write_text("the cat\n\nthe cat\n")
    err = glassformer("evaluate", trained, readings / "src", readings / "ref").err
    assert "no translation of 1 of 3 sources (1 blank)" in err


@pytest.mark.parametrize("wrong", [["missing.tsv"], ["test.tsv", "--metric", "word_eror"]])
def test_arguments_are_checked_before_the_model_is_loaded(glassformer, trained, readings, wrong):
    shutil.copytree(trained, readings / "run")
    (readings / "run" / "model.safetensors").write_bytes(b"no weights")
    result = glassformer("evaluate", readings / "run", readings / wrong[0], *wrong[1:])
    assert result.status == 1
    assert wrong[-1] in result.err


def test_an_unknown_metric_is_refused_before_anything_is_translated(glassformer, trained, readings):
    result = glassformer("evaluate", trained, readings / "test.tsv", "--metric", "word_eror")
    assert result.status == 1
    assert "did you mean 'word_error'?" in result.err


def test_variants_are_scored_beside_the_sources_as_they_are(glassformer, trained, tmp_path):
    lines = ["the cat sees a dog"] * 10
    (tmp_path / "s").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "t").write_text(glassformer("translate", trained, tmp_path / "s").out)
    result = glassformer("evaluate", trained, tmp_path / "s", tmp_path / "t", "--variants", "--json")
    rows = {row["name"]: row for row in json.loads(result.out)}
    assert all(row["ordinary"] == pytest.approx(100) for row in rows.values())
    assert (rows["two in a line"]["lines"], rows["number before"]["lines"]) == (5, 10)
    assert rows["number before"]["score"] == rows["no-break spaces"]["score"] == pytest.approx(100)
    shown = glassformer("evaluate", trained, tmp_path / "s", tmp_path / "t", "--variants").out
    assert [line.split("  ")[0] for line in shown.splitlines()] == ["variant", *rows]
    refused = glassformer("evaluate", trained, tmp_path / "s", tmp_path / "t", "--variants", "--bootstrap")
    assert (refused.status, "--bootstrap has no effect with --variants" in refused.err) == (1, True)
