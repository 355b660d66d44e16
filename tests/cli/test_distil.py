"""`glassformer distil`."""

import json
from pathlib import Path

import pytest

from glassformer.jobs.prepared.folder import read_valid_pairs
from glassformer.jobs.student_corpus import distilled_pairs


@pytest.mark.slow
def test_a_corpus_is_translated_and_a_student_trained(glassformer, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = glassformer("distil", trained, "--output", "d")
    assert made.status == 0
    lines = 200 - len(read_valid_pairs(trained / "prepared"))
    translations = len(list(distilled_pairs(Path("d"))))
    assert made.out.startswith(f"{lines} lines: {translations} translations")
    assert translations > 0.9 * lines  # a tiny model may leave some lines without an output
    assert "--student CONFIG" in made.out
    student = ["--student", trained.parent / "small.toml", "--set", "model.decoder_layers=1", "--set"]
    again = glassformer("distil", trained, "--output", "d", *student, "training.steps=4")
    assert again.status == 0, again.err
    assert again.out.startswith(f"{lines} lines, 0 of them translated now: ")
    assert "4 steps" in again.out
    assert glassformer("translate", "d/student", stdin=b"the cat\n").status == 0


@pytest.mark.slow
def test_a_distilled_dictionary_stays_a_dictionary(glassformer, trained, tmp_path):
    """The held-out pairs of a file with both sides form one file, in which lines with the same source are one item."""
    glassformer("distil", trained, "--output", tmp_path / "d")
    pairs = [json.loads(line) for line in (tmp_path / "d" / "valid.jsonl").read_text().splitlines()]
    assert len(pairs) == len(read_valid_pairs(trained / "prepared")) > 9
    assert {"source", "target"} == set(pairs[0])


@pytest.mark.slow
def test_settings_of_a_student_need_a_student(glassformer, trained, tmp_path):
    result = glassformer("distil", trained, "--output", tmp_path / "d", "--set", "model.d_model=8")
    assert result.status == 1
    assert "--set model.d_model=8 is for the student" in result.err
    assert not (tmp_path / "d").exists()


def test_a_folder_that_is_not_a_run_is_an_error(glassformer, tmp_path):
    result = glassformer("distil", tmp_path / "nothing", "--output", tmp_path / "d")
    assert result.status == 1
    assert "does not exist; give the folder of a run" in result.err
    assert not (tmp_path / "d").exists()


@pytest.mark.slow
def test_a_backward_run_of_the_wrong_direction_is_one_line_of_error(glassformer, trained, tmp_path):
    """tests/jobs/test_diversification.py runs `distil --backward` to its end."""
    result = glassformer("distil", trained, "--backward", trained, "--output", tmp_path / "d")
    assert result.status == 1
    assert result.err.splitlines()[-1].startswith(f"error: {trained} translates in the wrong direction")
    assert not result.out


@pytest.mark.parametrize(
    "given", [("--source", "text"), ("--translations", "bulk"), ("--labelled",), ("--keep-reference",)]
)
def test_options_without_effect_on_both_directions_are_refused(glassformer, tmp_path, given):
    result = glassformer("distil", tmp_path, "--backward", tmp_path, "--output", tmp_path / "d", *given)
    assert result.status == 1
    assert f"{given[0]} has no effect with --backward" in result.err
    assert not (tmp_path / "d").exists()
