"""Documents: untranslated parts stay the same byte for byte, and translated parts stay valid."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import DataError
from glassformer.translating.documents.document import Document, DocumentOptions
from glassformer.translating.documents.sentences import DocumentSentences
from glassformer.translating.translation import Status, Translation
from profiles import scaled
from translating.documents.nasty import CHUNKS


def rendered(text: str, status: Status = "ok") -> Translation:
    """Return a translation object for a sentence, as from a translator."""
    return Translation(text=text, status=status)


def sentences(name: str, data: bytes) -> DocumentSentences:
    return DocumentSentences(Document.read(name, data), "en")


def unchanged(name: str, data: bytes) -> bytes:
    document = sentences(name, data)
    return document.rebuilt([rendered(text) for text in document.wanted])[0]


def in_capitals(name: str, data: bytes) -> bytes:
    document = sentences(name, data)
    return document.rebuilt([rendered(text.upper()) for text in document.wanted])[0]


ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])


@pytest.mark.parametrize("suffix", CHUNKS)
@given(data=st.data())
@scaled(40)
def test_an_engine_that_changes_nothing_gives_the_same_bytes(suffix, data):
    lines = data.draw(st.lists(st.tuples(st.sampled_from(CHUNKS[suffix]), ENDS), max_size=12))
    text = data.draw(st.sampled_from(["", "\ufeff"])) + "".join(line + end for line, end in lines)
    whole = text.removesuffix("\n").encode() if data.draw(st.booleans()) else text.encode()
    assert unchanged("a" + suffix, whole) == whole
    in_capitals("a" + suffix, whole)  # files of these kinds can always be translated


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
        == """<!doctype html><p title="A B">ONE <b>TWO <i>THREE</i></b> FÔUR
 FIVE <code>x()</code> SIX<br>Y.</p><script>var a = "<p>no"</script><p>A <span translate="no">keep</span> B</p>"""
    )
    assert _Structure(changed).tags == _Structure(page).tags


@pytest.mark.parametrize(
    "rest", ["<!-- two <p>three</p>", "<a href='two>three</a>", "<td", "<b " * 20_000, "<!--" * 20_000]
)
def test_what_has_no_end_stays(rest):
    """If the reader searched for an end after each of many beginnings, it would take minutes."""
    assert in_capitals("a.html", f"<p>one &amp; {rest}".encode()) == f"<p>ONE &amp; {rest}".encode()


def test_attributes_within_a_text_are_translated_with_it():
    changed = in_capitals("a.html", b"<p>see <img src=x alt='my cat'> and <a title=home href=y>go</a> on</p>")
    assert changed == b"""<p>SEE <img src=x alt='MY CAT'> AND <a title=HOME href=y>GO</a> ON</p>"""


def test_a_sentence_without_a_translation_stays_and_is_reported():
    document = sentences("a.txt", b"\nOne. Two.\n")
    data, report = document.rebuilt([rendered("UN."), rendered("", "too_long")])
    assert data == b"\nUN. Two.\n"
    assert (report.units, report.doubts) == (1, ((2, "too_long"),))


@pytest.mark.slow
def test_a_unit_with_too_many_characters_stays_and_is_reported():
    data = b"<p>one</p>\n<p>" + b"<b>two</b> " * 30_000 + b"</p>\n<p>three</p>"
    document = sentences("a.html", data)
    assert document.wanted == ["one", "three"]
    written, report = document.rebuilt([rendered("UN"), rendered("TROIS")])
    assert written == data.replace(b"one", b"UN").replace(b"three", b"TROIS")
    assert (report.units, report.doubts) == (3, ((2, "too_long"),))


def test_a_unit_whose_placeholders_cannot_be_kept_in_order_stays_and_is_reported():
    data = b"<p>one</p>\n<p>%d cats <i title='%s'>here</i></p>"
    document = sentences("a.html", data)
    written, report = document.rebuilt([rendered("UN"), rendered("ICI %d"), rendered("%s")])
    assert document.wanted == ["one", "%d cats here", "%s"]
    assert written == data.replace(b"one", b"UN")
    assert report.doubts == ((2, "lost"),)


def test_a_paragraph_is_wrapped_to_its_own_width():
    document = sentences("a.txt", b"  One two\r\n  three four\r\n\r\nfive\r\n")
    data, _ = document.rebuilt([rendered("eins zwei drei vier und viel-länger"), rendered("fünf und mehr")])
    lines = ["  eins zwei", "  drei vier", "  und", "  viel-länger", "", "fünf und mehr", ""]
    assert data.decode() == "\r\n".join(lines)


def test_no_line_ends_inside_a_protected_span():
    text = "See {{ user.name }} now.\nIt has 1 000 000 cats."
    written = sentences("a.txt", text.encode())
    [one, two] = written.wanted
    found = written.rebuilt([rendered(f"A big cat. {one}"), rendered(two)])[0].decode()
    assert found == "A big cat. See\n{{ user.name }} now. It\nhas 1 000 000 cats."


def test_lines_are_sentences_if_asked():
    assert sentences("a.txt", b"one\ntwo. three\n").wanted == ["one two.", "three"]
    document = DocumentSentences(Document.read("a.txt", b"one\ntwo. three\n", DocumentOptions(lines=True)), "en")
    assert document.wanted == ["one", "two. three"]


@pytest.mark.parametrize(
    ("name", "data", "place"),
    [
        ("a.doc", b"", "a.doc: expected the suffix"),
        ("a.txt", b"ok\n\xff", "a.txt, line 2: expected utf-8"),
        *(
            ("a.html", f'<meta charset="{name}">\xff'.encode("latin-1"), "a.html: expected a known encoding, got ")
            for name in (
                "martian",
                "idna",
                "undefined",
                "punycode",
                "hex",
                "rot13",
                "unicode_escape",
                "\xff",
                "a" * 3000,
            )
        ),
        ("a.html", b"\n" + b"<b>a" * 101 + b"</b>" * 101, "a.html, line 2: expected at most 100 nested elements"),
    ],
)
def test_a_damaged_file_is_refused_by_its_place(name, data, place):
    with pytest.raises(DataError, match=re.escape(place)) as error:
        Document.read(name, data)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250


@pytest.mark.parametrize("comment", ["<![<>", "<![>", "<![CDATA[x>", "<![if !IE]>", "<![endif]-->"])
def test_a_marked_section_is_a_comment_as_in_browsers(comment):
    data = f"<p>one{comment}two</p>{comment}<p>three".encode()
    assert in_capitals("a.html", data) == f"<p>ONE{comment}TWO</p>{comment}<p>THREE".encode()


@pytest.mark.parametrize("end", ["<![<", "<![", "<![CDATA[x", "<!", "<!-", "<?", "</", "<", "&", "&#"])
def test_an_end_in_the_middle_of_a_mark_is_read(end):
    data = f"<p>one</p>{end}".encode()
    assert Document.read("a.html", data).content.rebuilt({}).encode() == data
    assert Document.read("a.txt", data).content.rebuilt({}).encode() == data
