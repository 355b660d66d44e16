"""Shared folders are made once, and are made again after their sources have changed."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import shared


def test_a_shared_folder_is_made_once(tmp_path):
    calls = []

    def make(folder):
        folder.mkdir()
        calls.append(folder)

    with ThreadPoolExecutor(4) as threads:
        folders = set(threads.map(lambda _: shared.made_once(tmp_path, "one", make), range(8)))
    assert folders == set(calls)
    assert len(calls) == 1


def make(folder):
    folder.mkdir()
    (folder / "made").touch()


def test_a_half_made_folder_is_made_again(tmp_path):
    folder = shared.made_once(tmp_path, "one", make)
    folder.with_name(f"{folder.name}.whole").unlink()
    (folder / "made").unlink()
    assert (shared.made_once(tmp_path, "one", make) / "made").exists()


def test_folders_of_different_sources_are_kept_for_a_day(tmp_path):
    (tmp_path / "other.py").write_text("another way to make it")
    assert shared.digest(tmp_path / "other.py") != shared.digest(Path(__file__))
    old, recent = (tmp_path / "one" / name for name in ("0123456789abcdef", "123456789abcdef0"))
    for place in (old, recent):
        place.mkdir(parents=True)
    os.utime(old, (0, 0))
    folder = shared.made_once(tmp_path, "one", make)
    assert {path.name for path in (tmp_path / "one").iterdir()} == {recent.name, folder.name, f"{folder.name}.whole"}
