"""Measure many lines at once.

A block of lines is searched as an array of bytes. Single lines are examined only where the search found something.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xxhash

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SEPARATORS", "LineFacts", "Lines", "OddLines"]

LINE_FEED = ord("\n")

SEPARATORS = {"\v": "U+000B", "\f": "U+000C", "\r": "CR", "\x85": "U+0085", "\u2028": "U+2028", "\u2029": "U+2029"}
"""Characters at which other software ends a line; glassformer reads them as white space within the line."""

_SPACES = np.zeros(256, bool)
_SPACES[list(b" \t\v\f\r\x1c\x1d\x1e\x1f")] = True
# The first bytes of white space characters that have two or three bytes (U+0085, U+00A0, U+1680, U+2000, …). Other
# characters begin with the same bytes, so this is only a first filter.
_SPACES[[0xC2, 0xE1, 0xE2, 0xE3]] = True

# A different prime for each digit, so that lines with different digits rarely have the same sum.
_DIGITS = np.array([100003, 199999, 400009, 799999, 1600033, 3200003, 6400013, 12799987, 25600013, 51200027], float)


@dataclass(frozen=True, slots=True)
class OddLines:
    """Indices of the lines with odd characters. A line with two such characters is listed twice."""

    control: "NDArray[np.int64]"
    """Lines with control characters other than white space."""
    separators: "dict[str, NDArray[np.int64]]"
    """Lines with a separator, by the separator's name in `SEPARATORS`."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The measured lines of one side of a block. Arrays have one entry for each line."""

    text: bytes
    r"""The lines, each with "\n" at its end."""
    ends: "NDArray[np.int64]"
    """Index in `text` of each line feed."""
    starts: "NDArray[np.int64]"
    """Index in `text` of each line's first byte."""
    invalid: "NDArray[np.bool_]"
    """Lines that are not UTF-8."""
    characters: "NDArray[np.int64]"
    """Characters of each line, if it is UTF-8."""
    fingerprints: "NDArray[np.uint64]"
    """128 bits of each line's XXH3 hash, as two numbers."""

    @classmethod
    def of(cls, text: bytes) -> "Lines":
        """Return the measured lines of a text that ends with a line feed."""
        data = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(data == LINE_FEED)
        starts = np.concatenate([[0], ends[:-1] + 1])
        widths = ends - starts
        plain = text.isascii()
        digests = b"".join(map(xxhash.xxh3_128_digest, text[:-1].split(b"\n")))
        return cls(
            text=text,
            ends=ends,
            starts=starts,
            invalid=np.zeros(len(ends), bool) if plain or _is_valid(text) else _invalid_lines(text),
            characters=widths if plain else widths - _continuations(data, starts),
            fingerprints=np.frombuffer(digests, np.uint64).reshape(-1, 2),
        )

    def line(self, index: int) -> bytes:
        """Return one line, without its line feed."""
        return self.text[self.starts[index] : self.ends[index]]

    @property
    def bytes(self) -> "NDArray[np.uint8]":
        """The bytes of all lines as one array."""
        return np.frombuffer(self.text, np.uint8)

    def blank(self) -> "NDArray[np.bool_]":
        """Return a mask of the lines that have only white space."""
        blank: NDArray[np.bool_] = self.starts == self.ends
        for index in np.flatnonzero(_SPACES[self.bytes[self.starts]] & ~blank).tolist():
            blank[index] = not self.line(index).decode(errors="replace").strip()
        return blank

    def digits(self) -> "NDArray[np.float64]":
        """Return, for each line, a number that depends on the line's digits but not on their order; 0 = no digits."""
        data = self.bytes
        places = np.flatnonzero(data - np.uint8(ord("0")) < 10)
        weights = _DIGITS[data[places] - ord("0")]
        return np.bincount(self._lines_at(places), weights, minlength=len(self.ends)).astype(np.float64)

    def odd(self) -> OddLines:
        """Return the lines that contain control characters or separators."""
        data = self.bytes
        control, separators = [], {}
        if np.count_nonzero(data < 0x20) > len(self.ends):
            places = np.flatnonzero((data < 0x20) & (data != LINE_FEED) & (data != ord("\t")))
            values = data[places]
            control.append(places[(values < ord("\t")) | (values > ord("\r"))])
            for name in "\v\f\r":
                separators[name] = places[values == ord(name)]
        if b"\x7f" in self.text:
            control.append(np.flatnonzero(data == 0x7F))
        if not self.text.isascii():
            places = np.flatnonzero(data == 0xC2)
            places = places[(data[places + 1] >= 0x80) & (data[places + 1] < 0xA0)]
            separators["\x85"] = places[data[places + 1] == 0x85]
            control.append(places[data[places + 1] != 0x85])
            separators |= {name: _occurrences(data, name) for name in "\u2028\u2029"}
        return OddLines(
            control=self._lines_at(np.concatenate([*control, np.zeros(0, np.int64)])),
            separators={SEPARATORS[name]: self._lines_at(found) for name, found in separators.items() if len(found)},
        )

    def _lines_at(self, places: "NDArray[np.int64]") -> "NDArray[np.int64]":
        return np.searchsorted(self.ends, places)


def _is_valid(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _invalid_lines(text: bytes) -> "NDArray[np.bool_]":
    return np.array([not _is_valid(line) for line in text[:-1].split(b"\n")])


def _continuations(data: "NDArray[np.uint8]", starts: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the number of bytes in each line that do not begin a character."""
    return np.add.reduceat((data.view(np.int8) < -64).view(np.uint8), starts, dtype=np.int64)


def _occurrences(data: "NDArray[np.uint8]", character: str) -> "NDArray[np.int64]":
    """Return the indices at which a character of three bytes occurs in a text that ends with a line feed."""
    first, second, third = character.encode()
    places = np.flatnonzero(data == first)
    places = places[data[places + 1] == second]
    found: NDArray[np.int64] = places[data[places + 2] == third]
    return found


@dataclass(frozen=True, slots=True)
class LineFacts:
    """Facts about the lines of one side, without the text. Arrays have one entry per line."""

    invalid: "NDArray[np.bool_]"
    """Lines that are not UTF-8."""
    blank: "NDArray[np.bool_]"
    """Lines with only white space."""
    characters: "NDArray[np.int64]"
    """Characters of each line, if it is UTF-8."""
    digits: "NDArray[np.float64]"
    """For each line, a number that depends on the line's digits but not on their order; 0 = no digits."""
    fingerprints: "NDArray[np.uint64]"
    """128 bits of each line's XXH3 hash, as two numbers."""
    odd: OddLines

    @classmethod
    def of(cls, text: bytes) -> "LineFacts":
        """Return the measurements of a text that ends with a line feed."""
        lines = Lines.of(text)
        return cls(
            invalid=lines.invalid,
            blank=lines.blank(),
            characters=lines.characters,
            digits=lines.digits(),
            fingerprints=lines.fingerprints,
            odd=lines.odd(),
        )
