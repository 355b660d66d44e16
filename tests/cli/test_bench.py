"""`glassformer bench`."""

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from glassformer.recipes.configuration import DecodingConfig
from glassformer.system.machine import cores


@pytest.mark.long
def test_a_training_of_a_configuration_is_measured(glassformer, corpus):
    result = glassformer("bench", "train", "small.toml", "--seconds", 0.1, "--svg", "w.svg")
    assert result.status == 0, result.err
    for name in ("corpus", "set", "speed", "share of peak", "padding", "matrix products", "tried"):
        assert any(line.startswith(name) for line in result.out.splitlines()), name
    assert re.search(r"^× \d+\.\d\d +training\.precision", result.out, flags=re.MULTILINE)
    assert "187 pairs" in result.out
    picture = ElementTree.parse(corpus / "w.svg").getroot()
    assert picture.get("aria-label").startswith("Where the time of an update goes: ")
    assert sorted(path.name for path in corpus.iterdir()) == ["small.toml", "train.tsv", "w.svg"]


@pytest.mark.long
def test_a_training_of_a_run_is_measured_with_its_settings(glassformer, trained):
    data = ["--data", trained.parent, "--set", "training.workers=1"]
    made = json.loads(glassformer("bench", "train", trained, *data, "--seconds", 0.1, "--json").out)
    assert made["origin"].endswith("encoded by the run's tokenizer")
    assert made["processes"] == 1
    assert sum(work["share"] for work in made["work"]) == pytest.approx(1)


@pytest.mark.slow
def test_a_translation_is_measured(glassformer, trained, tmp_path):
    (tmp_path / "in.txt").write_text("the cat sees a dog\n\na big dog\n" * 7)
    result = glassformer("bench", "translate", trained, tmp_path / "in.txt", "--seconds", 0.1, "--json")
    made = json.loads(result.out)
    ways = [(pace["beam_size"], pace["together"]) for pace in made["paces"]]
    assert ways == [(3, True), (3, False), (1, True), (1, False)]
    assert all(pace["lines_per_second"] > 0 < pace["tokens_per_second"] for pace in made["paces"])
    assert sum(work["share"] for work in made["work"]) == pytest.approx(1)
    assert {"matrix products", "attention"} <= {work["kind"] for work in made["work"]}
    changes = [trial["change"] for trial in made["trials"]]
    assert changes[0] == "--beam-size 1"
    assert (f"workers={cores()} (as `translate` does)" in changes) == (cores() > 1)


@pytest.mark.slow
def test_a_translation_is_reported_as_a_table(glassformer, trained, tmp_path):
    (tmp_path / "in.txt").write_text("the cat sees a dog\na big dog\n")
    out = glassformer("bench", "translate", trained, tmp_path / "in.txt", "--beam-size", 1, "--seconds", 0.1).out
    lines = out.splitlines()
    assert lines[0].startswith("text")
    assert any(line.startswith("greedy, together") and "sentences/s" in line for line in lines)
    assert any(line.startswith("Python and overhead") and "█" in line for line in lines)


@pytest.mark.slow
def test_lines_that_cannot_be_translated_are_an_error(glassformer, trained, tmp_path):
    (tmp_path / "in.txt").write_text("\n\n")
    result = glassformer("bench", "translate", trained, tmp_path / "in.txt", "--seconds", 0.1)
    assert result.status == 1
    longest = DecodingConfig().max_source
    assert f"none of the lines can be translated: all are blank or longer than {longest:,} tokens" in result.err


@pytest.mark.slow
def test_a_run_without_test_files_needs_a_file(glassformer, trained):
    result = glassformer("bench", "translate", trained, "--seconds", 0.1)
    assert result.status == 1
    assert "give a FILE" in result.err


@pytest.mark.slow
def test_the_profiler_prints_nothing(glassformer, trained, tmp_path):
    (tmp_path / "in.txt").write_text("the cat sees a dog\n")
    for quantization in ("float32", "int8"):  # the first use of each converts the model and prints a message about it
        glassformer(
            "translate", trained, tmp_path / "in.txt", "--engine", "ctranslate2", "--quantization", quantization
        )
    command = [sys.executable, "-m", "glassformer", "bench", "translate", str(trained), str(tmp_path / "in.txt")]
    done = subprocess.run([*command, "--seconds", "0.1"], capture_output=True, text=True, check=True)
    assert all(re.match("loading the model|beam |profiling|trying ", line) for line in done.stderr.splitlines())
