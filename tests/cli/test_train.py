"""`glassformer train`: user errors give one line of error, and nothing is lost."""

import json
import re

import pytest


def test_a_run_contains_all_its_files(trained):
    names = {path.name for path in trained.iterdir()}
    made = {
        "config.toml",
        "tokenizer",
        "model.safetensors",
        "alignment.json",
        "habits.json",
        "spellings.txt",
    }
    # A translation in another test may have created the folder ctranslate2.
    assert names - {"ctranslate2"} == {*made, "checkpoints", "metrics.jsonl", "prepared", "report.html", ".lock"}
    kinds = [json.loads(line)["type"] for line in (trained / "metrics.jsonl").read_text().splitlines()]
    assert kinds.count("validation") == 2
    assert kinds[-1] == "end"


@pytest.mark.slow
def test_training_prints_its_progress_and_its_folder(glassformer, corpus):
    result = glassformer("train", "small.toml")
    assert result.status == 0
    [train, valid] = re.search(r"(\d+) training pairs, (\d+) for validation", result.err).groups()
    # either all pairs of a source are held out, or none
    assert (int(train) + int(valid), 10 <= int(valid) <= 13) == (200, True)
    assert "step 30: validation loss" in result.err
    assert "60 steps in" in result.out
    assert "runs/small" in result.out


@pytest.mark.slow
def test_a_finished_run_has_nothing_more_to_do(glassformer, corpus):
    glassformer("train", "small.toml", "--set", "training.steps=20")
    weights = (corpus / "runs/small/model.safetensors").read_bytes()
    again = glassformer("train", "small.toml", "--set", "training.steps=20")
    assert again.status == 0
    assert "resuming from step 20" in again.err
    assert (corpus / "runs/small/model.safetensors").read_bytes() == weights


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.stepz=3", "training.stepz: unknown field (did you mean 'steps'?)"),
        ("trainin.steps=3", "[trainin]: unknown section (did you mean 'training'?)"),
        ("training.steps=many", "training.steps: expected an integer from 0 to 1,000,000,000,000, got 'many'"),
        ("model.norm=middle", "model.norm: expected one of post, pre, got 'middle'"),
        ("model.preset=tinny", "expected the name of a preset, got 'tinny' (did you mean 'tiny'?)"),
        ("model.heads=5", "model.heads: expected a divisor of model.d_model = 32, got 5"),
        ("training.label_smoothing=1.5", "training.label_smoothing: expected a number from 0 to 0.999, got 1.5"),
        ("training.steps=0", "training.steps: expected training.steps, training.minutes or training.patience above 0"),
        ("data.target=other.txt", "holds source and target"),
        ("steps=3", "expected section.field=value"),
        ("data.source", "join the name and its value with '=': --set data.source=VALUE"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value_and_the_allowed_values(
    unchecked, glassformer, corpus, override, message
):
    result = glassformer("train", "small.toml", "--set", override)
    assert result.status == 1
    assert result.err.startswith("error: ")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not (corpus / "runs").exists()


def test_an_unknown_recipe_names_the_nearest(glassformer):
    result = glassformer("train", "dmo")
    assert result.status == 1
    assert "did you mean 'demo'?" in result.err


def test_files_of_unequal_length_stop_before_anything_is_written(glassformer, corpus):
    (corpus / "a.txt").write_text("the cat\na dog\n")
    (corpus / "b.txt").write_text("le chat\n")
    result = glassformer("train", "small.toml", "--set", "data.source=a.txt", "--set", "data.target=b.txt")
    assert result.status == 1
    assert "a.txt has 2 lines, b.txt has 1" in result.err
    assert not (corpus / "runs").exists()


def test_an_empty_corpus_is_named(glassformer, corpus):
    (corpus / "train.tsv").write_text("")
    result = glassformer("train", "small.toml")
    assert result.status == 1
    assert "train.tsv: none of the 0 pairs can be used" in result.err


def test_a_missing_corpus_is_named(glassformer, corpus):
    (corpus / "train.tsv").rename(corpus / "train2.tsv")
    result = glassformer("train", "small.toml")
    assert result.status == 1
    assert "train.tsv does not exist (did you mean 'train2.tsv'?)" in result.err


@pytest.mark.slow
def test_a_different_configuration_in_the_same_folder_is_refused(glassformer, corpus):
    glassformer("train", "small.toml", "--set", "training.steps=5")
    before = (corpus / "runs/small/config.toml").read_text()
    result = glassformer("train", "small.toml", "--set", "model.d_ff=64")
    assert result.status == 1
    assert "holds a run with model.d_ff = 48, not 64" in result.err
    assert (corpus / "runs/small/config.toml").read_text() == before


def test_a_data_folder_is_refused_for_a_built_in_task(glassformer, tmp_path):
    result = glassformer("train", "copy", "--data", tmp_path)
    assert result.status == 1
    assert "data.directory: expected no value with a built-in task" in result.err


@pytest.mark.slow
def test_a_configuration_may_begin_with_a_byte_order_mark(glassformer, corpus):
    text = (corpus / "small.toml").read_bytes()
    (corpus / "small.toml").write_bytes(b"\xef\xbb\xbf" + text)
    assert glassformer("prepare", "small.toml").status == 0


def test_usage_errors_are_status_2(glassformer):
    assert glassformer("train").status == 2
    assert glassformer("fly").status == 2
