"""The lock of a run: it admits one process at a time, and a crash does not leave the run locked."""

import gc
import json
import os
import re
import signal
import socket
from contextlib import suppress

import pytest

from glassformer.errors import CheckpointError, ConfigError
from glassformer.system.locks import locked


@pytest.fixture
def holder(tmp_path):
    """Return the id of a process that holds the lock of tmp_path."""
    (read, ready), (waiting, end) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        # otherwise, garbage collection would wait for ever for threads that only the parent process has, such as
        # CTranslate2's
        gc.disable()
        os.close(end)
        with locked(tmp_path):
            os.write(ready, b"held")
            os.read(waiting, 1)
        os._exit(0)
    assert os.read(read, 4) == b"held"
    yield pid
    os.close(end)
    for descriptor in (read, ready, waiting):
        os.close(descriptor)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def test_a_second_process_learns_who_holds_the_lock_where_and_since_when(tmp_path, holder):
    with pytest.raises(ConfigError) as caught, locked(tmp_path):
        pass
    expected = (
        f"{re.escape(str(tmp_path))} is in use: process {holder} on {re.escape(socket.gethostname())}, "
        r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+\d\d:\d\d, trains there; wait until it ends, stop it, or choose "
        r"another run\.directory"
    )
    assert re.fullmatch(expected, str(caught.value))


def test_the_lock_ends_with_its_process_even_after_a_kill(tmp_path, holder):
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    assert (tmp_path / ".lock.json").exists()  # the killed process could not remove its file, which must do no harm
    with locked(tmp_path):
        assert json.loads((tmp_path / ".lock.json").read_text())["process"] == os.getpid()


@pytest.mark.parametrize("known", ["", "{", "[]", "{}", None])
def test_an_unknown_holder_is_reported_as_another_process(tmp_path, holder, known):
    if known is None:
        (tmp_path / ".lock.json").unlink()
    else:
        (tmp_path / ".lock.json").write_text(known)
    with pytest.raises(ConfigError, match="in use: another process trains there"), locked(tmp_path):
        pass


def fail(folder, *names):
    with locked(folder):
        for name in names:
            (folder.parent / name).mkdir()
        raise ZeroDivisionError


def test_the_lock_is_free_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path / "run", "run/checkpoints")
    with locked(tmp_path / "run"), pytest.raises(ConfigError, match=f"process {os.getpid()} "):
        fail(tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").glob(".*")] == [".lock"]


def test_empty_folders_are_removed_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path / "runs" / "one")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path / "runs" / "one", "two")
    assert [path.name for path in tmp_path.rglob("*")] == ["runs", "two"]


def test_a_folder_moved_under_its_lock_does_not_hide_the_error(tmp_path):
    def move_and_fail():
        with locked(tmp_path / "run"):
            (tmp_path / "run").rename(tmp_path / "moved")
            raise ValueError("the cause")

    with pytest.raises(ValueError, match="the cause"):
        move_and_fail()


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CheckpointError, match=r"cannot write .*file/run/\.lock: Not a directory"),
        locked(tmp_path / "file" / "run"),
    ):
        pass
    (tmp_path / ".lock").mkdir()
    with pytest.raises(CheckpointError, match=r"cannot write .*\.lock: Is a directory"), locked(tmp_path):
        pass
