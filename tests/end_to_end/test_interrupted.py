"""An interrupted preparation: it ends at once with its processes, and complete parts stay."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from glassformer.jobs.prepared.manifest import Manifest

CONFIG = """
[data]
source = "train.tsv"
valid_lines = 7
[cleaning]
workers = 2
[tokenizer]
kind = "unigram"
vocab_size = 8000
[model]
preset = "tiny"
d_model = 16
[training]
steps = 1
"""
PAIRS = 101_000
"""Number of pairs: their 18 MB are enough for several processes, and training the tokenizer takes time."""
STAGES = ("checking the corpus", "training the tokenizer", "cutting into tokens")
ENDED = "Stopped. Run the same command to resume from what is saved."


class Command:
    """A command that prepares the corpus, in a separate session, as in a separate terminal."""

    def __init__(self, folder: Path, name: str, prepared: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "glassformer", name, "small.toml", "--set", f"data.prepared={prepared}"],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.said: list[str] = []

    def reaches(self, *stages: str) -> bool:
        """Wait until the command reports one of these stages; return whether it did."""
        return any(line.startswith(stages) for line in self._lines())

    def others(self, count: int) -> list[psutil.Process]:
        """Wait until the command has started this number of processes; return the processes."""
        while len(others := psutil.Process(self.process.pid).children(recursive=True)) < count:
            assert self.process.poll() is None
            time.sleep(0.01)
        return others

    def interrupt(self, number: signal.Signals) -> float:
        """Send a signal to the process group, as a terminal does; return the seconds until the command ends."""
        began = time.perf_counter()
        os.killpg(self.process.pid, number)
        self.process.wait(timeout=60)
        return time.perf_counter() - began

    def finish(self) -> int:
        """Wait for the end of the command; return its status."""
        for _ in self._lines():
            pass
        self.process.communicate()
        return self.process.returncode

    def _lines(self) -> Iterator[str]:
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))
            yield line


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def stages(said: list[str]) -> list[str]:
    """Return the stages that the command has reported."""
    return list(dict.fromkeys(re.sub(r":.*", "", line) for line in said if line.startswith(STAGES)))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, chance = tmp_path_factory.mktemp("corpus"), random.Random(3)
    words = ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(3, 9))) for _ in range(5000)]
    lines = (" ".join(chance.choices(words, k=chance.randint(10, 16))) for _ in range(PAIRS))
    (folder / "train.tsv").write_text("".join(f"{line}\t{line[::-1].upper()}\n" for line in lines))
    (folder / "small.toml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def whole(corpus: Path) -> tuple[dict[str, bytes], float]:
    """Return the files of an uninterrupted preparation, and the seconds that training its tokenizer took."""
    command = Command(corpus, "prepare", "whole")
    assert command.reaches(STAGES[1])
    began = time.perf_counter()
    assert command.reaches(STAGES[2])
    seconds = time.perf_counter() - began
    assert command.finish() == 0
    return contents(corpus / "whole"), seconds


@pytest.mark.long
@pytest.mark.parametrize(("name", "number"), [("prepare", signal.SIGTERM), ("train", signal.SIGINT)])
def test_an_interrupted_command_ends_at_once_and_resumes_at_each_stage(
    corpus: Path, whole: tuple[dict[str, bytes], float], name: str, number: signal.Signals
) -> None:
    for place, stage in enumerate(STAGES):
        command = Command(corpus, name, name)
        assert command.reaches(stage)
        others = command.others((0, 1, 2)[place])
        seconds = command.interrupt(number)
        assert command.finish() == 130
        assert stages(command.said) == [*STAGES[max(place - 1, 0) : place + 1]]  # complete parts are not made again
        assert command.said[-1] == ENDED
        assert not [line for line in command.said if "Traceback" in line or "Error" in line]
        assert psutil.wait_procs(others, timeout=30)[1] == []
        manifest = Manifest.load(corpus / name)
        assert (manifest is None, bool(manifest and manifest.tokenizer)) == (place == 0, place == 2)
        assert not (manifest and manifest.shards)
        if stage == STAGES[1]:
            assert seconds < whole[1] / 2
    assert not (corpus / "runs").exists()
    last = Command(corpus, "prepare", name)
    assert last.finish() == 0
    assert stages(last.said) == [STAGES[2]]
    assert contents(corpus / name) == whole[0]


@pytest.mark.long
def test_a_command_may_be_interrupted_at_any_moment_and_repeatedly(
    corpus: Path, whole: tuple[dict[str, bytes], float]
) -> None:
    chance, interrupted = random.Random(20170612), 0
    for place in (0, 0, 1, 1, 1, 2, 2, 2):
        command = Command(corpus, "prepare", "often")
        if command.reaches(*STAGES[place:]):  # the previous start may have completed earlier stages
            time.sleep(chance.uniform(0, 0.3))
            for _ in range(chance.randrange(3)):
                command.process.send_signal(chance.choice((signal.SIGINT, signal.SIGTERM)))
                time.sleep(chance.uniform(0, 0.03))
            command.interrupt(signal.SIGINT)
        status = command.finish()
        assert status in {0, 130, -signal.SIGINT, -signal.SIGTERM}
        interrupted += status != 0
        assert not [line for line in command.said if "Traceback" in line], command.said
    assert interrupted >= 3
    assert Command(corpus, "prepare", "often").finish() == 0
    assert contents(corpus / "often") == whole[0]
