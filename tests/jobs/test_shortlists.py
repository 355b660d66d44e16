"""A run's shortlist is made from its corpus, by training or by calibration."""

from dataclasses import replace

import pytest

import glassformer as gf
from glassformer.bundle import SHORTLIST
from glassformer.cli import main
from glassformer.evaluation.guards import GUARDS
from glassformer.recipes.toml import from_dict

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_task")]

SETTINGS = {
    "data": {"task": "copy"},
    "tokenizer": {"kind": "words", "vocab_size": 60},
    "model": {"d_model": 16, "heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1},
    "training": {"steps": 4, "batch_tokens": 200, "metric": "exact", "metric_lines": 20, "validate_every": 2},
    "decoding": {"beam_size": 1, "shortlist": 10},
}


def configuration(folder, **decoding):
    found = from_dict({**SETTINGS, "decoding": {**SETTINGS["decoding"], **decoding}})
    return replace(found, run=replace(found.run, directory=str(folder)))


def test_training_makes_the_shortlist_before_its_first_validation_and_keeps_it_when_it_resumes(tmp_path):
    stages = []
    gf.train(configuration(tmp_path / "run"), on_report=lambda report: stages.append(getattr(report, "stage", "")))
    assert stages.count("aligning tokens for the shortlist") == 1
    first = (tmp_path / "run" / SHORTLIST).read_bytes()
    longer = configuration(tmp_path / "run")
    gf.train(replace(longer, training=replace(longer.training, steps=6)), on_report=stages.append)
    assert stages.count("aligning tokens for the shortlist") == 1
    assert (tmp_path / "run" / SHORTLIST).read_bytes() == first
    gf.train(configuration(tmp_path / "again"))
    assert (tmp_path / "again" / SHORTLIST).read_bytes() == first
    guards = gf.Translator.load(tmp_path / "run").guards
    assert guards()
    assert not guards(shortlist=0)


def test_calibrate_makes_the_shortlist_of_a_finished_run(tmp_path):
    run = tmp_path / "run"
    gf.train(configuration(run, shortlist=0))
    assert not (run / SHORTLIST).exists()
    (run / GUARDS).unlink()
    options = ["--set", "decoding.shortlist=10", "--engine", "torch", "--flagged", "0.1"]
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", str(run), *options])
    assert not ended.value.code
    translator = gf.Translator.load(run)
    assert translator.guards(shortlist=10)
    assert not translator.guards()
