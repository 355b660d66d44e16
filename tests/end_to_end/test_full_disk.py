"""A full disk is an error that loses nothing; once the disk has room, the same command resumes exactly."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from end_to_end.conftest import write_corpus
from end_to_end.runs import SHORT, assert_equal, latest, train
from end_to_end.zygote import Zygote


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory):
    """Return a starter of training runs on a file system of 2 MB, and the path of this disk in runs and in tests."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "disk").mkdir()
    write_corpus(folder)
    mount = f"mount -t tmpfs -o size=2m tmpfs '{folder}/disk' && exec \"$@\""
    prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    zygote = Zygote(folder, prefix)
    yield zygote, folder / "disk", Path(f"/proc/{zygote.pid}/root{folder}/disk")
    zygote.close()


def leave(disk, room):
    """Fill a disk up to a number of free bytes."""
    found = os.statvfs(disk)
    (disk / "ballast").write_bytes(b"x" * (found.f_bavail * found.f_bsize - room))


def assert_said(ended, reason="No space left on device"):
    assert ended.status == 1
    last = ended.said.splitlines()[-1]
    assert last.startswith("error: cannot write "), ended.said
    assert reason in last
    assert "Traceback" not in ended.said


@pytest.mark.long
@pytest.mark.parametrize("kilobytes", [53])
def test_nothing_is_lost_however_much_room_the_disk_has(small_disk, kilobytes):
    """The free space increases by this number of kilobytes from one attempt to the next."""
    small, path, disk = small_disk
    whole = small.folder / f"whole-{kilobytes}"  # a disk with enough space
    assert small.run(*train(whole)).status == 0
    reached = []
    for room in range(0, 2 << 20, kilobytes << 10):
        leave(disk, room)
        ended = small.run(*train(path / "run"))
        (disk / "ballast").unlink()
        if ended.status:
            assert_said(ended)
            reached.append(latest(disk / "run"))
            again = small.run(*train(path / "run"))
            assert again.status == 0, again.said
            assert f"resuming from step {reached[-1]} " in again.said or not reached[-1]
        assert_equal(disk / "run", whole, str(path / "run"))
        shutil.rmtree(disk / "run")
        if not ended.status:
            break
    assert ended.status == 0
    assert len(reached) >= 400 // kilobytes
    assert len(set(reached)) >= 3


@pytest.mark.long
def test_nothing_is_lost_whatever_cannot_be_written(zygote):
    """Each change in the folder fails once, as on a full disk."""
    assert zygote.run(*train(zygote.folder / "short", *SHORT)).status == 0
    failed = 0
    for number in range(1000):
        folder = zygote.folder / f"fails-{number}"
        ended = zygote.run(*train(folder, *SHORT), folder=str(folder), fail=number)
        if "there was no such touch" in ended.said:
            break
        if ended.status:
            assert_said(ended)
            failed += 1
        step = latest(folder)
        again = zygote.run(*train(folder, *SHORT))
        assert again.status == 0, again.said
        assert f"resuming from step {step} " in again.said or not step
        assert_equal(folder, zygote.folder / "short")
    assert failed > 20
