"""A small trained run, and the command line called in this process."""

import io
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import word_by_word
from glassformer.cli import main

CONFIG = f"""
[data]
source = "train.tsv"
valid_lines = 13
[cleaning]
duplicates = "keep"
max_ratio = 0
{word_by_word.MODEL}[training]
steps = 60
batch_tokens = 500
learning_rate = 5e-3
warmup = 10
validate_every = 30
checkpoint_every = 20
[decoding]
beam_size = 3
"""


@dataclass(frozen=True)
class Result:
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str


@pytest.fixture
def glassformer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Call a command: `glassformer("translate", run, stdin=b"…")`."""

    def call(*arguments: object, stdin: bytes = b"") -> Result:
        capsys.readouterr()
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file, encoding="utf-8"))
            with pytest.raises(SystemExit) as end:
                main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(int(end.value.code or 0), captured.out, captured.err)

    return call


def write_corpus(folder: Path, pairs: int = 200) -> None:
    """Write a corpus in which each word has one translation."""
    (folder / "train.tsv").write_text(word_by_word.tsv(word_by_word.pairs(pairs, 7)), encoding="utf-8")
    (folder / "small.toml").write_text(CONFIG, encoding="utf-8")


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a corpus and its configuration, as the current folder."""
    write_corpus(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run trained by the command."""
    folder = tmp_path_factory.mktemp("trained")
    write_corpus(folder)
    run = folder / "run"
    with pytest.raises(SystemExit) as end:
        main(["train", str(folder / "small.toml"), "--data", str(folder), "--set", f"run.directory={run}"])
    assert not end.value.code
    return run
