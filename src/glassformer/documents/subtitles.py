"""Subtitles in SubRip (.srt) and WebVTT (.vtt): the texts of cues."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from glassformer.documents.chunks import Chunk, Unit, unit_of
from glassformer.documents.plain_text import TextLine, blocks_of, lines_of, wrapped
from glassformer.errors import DataError, quoted

__all__ = ["srt_units", "vtt_units"]

_SRT_TIMES = re.compile(r"\s*-?\d+:\d+:\d+[,.]\d+\s*-->\s*-?\d+:\d+:\d+[,.]\d+(\s.*)?$")
_VTT_TIMES = re.compile(r"\s*(\d+:)?\d+:\d+\.\d+\s+-->\s+(\d+:)?\d+:\d+\.\d+(\s.*)?$")
_TAG = re.compile(r"<(?P<end>/)?(?P<name>[A-Za-z][\w]*)?[^<>]*>|\{\\[^{}]*\}|&[\w#]+;")
_COMMENTS = ("NOTE", "STYLE", "REGION")


def srt_units(document: str) -> list[Unit]:
    """Return the cues of a SubRip file.

    Raises:
        DataError: a cue has no times.
    """
    units: list[Unit] = []
    for block in blocks_of(lines_of(document)):
        has_number = block[0].text.strip().isdigit() and len(block) > 1
        times = block[1 if has_number else 0]
        if not _SRT_TIMES.match(times.text):
            raise DataError(_expected(times, "00:00:01,000 --> 00:00:02,000"))
        units += _cue(document, block[2 if has_number else 1 :], str)
    return units


def vtt_units(document: str) -> list[Unit]:
    """Return the cues of a WebVTT file.

    Raises:
        DataError: the first line does not begin with WEBVTT, or a cue has no times.
    """
    blocks = list(blocks_of(lines_of(document)))
    if not blocks or not re.match(r"WEBVTT(\s|$)", blocks[0][0].text):
        raise DataError("line 1: expected WEBVTT; add this line")
    units: list[Unit] = []
    for block in blocks[1:]:
        if block[0].text.split(maxsplit=1)[0].rstrip(":") in _COMMENTS:
            continue
        times = next((place for place, line in enumerate(block[:2]) if _VTT_TIMES.match(line.text)), None)
        if times is None:
            raise DataError(_expected(block[0], "00:01.000 --> 00:02.000"))
        units += _cue(document, block[times + 1 :], lambda text: html.escape(text, quote=False))
    return units


def _expected(line: TextLine, example: str) -> str:
    return f"line {line.number}: expected the times of a cue ({example}), got {quoted(line.text)}; correct the line"


def _cue(document: str, lines: Sequence[TextLine], escape: Callable[[str], str]) -> Iterator[Unit]:
    """Yield the unit of a cue; if each line has another speaker, yield one unit per line."""
    is_dialogue = len(lines) > 1 and all(line.text.lstrip().startswith(("-", "–", "—")) for line in lines)
    for part in [[line] for line in lines] if is_dialogue else [lines] if lines else []:
        chunks: list[Chunk] = []
        for line in part:
            chunks += [Chunk("text", " ", line.begin, line.begin)] if chunks else []
            chunks += _chunks(line, escape is not str)
        if is_dialogue:
            chunks = _without_dash(chunks)
        unit = unit_of(document, chunks, escape)
        if unit:
            yield _wrapping(unit, part)


def _wrapping(unit: Unit, lines: Sequence[TextLine]) -> Unit:
    width = max(len(_TAG.sub("", line.text).strip()) for line in lines)
    ending = lines[0].ending or "\n"
    return replace(unit, compose=lambda content, _: ending.join(wrapped(content, width, len(lines))))


def _without_dash(chunks: list[Chunk]) -> list[Chunk]:
    first = chunks[0]
    kept = first.text.lstrip().lstrip("-–—").lstrip() if first.role == "text" else first.text
    return [first._replace(text=kept, begin=first.begin + len(first.text) - len(kept)), *chunks[1:]]


def _chunks(line: TextLine, has_references: bool) -> Iterator[Chunk]:
    cursor = 0
    for found in _TAG.finditer(line.text):
        begin, end = line.begin + found.start(), line.begin + found.end()
        yield Chunk("text", line.text[cursor : found.start()], line.begin + cursor, begin)
        cursor = found.end()
        if found[0].startswith("&"):
            yield Chunk("text", html.unescape(found[0]) if has_references else found[0], begin, end)
        elif name := found["name"]:
            yield Chunk("close" if found["end"] else "open", found[0], begin, end, name)
        else:
            yield Chunk("point", found[0], begin, end)
    yield Chunk("text", line.text[cursor:], line.begin + cursor, line.end)
