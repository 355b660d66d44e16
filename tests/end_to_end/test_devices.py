"""The model, its searches and its explanations make their tensors on the device of the weights.

Without a GPU, PyTorch's device "meta" can test this: its tensors have shapes but no numbers, and an operation with
tensors on two devices is an error. Either the model is on "meta", or the model is on the CPU and new tensors are made
on "meta" unless the code names a device.
"""

import pytest
import torch

import glassformer as gf
from glassformer.decoding.transformer_step import padded
from glassformer.model.taps import record
from glassformer.watch.explorer.payload import payload, recorded_payload
from glassformer.watch.explorer.remote import Remote
from glassformer.watch.inspection.diagnosis import diagnose
from glassformer.watch.inspection.mistakes import MISTAKES, plant
from models import random_translator

SOURCES, TARGETS = [[4, 5, 6, 7, 2], [8, 9, 2]], [[1, 4, 5], [1, 6]]
TEXT = "the cat"
GRADIENT = {"kind": "gradient", "source_ids": [4, 5, 2], "target_ids": [1, 4], "row": 1, "word": 8, "rival": 4}
JOBS = {
    "greedy": lambda translator: translator.translate([TEXT, "the"]),
    "beam": lambda translator: translator.translate([TEXT, "the"], beam_size=3, n_best=2),
    "sampling": lambda translator: translator.translate([TEXT, "the"], sample=True, top_k=3),
    "prefix": lambda translator: translator.translate([TEXT], prefix="le"),
    "score": lambda translator: translator.score([(TEXT, "le chat")]),
    "explain": lambda translator: translator.explain(TEXT),
    "check": gf.check,
    "diagnose": lambda translator: diagnose(translator, [(TEXT, "le chat")] * 30),
    "page": lambda translator: payload(translator, TEXT),
    "recording": lambda translator: recorded_payload(translator, TEXT),
    "figure": lambda translator: gf.explore(translator, TEXT).figure("cross"),
    "gradient": lambda translator: Remote(translator).answer(GRADIENT),
}


def batch(model):
    return padded(model, SOURCES), padded(model, TARGETS)


@pytest.fixture
def elsewhere(make_model):
    return make_model().to("meta")


def test_operations_with_tensors_of_two_devices_are_errors(elsewhere):
    source, _ = batch(elsewhere)
    with pytest.raises(RuntimeError):  # includes NotImplementedError, a subclass
        elsewhere(source, torch.ones(2, 3, dtype=torch.long))


def test_the_forward_and_the_backward_pass_stay_on_the_device(elsewhere):
    elsewhere(*batch(elsewhere)).sum().backward()
    assert {weight.grad.device.type for weight in elsewhere.parameters()} == {"meta"}


def test_every_point_is_on_the_device(elsewhere):
    with record(elsewhere) as trace:
        elsewhere(*batch(elsewhere))
    assert {value.device.type for value in trace.values()} == {"meta"}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_classic_mistakes_stay_on_the_device(elsewhere, mistake):
    with plant(elsewhere, mistake):
        assert elsewhere(*batch(elsewhere)).device.type == "meta"


def test_a_tensor_whose_device_is_not_named_is_an_error(tmp_path):
    model = random_translator(tmp_path).model
    with torch.device("meta"), pytest.raises(RuntimeError):
        model(torch.tensor(SOURCES[1:]), torch.tensor(TARGETS[1:]))


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_each_job_names_the_device_of_its_tensors(tmp_path, job):
    translator = random_translator(tmp_path)
    with torch.device("meta"):
        job(translator)
