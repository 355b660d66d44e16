"""The comparison with CTranslate2's package: each way translates, and start-up time is subtracted."""

import pytest
from benchmarks.results import machine, read, write

from benchmarks import engines, page


class Clock:
    """A clock that runs only during translations."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    def way(self, start, each):
        """Return a way to translate that takes `start` seconds, and more for each line after the first."""

        def translate(lines):
            self.now += start + each * (len(lines) - 1)
            return [line.upper() for line in lines]

        return translate


def test_a_process_returns_one_line_per_input_line(tmp_path, monkeypatch):
    (tmp_path / "capitals.py").write_text("import sys\nprint(*(line.upper() for line in sys.stdin), sep='', end='')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert engines.through_process("capitals")(["a", "é c"]) == ["A", "É C"]


def test_the_start_up_time_of_a_process_is_subtracted(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(engines, "time", clock)
    ways = {engines.DIRECT: clock.way(1.0, 0.5), engines.COMMAND: clock.way(3.0, 0.5)}
    found = engines.measure(ways, list("abcde"), list("ABCDE"), rounds=2)
    # The four lines after the first take 2 seconds. The time of `direct` also includes its start: 3 seconds. The start
    # of the command is subtracted.
    assert found["speeds"] == {engines.DIRECT: pytest.approx([5 / 3] * 2), engines.COMMAND: pytest.approx([2.5] * 2)}
    assert found["scores"][engines.COMMAND]["equal"] == 100.0


@pytest.mark.slow
def test_the_page_compares_the_command_with_the_package(tmp_path):
    speeds = {engines.DIRECT: [100.0, 200.0], engines.DIRECT_PROCESS: [50.0, 100.0], engines.COMMAND: [80.0, 160.0]}
    scores = {name: {"bleu": 30.0, "equal": 100.0} for name in speeds}
    figures = {"quantization": "int8", "sentences": 7, "rounds": 2}
    write(
        "engines",
        {**figures, "cells": {"beam 1, all lines": {"speeds": speeds, "scores": scores}}},
        machine(),
        tmp_path,
    )
    assert "### Beam 1, all lines" in engines.markdown(read("engines", tmp_path))
    row = "| command | 120 (100–140) | 0.80 (0.80–0.80) | 1.60 (1.60–1.60) | 30.00 | 100.0 % |"
    assert row in page.page(tmp_path)
