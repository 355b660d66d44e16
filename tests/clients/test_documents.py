"""Documents before and after their translation, as translate-toolkit reads them."""

import base64
from codecs import BOM_UTF8
from pathlib import PurePath

import pytest

from documents.nasty import translated_files

pytestmark = [pytest.mark.client, pytest.mark.long]
READ = (".json", ".md", ".po", ".srt", ".txt", ".xlf")
"""Formats of nasty files that translate-toolkit reads; it refuses HTML with unclosed or crossed tags."""


def test_translate_toolkit_finds_as_many_units_with_the_same_places(ask, tmp_path):
    files = {name: both for name, both in translated_files(tmp_path).items() if PurePath(name).suffix in READ}
    data = [
        (name, base64.b64encode(one.removeprefix(BOM_UTF8)).decode()) for name, both in files.items() for one in both
    ]
    found = ask("toolkit", "translate_toolkit", files=data)
    assert len(files) == 150
    translated = 0
    for name, before, after in zip(files, found[::2], found[1::2], strict=True):
        assert len(before) == len(after), name
        for old, new in zip(before, after, strict=True):
            assert old["context"] == new["context"]
            if name.endswith((".po", ".xlf")):
                assert (old["source"], old["notes"]) == (new["source"], new["notes"]), name
                assert new["target"] == (old["target"] or new["target"])
                translated += bool(new["target"]) - bool(old["target"])
    assert translated > 50
