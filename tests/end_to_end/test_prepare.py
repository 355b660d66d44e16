"""After a preparation was killed or stopped by a full disk at any moment, the next one makes only missing parts."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.preparing import SHARD, Preparing
from glassformer.jobs.prepared.manifest import Manifest

CONFIG = """
[data]
source = "train.tsv"
valid_lines = 7
[tokenizer]
kind = "bpe"
vocab_size = 40
[model]
preset = "tiny"
"""


def write_corpus(folder: Path, pairs: int) -> None:
    letters = random.Random(3)
    lines = (" ".join(letters.choices("abcdefgh", k=letters.randint(4, 17))) for _ in range(pairs))
    (folder / "train.tsv").write_text("".join(f"{line}\t{line[::-1].upper()}\n" for line in lines))
    (folder / "small.toml").write_text(CONFIG)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def pairs_there(folder: Path) -> int:
    """Return the number of pairs in the shards that the manifest lists."""
    manifest = Manifest.load(folder)
    return sum(shard.pairs for shard in manifest.shards) if manifest else 0


@pytest.fixture(scope="module")
def preparing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preparing]:
    """Return a starter of preparations of a corpus of 161 pairs, 154 of them for training."""
    folder = tmp_path_factory.mktemp("preparing")
    write_corpus(folder, 161)
    preparing = Preparing(folder)
    yield preparing
    preparing.close()


@pytest.fixture(scope="module")
def whole(preparing: Preparing) -> Path:
    """Return the files of an uninterrupted preparation."""
    ended, pairs = preparing.run(preparing.folder / "whole")
    assert (ended.status, ended.said, pairs) == (0, "", 154)
    return preparing.folder / "whole"


@pytest.mark.slow
def test_the_corpus_is_written_in_several_shards(whole: Path) -> None:
    assert [shard.pairs for shard in Manifest.load(whole).shards] == [SHARD, SHARD, SHARD, 154 - 3 * SHARD]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "every"),  # starting two workers takes time
    [(1, 13), *(pytest.param(*each, marks=pytest.mark.long) for each in ((1, 1), (2, 1)))],
)
def test_after_a_kill_at_each_write_the_next_run_completes_the_rest_only(
    preparing: Preparing, whole: Path, workers: int, every: int
) -> None:
    partly = 0
    for number in range(0, 1000, every):
        folder = preparing.folder / f"killed-{workers}-{every}-{number}"
        ended, _ = preparing.run(folder, kill=number, workers=workers)
        if ended.status == 0:
            break
        assert ended.status == -signal.SIGKILL, ended.said
        there = pairs_there(folder)
        partly += 0 < there < 154
        ended, pairs = preparing.run(folder)
        assert (ended.status, ended.said, pairs) == (0, "", 154 - there)
        assert contents(folder) == contents(whole)
        shutil.rmtree(folder)
    assert number > 20
    assert partly > 5 // every


@pytest.mark.long
def test_a_preparation_killed_repeatedly_completes(preparing: Preparing, whole: Path) -> None:
    folder, chance = preparing.folder / "again", random.Random(5)
    for _ in range(100):
        ended, _ = preparing.run(folder, kill=chance.randint(8, 40))
        if ended.status == 0:
            break
    assert contents(folder) == contents(whole)


@pytest.mark.long
def test_a_full_disk_at_any_moment_is_an_error_that_loses_nothing(preparing: Preparing, whole: Path) -> None:
    errors = 0
    for number in range(1000):
        folder = preparing.folder / f"full-{number}"
        ended, _ = preparing.run(folder, fail=number)
        if ended.said == "there was no such touch":
            break
        if ended.status:  # not every change to the disk is necessary, such as removing a file that does not exist
            assert ended.said.startswith("error: cannot write")
            assert "No space left on device" in ended.said
            errors += 1
        there = pairs_there(folder) if folder.exists() else 0
        ended, pairs = preparing.run(folder)
        assert (ended.status, ended.said, pairs) == (0, "", 154 - there)
        assert contents(folder) == contents(whole)
        shutil.rmtree(folder)
    assert errors > 20


# The real command


def command(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "glassformer", "prepare", "small.toml", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> str:
    """Return the output of a command that has succeeded."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a corpus whose preparation takes some seconds and gives 2 shards."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, 300_000)
    return folder


@pytest.mark.long
@pytest.mark.parametrize("tries", [6])
def test_the_command_can_be_killed_at_random_moments(corpus: Path, tries: int) -> None:
    began = time.perf_counter()
    finished(command(corpus, "--set", f"data.prepared=whole-{tries}"))
    seconds, chance = time.perf_counter() - began, random.Random(20170612)
    kills = 0
    for number in range(tries):
        name = f"prepared-{tries}-{number}"
        process = command(corpus, "--set", f"data.prepared={name}")
        time.sleep(chance.uniform(0.1, 1) * seconds)
        process.kill()
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
        finished(command(corpus, "--set", f"data.prepared={name}"))
        assert contents(corpus / name) == contents(corpus / f"whole-{tries}")
        shutil.rmtree(corpus / name)
    assert kills >= tries // 2


@pytest.mark.long
def test_two_processes_prepare_a_shared_folder_once(corpus: Path) -> None:
    processes = [command(corpus, "--set", "data.prepared=shared") for _ in range(2)]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    outputs = sorted(out.splitlines()[-2].rpartition(": ")[2] for out, _ in said)
    assert outputs == ["shared was already complete", "written to shared"]
    waited = [err for out, err in said if "already" in out]
    assert "waiting for another process that is preparing shared" in waited[0]


@pytest.mark.slow
def test_the_command_prints_its_result_and_the_next_step(tmp_path: Path) -> None:
    write_corpus(tmp_path, 161)
    first = finished(command(tmp_path, "--set", "tokenizer.vocab_size=30")).splitlines()
    assert first[0] == "161 pairs, 161 kept (100.00 %). Ready to train on."
    assert first[1] == "154 training pairs, 7 for validation; vocabulary size 30: written to runs/small/prepared"
    assert first[2] == "train on it:  glassformer train small.toml --set tokenizer.vocab_size=30"
    again = finished(command(tmp_path, "--set", "tokenizer.vocab_size=30")).splitlines()
    assert again[0].endswith(": runs/small/prepared was already complete")
    assert again[1:] == first[2:]
    found = json.loads(finished(command(tmp_path, "--set", "tokenizer.vocab_size=30", "--json")))
    assert (found["pairs"], found["train_pairs"], found["valid_pairs"], found["left_out"]) == (161, 154, 7, {})
    assert found["folder"] == "runs/small/prepared"
