"""A function called in other processes gives the same results as in this process, in order and in bounded memory."""

import operator
import os
import signal
import subprocess
import sys
from functools import partial
from itertools import islice
from pathlib import Path

import psutil
import pytest

from glassformer.errors import DataError
from glassformer.system.pools import HERE, Processes

TWO = Processes(2, "squares", "workers = 1")
SQUARE = partial(pow, exp=2)


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_results_come_in_the_order_of_the_items(count: int) -> None:
    assert list(Processes(count).map(SQUARE, range(50))) == [number**2 for number in range(50)]
    assert list(Processes(count).map(SQUARE, [])) == []


def test_only_as_much_is_read_ahead_as_the_processes_need() -> None:
    read = []

    def items():
        for number in range(1000):
            read.append(number)
            yield number

    results = TWO.map(SQUARE, items())
    list(islice(results, 3))
    results.close()
    assert len(read) <= 3 + 2 * 2 + 1


def test_processes_end_with_the_generator() -> None:
    before = set(psutil.Process().children())
    results = TWO.map(SQUARE, range(70))
    next(results)
    processes = set(psutil.Process().children()) - before
    assert len(processes) == 2
    results.close()
    assert not any(process.is_running() for process in processes)


def test_a_killed_process_is_an_error_with_advice() -> None:
    before = set(psutil.Process().children())
    results = TWO.map(SQUARE, range(700))
    next(results)
    for process in set(psutil.Process().children()) - before:
        process.kill()
    with pytest.raises(DataError, match=r"a process that squares was killed.*workers = 1"):
        list(results)


@pytest.mark.parametrize("pool", [HERE, TWO])
def test_an_error_of_the_function_is_raised_here(pool: Processes) -> None:
    with pytest.raises(ZeroDivisionError):
        list(pool.map(partial(operator.truediv, 1), [1, 0]))


@pytest.mark.slow
def test_a_program_without_a_main_guard_can_use_processes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from functools import partial\n"
        "from glassformer.system.pools import Processes\n"
        "print(sum(Processes(2).map(partial(pow, exp=2), range(9000))))\n"
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == (f"{sum(number**2 for number in range(9000))}\n", "")


@pytest.mark.slow
def test_processes_end_when_the_program_is_killed() -> None:
    program = (
        "import itertools\n"
        "from functools import partial\n"
        "from glassformer.system.pools import Processes\n"
        "for square in Processes(2).map(partial(pow, exp=2), itertools.count()):\n"
        "    print('.', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        processes = psutil.Process(process.pid).children()
        os.kill(process.pid, signal.SIGKILL)
        _, errors = process.communicate()
    assert len(processes) == 2
    _, alive = psutil.wait_procs(processes, timeout=30)
    assert alive == []
    assert errors == b""
