"""Documents: what is not translated stays byte for byte, and what is translated stays valid."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.nasty import CHUNKS, CUE, CUES, ENTRIES, HEADER, VTT, XLIFF, xliff
from glassformer.documents.document import Document, DocumentOptions
from glassformer.documents.sentences import DocumentSentences
from glassformer.errors import DataError
from glassformer.translating.translation import Status, Translation
from profiles import scaled


def rendered(text: str, status: Status = "ok") -> Translation:
    """Return what a translator gives for a sentence."""
    return Translation(text=text, status=status)


def sentences(name: str, data: bytes, **options: bool) -> DocumentSentences:
    return DocumentSentences(Document.read(name, data, DocumentOptions(**options)), "en")


def unchanged(name: str, data: bytes) -> bytes:
    document = sentences(name, data)
    return document.rebuilt([rendered(text) for text in document.wanted])[0]


def in_capitals(name: str, data: bytes, status: Status = "ok", **options: bool) -> bytes:
    document = sentences(name, data, **options)
    return document.rebuilt([rendered(text.upper(), status) for text in document.wanted])[0]


def test_a_rule_at_the_head_is_not_front_matter():
    """A pattern that can read CR LF in two ways would take years for these lines."""
    data = b"---\r\n" + b"one *two*\r\n" * 100
    assert unchanged("a.md", data) == data
    assert in_capitals("a.md", data).startswith(b"---\r\nONE *TWO*")


ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])


@pytest.mark.parametrize("suffix", CHUNKS)
@given(data=st.data())
@scaled(40)
def test_an_engine_that_changes_nothing_gives_the_same_bytes(suffix, data):
    lines = data.draw(st.lists(st.tuples(st.sampled_from(CHUNKS[suffix]), ENDS), max_size=12))
    front = data.draw(st.sampled_from(["", "---\ntitle: x\n---\n", "\ufeff"]))
    text = front + "".join(line + end for line, end in lines)
    whole = text.removesuffix("\n").encode() if data.draw(st.booleans()) else text.encode()
    assert unchanged("a" + suffix, whole) == whole
    in_capitals("a" + suffix, whole)  # any file of these kinds can be translated


NESTED = st.recursive(
    st.text(max_size=9) | st.integers() | st.booleans() | st.none() | st.sampled_from(["Hi {{name}}", "\ud83d", "$x$"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a_one", "a_other", "@a", "message", "é"]), inner, max_size=3)
    ),
)
FILES = {
    ".srt": st.lists(st.sampled_from(CUES), max_size=6).map(
        lambda texts: "".join(CUE.format(n=n, text=text) for n, text in enumerate(texts))
    ),
    ".vtt": st.lists(st.sampled_from(VTT), max_size=6).map(lambda blocks: "WEBVTT - x\n\n" + "".join(blocks)),
    ".po": st.permutations(ENTRIES).map(lambda entries: HEADER.format(n=3, p="(n!=1)") + "".join(entries)),
    ".xlf": st.lists(st.sampled_from(XLIFF), max_size=6).map(xliff),
    ".json": st.tuples(NESTED, st.sampled_from([None, 1, "\t"]), st.booleans()).map(
        lambda one: json.dumps(one[0], indent=one[1], ensure_ascii=one[2] or "\\ud" in json.dumps(one[0]))
    ),
}


@pytest.mark.parametrize("suffix", FILES)
@given(data=st.data())
@scaled(30)
def test_structured_files_stay_byte_for_byte(suffix, data):
    text = data.draw(FILES[suffix])
    ending, mark = data.draw(st.sampled_from(["\n", "\r\n"])), data.draw(st.sampled_from(["", "\ufeff"]))
    whole = (mark + text.replace("\n", ending).removesuffix(data.draw(st.sampled_from(["", ending])))).encode()
    assert unchanged("a" + suffix, whole) == whole
    changed = in_capitals("a" + suffix, whole)
    if suffix == ".json":
        again = sentences("a.json", changed)
        assert len(again.document.units) == len(sentences("a.json", whole).document.units)
    if suffix == ".xlf":
        before, after = (ElementTree.fromstring(one.decode().lstrip("\ufeff")) for one in (whole, changed))
        assert [one.tag for one in before.iter("source")] == [one.tag for one in after.iter("source")]
        assert len(list(after.iter("target"))) == len(list(after.iter("trans-unit"))) - text.count('"no"')


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_byte_order_mark_stays(encoding):
    data = "Eins é.\r\n".encode(encoding)
    assert unchanged("a.txt", data) == data
    assert in_capitals("a.txt", data) == "EINS É.\r\n".encode(encoding)


def test_a_declared_encoding_is_kept_and_what_it_lacks_becomes_a_reference():
    data = '<meta charset="iso-8859-1"><p>caf\xe9</p>'.encode("latin-1")
    assert in_capitals("a.html", data) == '<meta charset="iso-8859-1"><p>CAF\xc9</p>'.encode("latin-1")
    document = sentences("a.html", data)
    assert b"<p>&#26085;</p>" in document.rebuilt([rendered("日")])[0]


TAGS = re.compile(r"<[^>]+>")


class _Structure(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        self.tags.append(f"/{tag}")


def test_a_page_keeps_its_structure_and_all_that_is_no_text():
    page = """<!doctype html><p title="a b">One <b>two <i>three</i></b> f&ocirc;ur
 five <code>x()</code> six<br>y.</p><script>var a = "<p>no"</script><p>a <span translate="no">keep</span> b</p>"""
    changed = in_capitals("a.html", page.encode()).decode()
    assert (
        changed
        == """<!doctype html><p title="A B">ONE <b>TWO <i>THREE</i></b> FÔUR\
 FIVE <code>x()</code> SIX<br>Y.</p><script>var a = "<p>no"</script><p>A <span translate="no">keep</span> B</p>"""
    )
    assert _Structure(changed).tags == _Structure(page).tags


@pytest.mark.parametrize(
    "rest", ["<!-- two <p>three</p>", "<a href='two>three</a>", "<td", "<b " * 20_000, "<!--" * 20_000]
)
def test_what_has_no_end_stays(rest):
    """Reading on behind each of many beginnings would take minutes."""
    assert in_capitals("a.html", f"<p>one &amp; {rest}".encode()) == f"<p>ONE &amp; {rest}".encode()


def test_attributes_within_a_text_are_translated_with_it():
    changed = in_capitals("a.html", b"<p>see <img src=x alt='my cat'> and <a title=home href=y>go</a> on</p>")
    assert changed == b"""<p>SEE <img src=x alt='MY CAT'> AND <a title="HOME" href=y>GO</a> ON</p>"""


def test_markdown_keeps_code_addresses_tables_and_quotes():
    text = "# The *head* #\n\n> para **bold `code`** and\n> [link](http://a.b 't') end\n\n"
    text += "| a | b \\| c |\n|---|---|\n| `x\\|y` z | w |\n"
    assert in_capitals("a.md", text.encode()).decode() == (
        "# THE *HEAD* #\n\n> PARA **BOLD `code`** AND [LINK](http://a.b 't') END\n\n"
        "| A | B \\| C |\n|---|---|\n| `x\\|y` Z | W |\n"
    )


def test_a_translation_does_not_become_markdown():
    document = sentences("a.md", b"one\n\ntwo\n\nthree\n")
    found = ["- *x* <b>", "1. `y`", "# [z](q)"]
    data, _ = document.rebuilt(list(map(rendered, found)))
    units = Document.read("a.md", data).units
    assert ["".join(chunk.text for chunk in unit.chunks) for unit in units] == found
    assert {chunk.role for unit in units for chunk in unit.chunks} == {"text"}


def test_subtitles_are_wrapped_to_the_lines_they_had():
    cue = "1\n00:00:01,000 --> 00:00:02,000\nThe <i>cat sat on\nthe rug</i> today\n\n"
    cue += "2\n00:00:03,000 --> 00:00:04,000\n- Hi\n- Yo\n"
    document = sentences("a.srt", cue.encode())
    found = [rendered("le chat était assis sur le tapis aujourd'hui"), rendered("salut"), rendered("toi")]
    lines = document.rebuilt(found)[0].decode().split("\n")
    assert lines[:2] == cue.split("\n")[:2]
    assert lines.index("") == 4
    assert lines[5:] == ["2", "00:00:03,000 --> 00:00:04,000", "- salut", "- toi", ""]


@pytest.mark.parametrize(("forms", "plural"), [(1, "0"), (2, "(n!=1)"), (3, "(n>2 ? 2 : n==1)")])
def test_plural_forms_are_as_many_as_the_header_says(forms, plural, tmp_path):
    text = HEADER.format(n=forms, p=plural) + ENTRIES[0].replace('msgstr[1] ""\n' if forms == 1 else "~", "")
    changed = in_capitals("a.po", (text + ENTRIES[3] + "\n" + ENTRIES[4]).encode())
    assert len(re.findall(rb'^msgstr\[\d\] ".*%d.*"$', changed, flags=re.MULTILINE)) == forms
    if shutil.which("msgfmt"):
        (tmp_path / "a.po").write_bytes(changed)
        subprocess.run(["msgfmt", "-c", "-o", "/dev/null", tmp_path / "a.po"], check=True, capture_output=True)


def test_a_translated_entry_stays_unless_it_is_asked_for_again():
    text = (HEADER.format(n=2, p="0") + ENTRIES[2]).encode()
    assert in_capitals("a.po", text) == text
    assert b'msgstr "NOW {x}"' in in_capitals("a.po", text, again=True)


def test_a_suspicious_translation_is_flagged():
    text = HEADER.format(n=2, p="0") + ENTRIES[3] + "\n" + ENTRIES[0]
    flagged = in_capitals("a.po", text.encode(), "suspicious").decode()
    assert '#, fuzzy\nmsgctxt "menu"' in flagged
    assert "#, c-format, fuzzy\n" in flagged
    assert 'state="needs-review-translation"' in in_capitals("a.xlf", xliff(XLIFF[:1]).encode(), "suspicious").decode()


def test_a_sentence_without_a_translation_stays_and_is_reported():
    document = sentences("a.txt", b"\nOne. Two.\n")
    data, report = document.rebuilt([rendered("UN."), rendered("", "too_long")])
    assert data == b"\nUN. Two.\n"
    assert (report.units, report.doubts) == (1, ((2, "too_long"),))


def test_xliff_2_gets_targets_and_states():
    text = '<xliff version="2.0"><file><unit><segment state="initial">'
    text += '<source>Hi <pc id="1">you</pc></source></segment></unit></file></xliff>'
    assert in_capitals("a.xlf", text.encode()).decode() == text.replace("initial", "translated").replace(
        "</source>", '</source><target>HI <pc id="1">YOU</pc></target>'
    )


def test_messages_of_chrome_and_flutter():
    chrome = b'{"a": {"message": "hi $x$ you", "description": "no", "placeholders": {"x": {"content": "$1"}}}}'
    assert in_capitals("a.json", chrome) == chrome.replace(b"hi $x$ you", b"HI $x$ YOU")
    arb = b'{"@@locale": "en", "t": "a {n, plural, one {x}} b", "@t": {"description": "no"}}'
    assert in_capitals("a.json", arb) == arb.replace(b"a {n, plural, one {x}} b", b"A {n, plural, one {x}} B")


def test_lines_are_sentences_if_asked():
    assert sentences("a.txt", b"one\ntwo. three\n").wanted == ["one two.", "three"]
    document = DocumentSentences(
        Document.read("a.txt", b"one\ntwo. three\n", DocumentOptions(lines=True)), "en", lines=True
    )
    assert document.wanted == ["one", "two. three"]


@pytest.mark.parametrize(
    ("name", "data", "place"),
    [
        ("a.doc", b"", "a.doc: expected a file of the kinds"),
        ("a.txt", b"ok\n\xff", "a.txt, line 2: expected utf-8"),
        ("a.json", b'{\n"a": }', "a.json, line 2, column 6: expected JSON"),
        ("a.json", b"[" * 100_000, "a.json, line 1: expected JSON"),
        ("a.po", b'msgid "a"\nmsgstr "b\n', "a.po, line 2: expected"),
        ("a.po", b'msgid "a"\nmsgid "b"\n', "a.po, line 2: expected one msgid"),
        ("a.po", b'"a"\n', "a.po, line 1: expected a keyword"),
        ("a.srt", b"1\nHello\n", "a.srt, line 2: expected the times"),
        ("a.vtt", b"1\nHello\n", "a.vtt, line 1: expected WEBVTT"),
        ("a.xlf", b"<xliff>\n<a></xliff>", "a.xlf, line 2: expected XML"),
        ("a.xlf", b'<!DOCTYPE x [<!ENTITY a "b">]><xliff/>', "a.xlf, line 1: expected no document type"),
        ("a.xlf", b"<xliff>" + b"<a>" * 1000, "a.xlf, line 1: expected at most 200 nested"),
        ("a.xlf", b"<html/>", "a.xlf, line 1: expected an element xliff"),
        ("a.html", b"\n<p>a" + b"<br>b" * 501, "a.html, line 2: expected at most 500 tags in a paragraph, got 501"),
        ("a.html", b'<meta charset="martian">\xff', "a.html: expected a known encoding"),
    ],
)
def test_a_damaged_file_is_refused_by_its_place(name, data, place):
    with pytest.raises(DataError, match=re.escape(place)) as error:
        Document.read(name, data)
    assert "\n" not in str(error.value)
