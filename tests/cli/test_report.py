"""`glassformer report`."""

import shutil
import webbrowser

import pytest


@pytest.mark.slow
def test_the_page_is_written_and_its_path_printed(glassformer, trained, tmp_path):
    result = glassformer("report", trained, "--output", tmp_path / "page.html")
    assert result.status == 0
    assert result.out.startswith(f"{tmp_path / 'page.html'}: 0.")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.long
def test_the_page_is_written_into_the_run_by_default(glassformer, trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    assert glassformer("report", run).out.startswith(f"{run / 'report.html'}: ")
    assert (run / "report.html").exists()


def test_a_folder_that_is_not_a_run_is_refused_in_one_line(glassformer, tmp_path):
    result = glassformer("report", tmp_path)
    assert result.status == 1
    assert "is not a run" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "opened"), [("--browser", 1), pytest.param("--no-browser", 0, marks=pytest.mark.long)]
)
def test_the_page_is_opened_on_demand(glassformer, trained, tmp_path, monkeypatch, option, opened):
    pages = []
    monkeypatch.setattr(webbrowser, "open", pages.append)
    result = glassformer("report", trained, "--output", tmp_path / "page.html", option)
    assert result.status == 0
    assert len(pages) == opened
