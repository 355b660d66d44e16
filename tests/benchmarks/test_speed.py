"""`python -m benchmarks.speed`: the speed of a training and of a translation, and what the user is told."""

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from benchmarks.processes import ROOT
from benchmarks.speed.__main__ import main

import word_by_word
from glassformer.errors import ConfigError, DataError
from glassformer.jobs import train
from glassformer.recipes.configuration import DecodingConfig
from glassformer.system.machine import cores
from glassformer.translator import Translator

CONFIG = f"""
[data]
source = "train.tsv"
valid_lines = 13
[cleaning]
duplicates = "keep"
max_ratio = 0
{word_by_word.MODEL}[training]
steps = 4
batch_tokens = 500
warmup = 10
[decoding]
beam_size = 3
"""


def write_corpus(folder):
    (folder / "train.tsv").write_text(word_by_word.tsv(word_by_word.pairs(200, 7)), encoding="utf-8")
    (folder / "small.toml").write_text(CONFIG, encoding="utf-8")


@pytest.fixture
def speed(capsys):
    """Return a function that runs the command for a short time and returns what the command prints."""

    def run(*arguments):
        main([*map(str, arguments), "--seconds", "0.1"])
        return capsys.readouterr().out

    return run


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a run that was trained for a few steps."""
    folder = tmp_path_factory.mktemp("trained")
    write_corpus(folder)
    train(folder / "small.toml", overrides=[f"run.directory={folder / 'run'}"], data=folder)
    return folder / "run"


@pytest.fixture
def text(tmp_path):
    """Return a file with a few lines to translate."""
    (tmp_path / "in.txt").write_text("the cat sees a dog\na big dog\n", encoding="utf-8")
    return tmp_path / "in.txt"


@pytest.mark.long
def test_a_training_of_a_configuration_is_measured(speed, tmp_path, monkeypatch):
    write_corpus(tmp_path)
    monkeypatch.chdir(tmp_path)
    out = speed("train", "small.toml", "--svg", "w.svg")
    for name in ("corpus", "settings", "speed", "share of peak", "padding", "matrix products", "tried"):
        assert any(line.startswith(name) for line in out.splitlines()), name
    assert re.search(r"^× \d+\.\d\d +training\.precision", out, flags=re.MULTILINE)
    assert "187 pairs" in out
    picture = ElementTree.parse(tmp_path / "w.svg").getroot()
    assert picture.get("aria-label").startswith("Where the time of an update goes: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.toml", "train.tsv", "w.svg"]


@pytest.mark.long
def test_a_training_of_a_run_is_measured_with_its_settings(speed, trained):
    made = json.loads(speed("train", trained, "--data", trained.parent, "--set", "training.workers=1", "--json"))
    assert made["origin"].endswith("encoded by the run's tokenizer")
    assert made["processes"] == 1
    assert sum(work["share"] for work in made["work"]) == pytest.approx(1)


@pytest.mark.slow
def test_a_translation_is_measured(speed, trained, tmp_path):
    (tmp_path / "in.txt").write_text("the cat sees a dog\n\na big dog\n" * 7)
    made = json.loads(speed("translate", trained, tmp_path / "in.txt", "--json"))
    ways = [(pace["beam_size"], pace["together"]) for pace in made["paces"]]
    assert ways == [(3, True), (3, False), (1, True), (1, False)]
    assert all(pace["lines_per_second"] > 0 < pace["tokens_per_second"] for pace in made["paces"])
    assert sum(work["share"] for work in made["work"]) == pytest.approx(1)
    assert {"matrix products", "attention"} <= {work["kind"] for work in made["work"]}
    changes = [trial["change"] for trial in made["trials"]]
    assert changes[0] == "--beam-size 1"
    assert (f"workers={cores()} (as `translate` does)" in changes) == (cores() > 1)


@pytest.mark.slow
def test_a_translation_is_reported_as_a_table(speed, trained, text):
    lines = speed("translate", trained, text, "--beam-size", 1).splitlines()
    assert lines[0].startswith("text")
    assert any(line.startswith("greedy, together") and "sentences/s" in line for line in lines)
    assert any(line.startswith("Python and overhead") and "█" in line for line in lines)


@pytest.mark.slow
def test_lines_that_cannot_be_translated_are_an_error(speed, trained, tmp_path):
    (tmp_path / "in.txt").write_text("\n\n")
    longest = DecodingConfig().max_source
    message = f"none of the lines can be translated: all are blank or longer than {longest:,} tokens"
    with pytest.raises(DataError, match=message):
        speed("translate", trained, tmp_path / "in.txt")


@pytest.mark.slow
def test_a_run_without_test_files_needs_a_file(speed, trained):
    with pytest.raises(ConfigError, match="give a FILE"):
        speed("translate", trained)


@pytest.mark.slow
def test_a_missing_device_is_an_error(speed, trained, text):
    for arguments in (["train", trained], ["translate", trained, text]):
        with pytest.raises(ConfigError, match=r"device: expected .*cuda:99"):
            speed(*arguments, "--device", "cuda:99")


@pytest.mark.long
def test_the_profiler_prints_nothing(trained, text):
    for quantization in ("float32", "int8"):  # the first use of each converts the model and prints a message about it
        Translator.load(trained, engine="ctranslate2", quantization=quantization).translate(["the cat"])
    command = [sys.executable, "-m", "benchmarks.speed", "translate", str(trained), str(text), "--seconds", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stderr
    assert all(re.match("loading the model|beam |profiling|trying ", line) for line in done.stderr.splitlines())
