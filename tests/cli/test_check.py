"""`glassformer check`: a table, or JSON, and an exit status."""

import json
import shutil

import pytest
import torch

from glassformer.bundle import Bundle


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
    assert "2 of 12 checks failed" in result.out  # its output does not depend on the source either


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
