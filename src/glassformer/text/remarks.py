"""What the corpus doctor remarks on a corpus: for each thing a key, a sentence for people, and data for JSON."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from glassformer.text.examination import Finding
from glassformer.text.shift import Shift

__all__ = [
    "Remark",
    "kept_remark",
    "leakage_remark",
    "marks_remark",
    "normalisation_remark",
    "separators_remark",
    "shift_remark",
    "where_they_part",
]

Remark = tuple[tuple[str, str], str, Any]
"""A key and its part (or ""), a sentence, and data."""

Number = Callable[[int], int]
"""Gives the line, from 1, of a pair, from 0."""

_KEPT = {
    "copy": ("copies", "copies: in {} the target is the source"),
    "duplicate": ("duplicates", "duplicates: {} occurred before"),
    "control_characters": ("control_characters", "control characters are in {}"),
}


def shift_remark(shifts: Sequence[Shift], number: Number) -> Remark:
    """Return that the sides seem to have shifted."""
    data = [
        {"line": number(one.start), "by": one.by, "until": None if one.end is None else number(one.end) - 1}
        for one in shifts
    ]
    first = data[0]
    more = f", and {len(data) - 1} more such places" if len(data) > 1 else ""
    until = f"to line {first['until']}" if first["until"] else "on"
    return (
        ("shift", ""),
        f"suspected shift of the alignment: from line {first['line']} {until}, line n of the source seems to belong "
        f"to line n {_signed(first['by'])} of the target{more}",
        {**first, "all": data} if more else first,
    )


def where_they_part(shifts: Sequence[Shift], number: Number) -> str:
    """Return the end of a message on sides of unequal length: where they seem to run apart, if that is known."""
    lasting = [shift for shift in shifts if shift.end is None] or list(shifts)
    if not lasting:
        return ""
    first = next(shift for shift in shifts if shift.end is None or shift is lasting[0])
    return (
        f". They seem to run apart at line {number(first.start)}: from there on, line n of the source fits line n "
        f"{_signed(first.by)} of the target"
    )


def _signed(by: int | None) -> str:
    return f"{'−' if (by or 0) < 0 else '+'} {abs(by or 0)}"


def leakage_remark(name: str, total: int, pairs: Finding, sources: Finding, treatment: str) -> Remark:
    """Return that training pairs are held out, too."""
    left_out = "left out" if treatment == "drop" else 'kept: cleaning.leakage = "drop" leaves them out'
    both = f"{_count(pairs, 'training pair')} of the {name} files{_such_as(pairs)} ({left_out})"
    alone = f"{_count(sources, 'training source')} of the {name} files with another target{_such_as(sources)}"
    parts = [text for text, finding in ((both, pairs), (alone, sources)) if finding.count]
    return (
        ("leakage", name),
        f"leakage: {'; '.join(parts)}. {name} has {total} pairs",
        {"pairs": pairs.count, "lines": [*pairs.lines], "sources": sources.count, "source_lines": [*sources.lines]},
    )


def kept_remark(reason: str, finding: Finding) -> Remark:
    """Return that there are pairs which could be left out for a reason, but are not."""
    key, sentence = _KEPT[reason]
    text = (
        f'{sentence.format(_count(finding, "pair"))}{_such_as(finding)} (kept: cleaning.{key} = "drop" leaves them out)'
    )
    return (key, ""), text, _data(finding)


def normalisation_remark(side: str, composed: int, decomposed: Finding) -> Remark:
    """Return that a side is written in both normal forms."""
    return (
        ("normalisation", side),
        f"mixed Unicode normalisation: of the {side} lines, {composed} have letters with accents as one character "
        f"(NFC) and {decomposed.count} as several (not NFC){_such_as(decomposed)}: the tokenizer sees two spellings "
        "unless it normalises",
        {"composed": composed, "decomposed": decomposed.count, "lines": [*decomposed.lines]},
    )


def marks_remark(files: Sequence[str], inner: Finding) -> Remark:
    """Return that there are byte order marks."""
    at_start = f"BOM (byte order mark) at the beginning of {', '.join(files)}: skipped" if files else ""
    within = f"BOM (U+FEFF) within {_count(inner, 'pair')}{_such_as(inner)}: kept as text" if inner.count else ""
    return ("byte_order_marks", ""), "; ".join(filter(None, [at_start, within])), {"files": [*files], **_data(inner)}


def separators_remark(by_name: Mapping[str, int], finding: Finding) -> Remark:
    """Return that lines have characters within them at which other programs end a line."""
    names = ", ".join(f"{count} × {name}" for name, count in sorted(by_name.items()))
    return (
        ("line_separators", ""),
        f"characters at which other programs end a line, within {_count(finding, 'pair')}{_such_as(finding)}: {names} "
        "(kept, read as white space)",
        {**_data(finding), "characters": dict(sorted(by_name.items()))},
    )


def _count(finding: Finding, what: str) -> str:
    return f"{finding.count} {what}{'' if finding.count == 1 else 's'}"


def _such_as(finding: Finding) -> str:
    lines = ", ".join(map(str, finding.lines[:3]))
    return f", such as line {lines}" if lines else ""


def _data(finding: Finding) -> dict[str, Any]:
    return {"count": finding.count, "lines": [*finding.lines]}
