"""`glassformer report`."""

import shutil


def test_the_page_is_written_and_named(glassformer, trained, tmp_path):
    result = glassformer("report", trained, "--output", tmp_path / "page.html")
    assert result.status == 0
    assert result.out.startswith(f"{tmp_path / 'page.html'}: 0.")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_it_stands_in_the_run_unless_told_otherwise(glassformer, trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    assert glassformer("report", run).out.startswith(f"{run / 'report.html'}: ")
    assert (run / "report.html").exists()


def test_what_is_no_run_is_refused_in_one_line(glassformer, tmp_path):
    result = glassformer("report", tmp_path)
    assert result.status == 1
    assert "is no run" in result.err
    assert result.err.count("\n") == 1
