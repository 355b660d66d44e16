"""Test sets as items: sources with their references, where a word may have several references.

A dictionary has one line per pronunciation, so a word with three pronunciations has three lines. Such a word is one
item, and its output is right if it equals any of the three pronunciations. Sentences are scored line by line, as usual.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from statistics import median

from glassformer.corpus.readers import Corpus, PairReader, read_lines
from glassformer.errors import ConfigError, DataError, counted
from glassformer.text.normalisation import normalise

__all__ = ["Items", "default_metrics", "read_items"]

SHARE_OF_WORDS = 0.9
"""A test set counts as words if at least this share of its sources look like words."""
LONGEST_WORD = 40
"""Maximum length of a word, in characters. Without a limit, a Chinese or Japanese sentence, which has no white space,
would count as a word."""
LONGEST_SYMBOL = 2
"""Symbols are phones or letters: the median length of the parts between spaces is at most this number of characters.
With a larger median, the parts are words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Sources with their references; the references of a source are equally valid."""

    sources: tuple[str, ...]
    """The sources to translate."""
    references: tuple[tuple[str, ...], ...]
    """For each source, at least one reference."""
    places: tuple[int, ...]
    """For each line of the file that is not blank, in order, the index of its item."""
    blank: tuple[int, ...] = ()
    """Numbers (from 1) of the lines that are left out because one side is blank."""

    @classmethod
    def of(cls, lines: Iterable[Sequence[str]], *, group: bool, blank: Sequence[int] = ()) -> "Items":
        """Return the items of these lines; a line is a source followed by its references.

        With `group`, all lines whose normalised sources are equal form one item with all their references; items are in
        order of first appearance. Otherwise, each line is one item.
        """
        found: dict[str | int, tuple[str, dict[str, None]]] = {}
        numbers: dict[str | int, int] = {}
        places = []
        for line, (source, *references) in enumerate(lines):
            key = normalise(source, "plain") if group else line
            places.append(numbers.setdefault(key, len(numbers)))
            found.setdefault(key, (source, {}))[1].update(dict.fromkeys(references))
        return cls(
            sources=tuple(source for source, _ in found.values()),
            references=tuple(tuple(several) for _, several in found.values()),
            places=tuple(places),
            blank=tuple(blank),
        )

    def first(self, count: int) -> "Items":
        """Return the first `count` items, with only their lines."""
        return Items(
            sources=self.sources[:count],
            references=self.references[:count],
            places=tuple(place for place in self.places if place < count),
        )

    def to_lines(self, outputs: Sequence[str]) -> list[str]:
        """Return the output of each line's item, in the order of the file's lines; "" for a blank line."""
        lines = [outputs[place] for place in self.places]
        for number in self.blank:
            lines.insert(number - 1, "")
        return lines

    def from_lines(self, lines: Sequence[str]) -> list[str]:
        """Return one output per item, given one output per line of the file; an item gets the output of its first line.

        Raises:
            DataError: the number of outputs differs from the number of the file's lines.
        """
        if len(lines) != len(self.places) + len(self.blank):
            raise DataError(
                f"hypotheses: expected {len(self.places) + len(self.blank)} lines as in the test set, got {len(lines)}"
            )
        left_out = set(self.blank)
        kept = [line for number, line in enumerate(lines, start=1) if number not in left_out]
        first = dict(zip(reversed(self.places), reversed(kept), strict=True))
        return [first[place] for place in range(len(self.sources))]

    def __str__(self) -> str:
        """Return the size of the test set in words: "6,238 lines, 5,945 different sources"."""
        text = counted(len(self.places), "line")
        if len(self.sources) < len(self.places):
            text += f", {counted(len(self.sources), 'different source')}"
        return text + (f" ({len(self.blank):,} with a blank side left out)" if self.blank else "")


def read_items(corpus: Corpus, *, more: Sequence[str | Path] = (), group: bool | None = None) -> Items:
    """Return the items of a small corpus.

    Args:
        corpus: files of both sides, or files that hold both (TSV, JSONL); pairs with a blank side are left out.
        more: files with more references, line by line, if each side is in its own file; a blank line gives no
            reference.
        group: whether lines with the same source form one item. The default is True for files that hold both sides,
            which are treated as dictionaries. The default is False for two files, which are treated as parallel text
            and scored line by line.

    Raises:
        ConfigError: `more` is given for files that hold both sides.
        DataError: a file cannot be read, the sides differ in their numbers of lines, or the text is missing.
    """
    if corpus.format == "lines":
        return Items.of(_with_more(_pairs(corpus), more), group=bool(group))
    if more:
        raise ConfigError(
            f"{corpus.names} already holds references, on further lines with the same source: leave out the "
            "additional reference files"
        )
    pairs = _pairs(corpus)
    whole = [all(side.strip() for side in pair) for pair in pairs]
    if not any(whole):
        raise DataError(
            f"{corpus.names}: expected pairs with text on both sides, got none among {len(pairs)}; choose another file"
        )
    blank = [number for number, both in enumerate(whole, start=1) if not both]
    return Items.of(compress(pairs, whole), group=group is not False, blank=blank)


def default_metrics(items: Items) -> tuple[str, ...]:
    """Return the metrics that suit the items.

    Sentences: BLEU, chrF and exact matches. Words: the share of wrong words, and the edits within words. Edits are
    counted in symbols if references are symbols between spaces (phones or spelled letters), otherwise in characters.
    """
    words = [source for source in items.sources if len(source.split()) == 1 and len(source) <= LONGEST_WORD]
    symbols = [reference.split() for several in items.references for reference in several]
    spaced = median(map(len, symbols)) > 1
    short = median(len(symbol) for line in symbols for symbol in line or [""]) <= LONGEST_SYMBOL
    if len(words) < SHARE_OF_WORDS * len(items.sources) or (spaced and not short):
        return "bleu", "chrf", "exact"
    return "word_error", "per" if spaced else "cer"


def _pairs(corpus: Corpus) -> list[tuple[str, str]]:
    reader, pairs = PairReader(corpus), list[tuple[str, str]]()
    for block in reader:
        sides = (_texts(text, reader, len(pairs), side) for side, text in enumerate((block.source, block.target)))
        pairs += zip(*sides, strict=True)
    reader.check()
    if not pairs:
        raise DataError(f"{corpus.names}: expected at least one line, got an empty file; choose another file")
    return pairs


def _texts(block: bytes, reader: PairReader, first: int, side: int) -> list[str]:
    """Return the lines of a block; `first` is the index of its first line in the corpus."""
    try:
        return block.decode().split("\n")[:-1]
    except UnicodeDecodeError as error:
        file, line = reader.place(first + block.count(b"\n", 0, error.start), side)
        raise DataError(f"{file}, line {line}: expected UTF-8, got {error.reason}; correct the line") from error


def _with_more(pairs: Sequence[tuple[str, str]], more: Sequence[str | Path]) -> Iterator[tuple[str, ...]]:
    """Yield each source followed by its references."""
    others = [read_lines(path) for path in more]
    for path, lines in zip(more, others, strict=True):
        if len(lines) != len(pairs):
            expected = counted(len(pairs), "line")
            raise DataError(f"{path}: expected {expected} as in the source, got {len(lines):,}; correct the file")
    for (source, first), *several in zip(pairs, *others, strict=True):
        yield source, first, *(one for one in several if one.strip())
