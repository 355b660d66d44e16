"""`glassformer diversify`; tests/jobs/test_diversification.py runs it to its end."""

import pytest


@pytest.mark.slow
def test_a_run_of_the_wrong_direction_is_one_line_of_error(glassformer, trained, tmp_path):
    result = glassformer("diversify", trained, "--backward", trained, "--output", tmp_path / "d")
    assert result.status == 1
    assert result.err.splitlines()[-1].startswith(f"error: {trained} translates in the wrong direction")
    assert not result.out


def test_both_directions_are_required(glassformer, tmp_path):
    result = glassformer("diversify", tmp_path, "--output", tmp_path / "d")
    assert result.status == 2
    assert "Missing option '--backward'" in result.err


def test_settings_of_a_student_need_a_student(glassformer, tmp_path):
    settings = ("--new-tokenizer", "--set", "decoding.beam_size=2")
    result = glassformer("diversify", tmp_path, "--backward", tmp_path, "--output", tmp_path / "d", *settings)
    assert result.status == 1
    assert "--new-tokenizer is for the student" in result.err
    assert not (tmp_path / "d").exists()
