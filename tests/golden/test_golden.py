"""Runs of older versions still load, give the same outputs, and resume."""

import json
import random
import shutil
from pathlib import Path

import pytest

from glassformer.bundle import Bundle
from glassformer.cli import main
from glassformer.jobs import average, evaluate, train
from glassformer.recipes.configuration import DecodingConfig
from glassformer.recipes.toml import load
from glassformer.translator import Translator
from glassformer.watch.inspection.check import check

RUNS = sorted(Path(__file__).parent.glob("format-*"))
WORDS = {"le": "the", "chat": "cat", "voit": "sees", "un": "a", "grand": "big", "chien": "dog", "et": "and"}
WORDS |= {"vieux": "old", "homme": "man", "petit": "small", "rouge": "red", "maison": "house"}

pytestmark = pytest.mark.parametrize("stored", RUNS, ids=lambda run: run.name)


def expected(run: Path) -> list[dict[str, object]]:
    """Return the translations stored with a run."""
    return json.loads((run / "translations.json").read_text(encoding="utf-8"))


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Path:
    """Return a copy of the run, with a new corpus of the run's words, because the original corpus was not stored."""
    chosen = random.Random(11)
    lines = (chosen.choices(list(WORDS), k=chosen.randint(2, 7)) for _ in range(330))
    pairs = ("\t".join((" ".join(WORDS[word] for word in line), " ".join(line))) for line in lines)
    (tmp_path / "train.tsv").write_text("".join(f"{pair}\n" for pair in pairs), encoding="utf-8")
    return shutil.copytree(stored, tmp_path / "run")


def test_an_old_run_gives_its_old_outputs(stored):
    translator = Translator.load(stored)
    for line in expected(stored):
        [found] = translator.translate([line["text"]], beam_size=line["beam_size"])
        assert found.text == line["translation"]
        # float32 results differ from machine to machine
        assert found.log_prob == pytest.approx(line["log_prob"], abs=1e-4)


def test_scoring_an_old_runs_outputs_gives_their_log_probabilities(stored):
    lines = [line for line in expected(stored) if line["beam_size"] == 4]
    pairs = [(line["text"], line["translation"]) for line in lines]
    scored = Translator.load(stored).score(pairs)
    assert [one.log_prob for one in scored] == pytest.approx([line["log_prob"] for line in lines], abs=1e-4)


def test_an_old_configuration_keeps_its_meaning(stored):
    configuration = load(stored / "config.toml")
    assert configuration.data.source == "train.tsv"
    assert configuration.training.ema == 0
    assert configuration.tokenizer.sampling == 0
    assert (configuration.cleaning.duplicates, configuration.cleaning.max_ratio) == ("drop", 9)
    assert configuration.decoding == DecodingConfig()  # the file omits most of these settings, so their defaults apply


def test_opening_an_old_run_writes_nothing_into_it(stored):
    before = {path: path.stat().st_mtime_ns for path in stored.rglob("*")}
    Translator.load(stored).translate(["the cat"])
    assert {path: path.stat().st_mtime_ns for path in stored.rglob("*")} == before


def test_an_old_run_passes_the_self_test(stored):
    assert check(stored).failures == ()


def test_the_checkpoints_of_an_old_run_can_be_averaged(run):
    """The last validation was the best, so the mean of the last checkpoint is the kept model."""
    translator = Translator.load(average(run, last=1))
    for line in expected(run):
        [found] = translator.translate([line["text"]], beam_size=line["beam_size"])
        assert (found.text, found.log_prob) == (line["translation"], pytest.approx(line["log_prob"], abs=1e-4))


def test_an_old_run_can_be_evaluated(run):
    translator = Translator.load(run)
    lines = expected(run)[-4:]
    scores, _ = evaluate(
        translator, [line["text"] for line in lines], [line["translation"] for line in lines], ["exact"]
    )
    assert scores[0].value == 100


@pytest.mark.slow
def test_the_training_of_an_old_run_resumes_from_its_checkpoint(run, tmp_path):
    """The configuration is the run's own; for settings that it does not have, the defaults keep the old behaviour."""
    options = [f"run.directory={run}", "training.steps=410", "training.keep_checkpoints=2", "training.log_every=1"]
    summary = train(run / "config.toml", overrides=options, data=tmp_path)
    assert summary.steps == 410
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in steps if line["type"] == "step" and line["step"] > 400] == list(range(401, 411))
    assert Bundle.load(run).configuration.training.steps == 410
    assert (run / "checkpoints/step-00000410").is_dir()
    assert Translator.load(run).translate(["the old man"])[0].text


@pytest.mark.parametrize("command", [["check"], ["translate"], ["trace"], ["evaluate"]], ids=lambda words: words[0])
def test_each_command_accepts_an_old_run(run, tmp_path, capsys, command):
    (tmp_path / "source").write_text("the old man\n")
    (tmp_path / "reference").write_text("le vieux homme\n")
    more = {
        "translate": [tmp_path / "source"],
        "trace": ["the old man"],
        "evaluate": [tmp_path / "source", tmp_path / "reference"],
    }
    with pytest.raises(SystemExit) as end:
        main([*command, str(run), *map(str, more.get(command[0], []))])
    captured = capsys.readouterr()
    assert not end.value.code, captured.err
    assert captured.out
