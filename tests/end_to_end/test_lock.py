"""Two processes on one run: the second process is refused with a reason, and the first process is not disturbed."""

import signal

import pytest

from end_to_end.runs import assert_equal, latest, train
from end_to_end.zygote import Zygote


@pytest.fixture(scope="module")
def other(zygote):
    """Return a second starter of training runs in the same folder."""
    other = Zygote(zygote.folder)
    yield other
    other.close()


@pytest.mark.slow
def test_a_second_process_is_refused_until_the_first_has_ended(zygote, other):
    long, folder = "training.steps=100000", zygote.folder / "shared"
    pid = zygote.start(*train(folder, long))
    assert zygote.wait_until(pid, lambda: latest(folder) >= 7)
    before = {path: path.read_bytes() for path in folder.glob("tokenizer/*")}
    refused = other.run(*train(folder, long))
    assert refused.status == 1
    assert refused.said.splitlines()[-1].startswith(f"error: {folder} is in use: process {pid} on ")
    assert {path: path.read_bytes() for path in folder.glob("tokenizer/*")} == before
    reached = latest(folder)
    assert zygote.wait_until(pid, lambda: latest(folder) > reached)  # the first run continues undisturbed
    zygote.kill(pid, signal.SIGKILL)
    assert zygote.ended().status == -signal.SIGKILL
    taken = other.run(*train(folder, "training.steps=48"))
    assert taken.status == 0, taken.said


@pytest.mark.slow
def test_one_of_two_simultaneous_trainings_trains(zygote, other):
    folder, whole = zygote.folder / "together", zygote.folder / "whole"
    assert zygote.run(*train(whole)).status == 0
    for starter in (zygote, other):
        starter.start(*train(folder))
    ended = [zygote.ended(), other.ended()]
    assert sorted(one.status for one in ended) == [0, 1], ended
    assert "is in use: " in next(one.said for one in ended if one.status)
    assert_equal(folder, whole)
