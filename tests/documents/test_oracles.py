"""Nasty documents before and after their translation, as libxml2, a browser and mistune read them.

`tests/clients/test_documents.py` asks translate-toolkit.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import mistune
import pytest
from lxml import etree

from documents.nasty import nasty_files, translated_files
from glassformer.documents.document import Document
from glassformer.documents.sentences import DocumentSentences
from glassformer.translating.translation import Translation

Files = dict[str, tuple[bytes, bytes]]
"""Each file before and after its translation, by its name."""


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return translated_files(tmp_path_factory.mktemp("random"))


def of_kind(files: Files, suffix: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name and both texts of the files of a format, without byte order marks."""
    for name, both in files.items():
        if name.endswith(suffix):
            yield name, *(data.decode("utf-8-sig") for data in both)


def test_200_files_come_back_byte_for_byte_from_an_engine_that_changes_nothing():
    files = dict(nasty_files(200))
    assert len({*files.values()}) == 200
    for name, data in files.items():
        document = DocumentSentences(Document.read(name, data), "en")
        assert document.rebuilt([Translation(text=text) for text in document.wanted])[0] == data


def test_each_unit_is_one_unit_again(translated):
    """Units of .po and .xlf files are those without a translation, so their oracles count them."""
    for name, both in translated.items():
        before, after = (Document.read(name, data).units for data in both)
        assert len(after) == (0 if name.endswith((".po", ".xlf")) else len(before)), name


def elements(tree: etree._Element) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return the names and attributes of all elements, but for the states of translations."""
    return [
        (one.tag, tuple((name, value) for name, value in one.attrib.items() if name != "state"))
        for one in tree.iter(etree.Element)
    ]


def test_libxml2_reads_the_same_units_with_the_same_codes(translated):
    """The library of xmllint. A target has the codes of its source; all else is as before."""
    for name, before, after in of_kind(translated, ".xlf"):
        units = [list(etree.fromstring(text.encode()).iter("trans-unit")) for text in (before, after)]
        assert len(units[0]) == len(units[1]), name
        for old, new in zip(*units, strict=True):
            source, target = new.find("source"), new.find("target")
            assert etree.tostring(source, with_tail=False) == etree.tostring(old.find("source"), with_tail=False)
            if (old.findtext("target") or "").strip() or old.get("translate") == "no":
                assert etree.tostring(old, with_tail=False) == etree.tostring(new, with_tail=False)
            else:
                assert "a" in "".join(target.itertext())
                assert Counter(elements(source)[1:]) == Counter(elements(target)[1:])


def shape(value: Any) -> Any:
    """Return a JSON value without its texts."""
    if isinstance(value, dict):
        return [(key, shape(one)) for key, one in value.items()]
    return [shape(one) for one in value] if isinstance(value, list) else "" if isinstance(value, str) else value


def test_messages_have_the_same_keys_in_the_same_order(translated):
    for name, before, after in of_kind(translated, ".json"):
        assert shape(json.loads(before)) == shape(json.loads(after)), name
        assert json.loads(before).get("nested", {}).get("@note") == json.loads(after).get("nested", {}).get("@note")


def test_subtitles_have_the_same_times_and_blocks(translated):
    for suffix in (".srt", ".vtt"):
        for name, before, after in of_kind(translated, suffix):
            kept = [[line for line in text.splitlines() if "-->" in line] for text in (before, after)]
            assert kept[0] == kept[1], name


def blocks(nodes: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield the kinds of the blocks of a Markdown file in order, and what of their content is no text."""
    for node in nodes:
        kind, attributes = node["type"], node.get("attrs", {})
        if kind in ("codespan", "block_code", "block_html", "inline_html"):
            yield kind, node["raw"]
        elif kind in ("link", "image"):
            yield kind, attributes["url"]
        elif kind not in ("text", "softbreak", "blank_line"):
            yield (kind,)
        yield from blocks(node.get("children", ()))


def test_mistune_reads_the_same_blocks_and_marks(translated):
    """Emphasis is dropped if no word belongs to it, because Markdown cannot write emphasis of nothing."""
    read = mistune.create_markdown(renderer=None, plugins=["table", "strikethrough"])
    for name, *both in of_kind(translated, ".md"):
        before, after = (Counter(blocks(read(text))) for text in both)
        assert {kind for kind, *_ in before - after} <= {"emphasis", "strong", "strikethrough"}, name
        assert not after - before, name


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
    """Without <b> and <i>, which some pages do not close, so that a browser repeats them in each block that follows."""
    for name, *both in of_kind(translated, ".html"):
        found = page.evaluate(ELEMENTS, both)
        assert Counter(map(json.dumps, found[0])) == Counter(map(json.dumps, found[1])), name
