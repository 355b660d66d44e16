"""Hashes of files and folders, and what to do about a file that cannot be read or written."""

import errno
import os
from pathlib import Path

import pytest

from glassformer.errors import CheckpointError
from glassformer.system.files import check_regular, hash_of_file, hash_of_folder, write_safely


def test_hashes_equal_those_in_earlier_manifests(tmp_path):
    (tmp_path / "source.json").write_bytes(b'{"kind": "words"}\n')
    (tmp_path / "b.model").write_bytes(bytes(range(256)))
    assert hash_of_file(tmp_path / "b.model") == "f1f8a93f50849ac39408a4433b952d71"
    assert hash_of_folder(tmp_path) == "61dc011f06346fc516a6e81918f6656d"


def test_a_folder_inside_does_not_count(tmp_path):
    (tmp_path / "source.json").write_bytes(b"{}")
    before = hash_of_folder(tmp_path)
    (tmp_path / ".ipynb_checkpoints").mkdir()  # Jupyter creates it next to a notebook that was opened
    assert hash_of_folder(tmp_path) == before


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space, or raise the quota"),
        (errno.EROFS, "choose a folder on a file system that can be written"),
        (errno.EACCES, "change the permissions, or choose a different path"),
        (errno.EFBIG, r"raise the limit \(`ulimit -f`\), or choose a file system that allows larger files"),
        (errno.EMFILE, r"raise the limit of open files \(`ulimit -n`\)"),
        (errno.ENOTSUP, "make sure that there is space and that you may write there"),
    ],
    ids=errno.errorcode.get,
)
def test_the_advice_fits_the_reason_why_a_file_cannot_be_written(tmp_path, number, advice):
    def fail(_):
        raise OSError(number, os.strerror(number))

    said = f"cannot write .*/a: {os.strerror(number)}; the previous file is kept: {advice}, and try again$"
    with pytest.raises(CheckpointError, match=said):
        write_safely(tmp_path / "a", fail)


@pytest.mark.parametrize(
    ("name", "advice"), [("a" * 300, "choose a shorter name"), ("file/a", "choose a different path")]
)
def test_a_name_that_no_file_can_have_is_to_be_changed(tmp_path, name, advice):
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match=f"; the previous file is kept: {advice}, and try again$"):
        write_safely(tmp_path / name, Path.touch)


def test_a_file_that_may_not_be_read_is_neither_damaged_nor_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    Path("a").touch(mode=0o000)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # the superuser may read every file
    try:
        with pytest.raises(CheckpointError, match=r"^cannot read a: Permission denied; change the permissions, or"):
            check_regular(Path("a"))
    finally:
        os.seteuid(user)
