"""A killed training run resumes exactly, whenever it is killed."""

import random
import signal
import time
from pathlib import Path

import pytest

from end_to_end.runs import SHORT, assert_equal, latest, steps, train
from end_to_end.zygote import Zygote


def half_written(folder):
    return sorted((folder / "checkpoints").glob(".step-????????.tmp"))


@pytest.fixture(scope="module")
def whole(zygote):
    """Return an uninterrupted run, and its duration."""
    started = time.perf_counter()
    ended = zygote.run(*train(zygote.folder / "whole"))
    assert ended.status == 0, ended.said
    return zygote.folder / "whole", time.perf_counter() - started


def wait_for_a_write(folder, pid, number, delay):
    """Wait until the `number`-th checkpoint from now is being written, or the process has ended."""
    seen: set[Path] = set()

    def enough():
        seen.update(half_written(folder))
        return len(seen) >= number

    Zygote.wait_until(pid, enough)
    time.sleep(delay)


@pytest.mark.long
@pytest.mark.parametrize(("least", "least_inside"), [(5, 1), (50, 10)])
def test_a_run_killed_repeatedly_at_random_moments_ends_the_same(zygote, whole, least, least_inside):
    """There are at least `least` kills, of which at least `least_inside` happen while a checkpoint is being written."""
    chance, kills, inside, runs = random.Random(20170612), 0, 0, 0
    while kills < least or inside < least_inside:
        folder, before, runs = zygote.folder / f"run-{least}-{runs}", 0, runs + 1
        while True:
            pid = zygote.start(*train(folder))
            if kills % 2:
                wait_for_a_write(folder, pid, chance.randint(1, 3), chance.uniform(0, 0.01))
            else:
                time.sleep(chance.uniform(0, whole[1]))
            zygote.kill(pid, signal.SIGKILL)
            ended = zygote.ended()
            if ended.status == 0:
                break
            assert ended.status == -signal.SIGKILL, ended.said
            kills, inside = kills + 1, inside + bool(half_written(folder))
            assert latest(folder) >= before
            before = latest(folder)
        assert_equal(folder, whole[0])


@pytest.mark.long
def test_a_run_killed_at_each_write_ends_the_same(zygote):
    short = zygote.folder / "short"
    assert zygote.run(*train(short, *SHORT)).status == 0
    for number in range(1000):
        folder = zygote.folder / f"touch-{number}"
        ended = zygote.run(*train(folder, *SHORT), folder=str(folder), kill=number)
        if ended.status == 0:
            break
        assert ended.status == -signal.SIGKILL, ended.said
        again = zygote.run(*train(folder, *SHORT))
        assert again.status == 0, again.said
        assert_equal(folder, short)
    assert number > 50


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_run_that_is_stopped_now_and_then_ends_the_same(zygote, whole, number):
    chance, folder, stops, finished = random.Random(number), zygote.folder / f"stopped-{number.name}", 0, False
    while not finished:
        pid = zygote.start(*train(folder))
        until = latest(folder) + chance.randint(1, 9)
        zygote.wait_until(pid, lambda: steps(folder) >= until)  # noqa: B023
        zygote.kill(pid, number)
        ended = zygote.ended()
        assert ended.status == 0, ended.said
        finished = "steps at step 48" in ended.said
        if not finished:
            stops += 1
            assert f"stopped at step {latest(folder)}" in ended.said
    assert stops >= 3
    assert_equal(folder, whole[0])
