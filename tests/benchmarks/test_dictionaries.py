"""The files of `benchmarks.dictionaries` have the second dictionary's pronunciations; no word of DEV is in TRAIN."""

import sys

import pytest
from benchmarks.command import as_command

from benchmarks import dictionaries


def run(folder, monkeypatch, train="dog\tD O\ncat\tC\n", dev="cats\tC S\nemu\tE\n"):
    """Write the three dictionaries, and run the command on them."""
    files = {"train": train, "dev": dev, "second": "cats\tk s\ncats\tk z\ndog\td g\ndog\td o g\n"}
    for name, text in files.items():
        (folder / f"{name}.tsv").write_text(text)
    options = [word for name in files for word in (f"--{name}", str(folder / f"{name}.tsv"))]
    monkeypatch.setattr(sys, "argv", ["dictionaries", *options, "--output", str(folder / "out")])
    as_command(dictionaries.main)


def test_training_has_all_second_pronunciations_and_dev_the_first(tmp_path, monkeypatch):
    run(tmp_path, monkeypatch)
    found = {path.stem: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert found == {
        "train": "dog\tD O\ncat\tC\ndog | d g\tD O\ndog | d o g\tD O\n",
        "dev": "cats | k s\tC S\nemu\tE\n",
        "inside": "cats | k s\tC S\n",
        "outside": "emu\tE\n",
    }


def test_a_word_of_dev_in_training_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(
        SystemExit, match=r"error: .*dev\.tsv: expected words that are not in .*train\.tsv, got \['dog'\]"
    ):
        run(tmp_path, monkeypatch, dev="dog\tD O\n")
    assert not (tmp_path / "out").exists()
