"""`glassformer check`: a table, or JSON, and an exit status."""

import json
import shutil

import pytest
import torch

import glassformer as gf
import word_by_word
from glassformer.bundle import Bundle
from glassformer.watch.inspection import MISTAKES, plant


@pytest.fixture
def damaged(trained, tmp_path):
    """Return the run with a model that never writes <eos>."""
    shutil.copytree(trained, tmp_path / "run")
    bundle = Bundle.load(tmp_path / "run")
    model = bundle.model()
    with torch.no_grad():
        model.decoder.layers[-1].feed_forward_residual.norm.weight.zero_()
        model.decoder.layers[-1].feed_forward_residual.norm.bias.copy_(-model.output.weight[2])
    bundle.save(model)
    return tmp_path / "run"


@pytest.mark.slow
def test_a_trained_run_passes(glassformer, trained):
    result = glassformer("check", trained)
    assert result.status == 0, result.out
    assert result.out.count("✓") == 12
    assert "all checks passed" in result.out


@pytest.mark.slow
def test_a_failed_check_has_a_reason_and_status_1(glassformer, damaged):
    result = glassformer("check", damaged)
    assert result.status == 1
    assert result.err == ""
    assert "✗ <eos>: 0 of 4 outputs ended" in result.out
    assert "likely: <eos> missing at the end of the training targets" in result.out
    # the second check failed because the output does not depend on the source
    assert "2 of 12 checks failed" in result.out


@pytest.mark.slow
def test_the_result_can_be_printed_as_json(glassformer, trained, damaged):
    assert json.loads(glassformer("check", trained, "--json").out)["passed"]
    result = glassformer("check", damaged, "--json")
    report = json.loads(result.out)
    assert [one["name"] for one in report["checks"] if one["status"] == "failed"] == ["source", "<eos>"]
    assert result.status == 1


def test_a_folder_that_is_not_a_run_is_an_error_of_one_line(glassformer, tmp_path):
    result = glassformer("check", tmp_path)
    assert result.status == 1
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1


# Pairs given by the user


@pytest.fixture
def files(corpus):
    """Return two files of new sentences and their translations, with a blank line, beside the corpus."""
    sides = zip(*word_by_word.pairs(80, 8), ("", ""), strict=True)
    for name, lines in zip(("sources", "targets"), sides, strict=True):
        (corpus / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return "sources", "targets"


@pytest.mark.slow
def test_given_pairs_name_the_mistake_of_a_training(glassformer, files):
    gf.train("small.toml", overrides=["run.directory=run"], change=lambda model: plant(model, "no_causal_mask"))
    result = glassformer("check", "run", "--pairs", *files)
    assert result.status == 1
    assert result.err == ""
    assert "80 pairs (1 left out: blank or too long)" in result.out
    [row] = [line for line in result.out.splitlines() if "trained with it" in line]
    assert row.startswith("no causal mask")
    assert "This model was trained with a mistake" in result.out


@pytest.mark.slow
def test_given_pairs_do_not_blame_a_right_run(glassformer, trained, files):
    result = glassformer("check", trained, "--pairs", *files, "--limit", "50", "--json")
    report = json.loads(result.out)
    assert (result.status, report["passed"], report["suspects"]) == (0, True, []), report
    assert report["pairs"] + report["left_out"] == 50
    assert {one["id"] for one in report["mistakes"]} == {*MISTAKES}
    assert {"id", "loss", "difference", "low", "high", "verdict"} <= report["mistakes"][0].keys()


@pytest.mark.slow
def test_wrong_uses_of_pairs_are_errors_of_one_line(glassformer, trained, files):
    for arguments, part in [
        (["--limit", "9"], "only with --pairs"),
        (["--pairs", "sources", "train.tsv"], "expected equal numbers"),
        (["--pairs", *files, "--limit", "9"], "at least 30 pairs"),
    ]:
        result = glassformer("check", trained, *arguments)
        assert (result.status, result.err.count("\n")) == (1, 1)
        assert part in result.err
