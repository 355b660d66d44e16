"""Functions that read the texts, request bodies and documents of users.

All arguments and results can be pickled, because `readers` calls these functions in another process if there is much to
read.
"""

import gc
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

from glassformer.serving.refusals import RequestError
from glassformer.text.links import Span
from glassformer.text.splitting import parts_of, sentence_spans
from glassformer.translating.documents.document import Document, DocumentOptions
from glassformer.translating.documents.sentences import DocumentSentences
from glassformer.translating.markup.html_pages import html_units
from glassformer.translating.markup.marked import MarkedText
from glassformer.translating.markup.sentences import MarkedSentences
from glassformer.translating.markup.xml_texts import xml_units
from glassformer.translating.translation import Translation

__all__ = [
    "MOST_FIELDS",
    "SHORT_BODY",
    "SHORT_TEXT",
    "Markup",
    "decoded_form",
    "decoded_json",
    "document_sentences",
    "document_text",
    "field_of_form",
    "read_marked",
    "read_sentences",
    "rebuilt_document",
    "rebuilt_marked",
]

SHORT_BODY = 64_000
"""Number of bytes of a body that can be read within milliseconds, whatever the body contains."""
SHORT_TEXT = 2_000
"""Number of characters of texts that can be split within milliseconds, whatever the texts contain."""
LONG_SENTENCE = 600
"""Maximum number of characters of a sentence that is not cut at its clauses."""
MOST_VALUES = 20_000
"""Maximum number of values in a JSON body: numbers, texts, lists and objects."""
MOST_FIELDS = 2_000
"""Maximum number of fields of a form."""
LONGEST_KEY = 1_000
"""Maximum number of bytes of a field that are read to check a key."""
LONGEST_ESCAPE = 3
"""Maximum number of bytes with which a form encodes one byte, as in %41."""
LARGEST_DOCUMENT = 50_000
"""Maximum number of sentences of a document."""


def decoded_json(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body.

    Raises:
        RequestError: the body is not a JSON object, or has too many values.
    """
    # With garbage collection, which would traverse all values repeatedly, reading would take three times as long.
    gc.disable()
    try:
        text = body.decode(json.detect_encoding(body), "surrogatepass")
        _check_values(text)
        found = _JSON.decode(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, "Invalid JSON format") from error
    finally:
        gc.enable()
    if not isinstance(found, dict):
        raise RequestError(400, "Invalid JSON format")
    return found


def _number(text: str) -> float | int:
    """Return a number; 3.0 becomes the integer 3, because JSON does not distinguish the two."""
    number = float(text)
    return int(number) if number.is_integer() else number


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse, parse_float=_number)
"""A single decoder, because `json.loads` would create a new one for each request."""


def _check_values(text: str) -> None:
    """Check the number of values before they are read, because reading a million values takes a second."""
    if _marks(text) <= MOST_VALUES:  # a quick upper bound, because it also counts marks inside texts
        return
    quoted = text.replace("\\\\", "").replace('\\"', "")  # the remaining quotes are those around texts
    # each value has at most four quotes: two of its own and two of its name
    has_too_many = quoted.count('"') > 4 * (MOST_VALUES + 1)
    if has_too_many or _marks("".join(quoted.split('"')[::2])) > MOST_VALUES + 1:
        raise RequestError(400, f"Invalid request: expected at most {MOST_VALUES} values")


def _marks(text: str) -> int:
    """Return the number of the marks `,`, `[` and `{`, or, if there are too many, a number above the limit.

    Each value has one such mark before it; one more mark belongs to the whole object.
    """
    count = 0
    for begin in range(0, len(text), SHORT_BODY):
        count += sum(map(text[begin : begin + SHORT_BODY].count, ",[{"))
        if count > MOST_VALUES + 1:
            break
    return count


def decoded_form(body: bytes) -> list[tuple[str, str]]:
    """Return the fields of a form (application/x-www-form-urlencoded), in order.

    Characters that are not escaped, as `curl -d` sends them, are read as UTF-8.

    Raises:
        RequestError: the form has too many fields.
    """
    try:
        return parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, errors="replace", max_num_fields=MOST_FIELDS
        )
    except ValueError as error:
        raise _too_many_fields() from error


def field_of_form(body: bytes, name: str) -> str | None:
    """Return the first value of a field as `decoded_form` would read it; None if the form has no such field.

    Other fields are skipped, because reading millions of escaped characters takes a second. Of a long value, only the
    beginning is returned.

    Raises:
        RequestError: the form has too many fields.
    """
    if body.count(b"&") >= MOST_FIELDS:
        raise _too_many_fields()
    for field in body.split(b"&"):
        written, _, value = field.partition(b"=")
        if len(written) <= LONGEST_ESCAPE * len(name) and _unescaped(written) == name:
            return _unescaped(value[:LONGEST_KEY])
    return None


def _unescaped(written: bytes) -> str:
    return unquote_plus(written.decode("utf-8", "replace"), errors="replace")


def _too_many_fields() -> RequestError:
    return RequestError(400, f"Invalid request: expected at most {MOST_FIELDS} fields")


def read_sentences(texts: Sequence[str], language: str | None, most: int) -> list[list[Span]] | None:
    """Return the spans of the sentences of each text, or None if there are more than `most` sentences.

    Without a language, each line is one sentence. With a language, long sentences are cut at the ends of clauses.
    """
    found, count = list[list[Span]](), 0
    for text in texts:
        spans = list[Span]()
        for sentence in sentence_spans(text, language):
            parts = [sentence] if language is None else parts_of(text, sentence, LONG_SENTENCE)
            spans += parts
            count += len(parts)
            if count > most:
                return None
        found.append(spans)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """How texts with tags are read."""

    is_xml: bool = False
    outline: bool = True
    """Whether the outline of an XML text shows where sentences end."""
    ignored: tuple[str, ...] = ()
    """Names of elements that are not translated."""
    splitting: tuple[str, ...] = ()
    """Names of additional elements at which a sentence ends."""
    joining: tuple[str, ...] = ()
    """Names of elements at which no sentence ends."""

    def sentences(self, text: str, language: str, *, split: bool) -> MarkedSentences:
        """Return the sentences of a text; without `split`, sentences end only at elements."""
        names = {"ignored": self.ignored, "splitting": self.splitting, "joining": self.joining}
        if self.is_xml:
            units = xml_units(text, language, outline=self.outline, **names)
        else:
            units = html_units(text, language, **names)
        return MarkedSentences(MarkedText(text=text, units=tuple(units)), language if split else None)


def read_marked(
    texts: Sequence[str], markup: Markup, language: str, split: bool, most: int
) -> tuple[list[list[str]], bool] | None:
    """Return the sentences of each text, and whether any of them has tags; None if there are more than `most`.

    Raises:
        DataError: the elements of a text are nested too deeply.
    """
    found, has_tags, count = list[list[str]](), False, 0
    for text in texts:
        sentences = markup.sentences(text, language, split=split)
        found.append(sentences.wanted)
        has_tags, count = has_tags or sentences.has_tags, count + len(found[-1])
        if count > most:
            return None
    return found, has_tags


def rebuilt_marked(
    texts: Sequence[str],
    markup: Markup,
    language: str,
    split: bool,
    renderings: Sequence[Sequence[Sequence[Translation]]],
) -> list[list[str]]:
    """Return, for each text, one version per rendering: the text with the rendering's translations as its sentences."""
    found = list[list[str]]()
    for text, several in zip(texts, renderings, strict=True):
        sentences = markup.sentences(text, language, split=split)
        found.append([sentences.rebuilt(one)[0] for one in several])
    return found


def document_text(name: str, data: bytes, options: DocumentOptions, characters: int) -> str:
    """Return the first `characters` characters of a document's text.

    Raises:
        DataError: the document cannot be read.
    """
    text = ""
    for unit in Document.read(name, data, options).content.units:
        text += "\n".join(chunk.text for chunk in unit.chunks if chunk.role == "text") + "\n"
        if len(text) >= characters:
            break
    return text[:characters]


def document_sentences(name: str, data: bytes, options: DocumentOptions, language: str) -> tuple[list[str], bool]:
    """Return the sentences of a document, and whether any sentence has tags.

    Raises:
        DataError: the document cannot be read.
        RequestError: the document has too many sentences.
    """
    sentences = DocumentSentences(Document.read(name, data, options), language)
    wanted = sentences.wanted
    if len(wanted) > LARGEST_DOCUMENT:
        raise RequestError(
            400, f"{name}: expected at most {LARGEST_DOCUMENT} sentences, got {len(wanted)}; divide the document"
        )
    return wanted, sentences.has_tags


def rebuilt_document(
    name: str, data: bytes, options: DocumentOptions, language: str, found: Sequence[Translation]
) -> bytes:
    """Return a document with translations in place of its sentences.

    The document is read again, so that nothing has to be kept in memory until then.

    Raises:
        DataError: the encoding of the document lacks a character of a translation.
    """
    translated, _ = DocumentSentences(Document.read(name, data, options), language).rebuilt(found)
    return translated
