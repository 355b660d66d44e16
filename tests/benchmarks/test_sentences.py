"""Scores of runs on the test sets of Multi30k, and the Markdown that reports the scores."""

import gzip

import pytest

from benchmarks import sentences
from models import random_translator


@pytest.fixture
def run_and_data(tmp_path):
    """Return a run whose outputs are the references of test_2016, and a folder of small sets."""
    data = tmp_path / "data"
    data.mkdir()
    translator = random_translator(tmp_path)
    translator.bundle.save(translator.model)
    sources = ["the cat sleeps", "the cat sees the dog", "the dog"]
    outputs = [one.text for one in translator.translate(sources)]
    for name, files in sentences.SETS.items():
        references = outputs if name == "test_2016" else [one.upper() for one in outputs]
        for side, lines in (("en", sources), ("de", references)):
            (data / f"{files}.{side}.gz").write_bytes(gzip.compress("".join(f"{one}\n" for one in lines).encode()))
    return translator.bundle.folder, data


def test_each_set_is_scored_by_its_own_references(run_and_data):
    found = sentences.measure(run_and_data[0], "en", "de", run_and_data[1])
    assert list(found) == ["val", "test_2016", "test_2017"]
    assert found["test_2016"]["chrf"] == pytest.approx(100)
    assert found["val"]["chrf"] < 50


def test_case_counts_except_where_it_is_lowered():
    found = sentences.scored(["The Cat Sees The Black Dog"], ["the cat sees the black dog"])
    assert found["lower"] == pytest.approx(100)
    assert found["bleu"] < 50


def test_the_section_has_every_figure_and_the_commit():
    scores = {name: {"bleu": 40.125 + at, "lower": 41.5, "chrf": 60.04} for at, name in enumerate(sentences.SETS)}
    entry = {"command": "python -m benchmarks.sentences", "day": "2026-11-26", "commit": "0123456789"}
    machine = {"processor": "P", "flags": [], "cores": 2, "memory_gib": 24, "system": "S", "versions": {}}
    of = {"machine": {**machine, "busy_before": 0.0}}
    text = sentences.markdown({"directions": {"en-de": {**entry, "entries": {"student": scores}}}, **of})
    assert "### English to German" in text
    assert "commit 0123456789" in text
    assert "| student | 40.12 (41.50); 60.0 | 41.12 (41.50); 60.0 | 42.12 (41.50); 60.0 |" in text


def test_a_commit_has_a_name():
    assert len(sentences.commit().removesuffix("-dirty")) >= 10
