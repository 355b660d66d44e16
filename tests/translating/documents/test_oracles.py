"""Nasty documents before and after their translation, as a browser reads them."""

import json
from collections import Counter

import pytest

from glassformer.translating.documents.document import Document
from glassformer.translating.documents.sentences import DocumentSentences
from glassformer.translating.translation import Translation
from translating.documents.nasty import nasty_files, translated_files

Files = dict[str, tuple[bytes, bytes]]
"""Each file before and after its translation, by its name."""


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return translated_files(tmp_path_factory.mktemp("random"))


def test_200_files_come_back_byte_for_byte_from_an_engine_that_changes_nothing():
    files = dict(nasty_files(200))
    assert len({*files.values()}) == 200
    for name, data in files.items():
        document = DocumentSentences(Document.read(name, data), "en")
        assert document.rebuilt([Translation(text=text) for text in document.wanted])[0] == data


def test_each_unit_is_one_unit_again(translated):
    for name, both in translated.items():
        before, after = (Document.read(name, data).content.units for data in both)
        assert len(after) == len(before), name


ELEMENTS = """(texts) => texts.map((text) => {
  const page = new DOMParser().parseFromString(text, "text/html");
  return [...page.querySelectorAll(":not(b, i)")].map((one) => [
    one.tagName,
    [...one.attributes].map(({ name, value }) => [name, /^(alt|title|placeholder)$/.test(name) ? "" : value]),
    /^(SCRIPT|STYLE|PRE|CODE|TEXTAREA)$/.test(one.tagName) || one.translate === false ? one.textContent : "",
  ]);
})"""


@pytest.mark.browser
def test_a_browser_finds_the_same_elements(translated, page):
    """<b> and <i> are left out: if a page does not close them, a browser repeats them in each block that follows."""
    for name, both in translated.items():
        if name.endswith(".html"):
            found = page.evaluate(ELEMENTS, [data.decode("utf-8-sig") for data in both])
            assert Counter(map(json.dumps, found[0])) == Counter(map(json.dumps, found[1])), name
