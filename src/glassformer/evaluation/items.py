"""What is translated and what is right: a test set, in which a word may have several references.

A dictionary has a line for each pronunciation, so a word with three of them stands on three lines: it is one item, and
right when its output equals any of the three. Sentences are scored line by line, as everybody does.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from statistics import median

from glassformer.errors import ConfigError, DataError
from glassformer.text.corpus import Corpus, PairReader, read_lines
from glassformer.text.normalisation import normalise

__all__ = ["Items", "default_metrics", "read_items"]

MOST = 0.9
"""The share of sources that have to look like words before all of them are taken for words."""
LONGEST_WORD = 40
"""In characters; Chinese and Japanese sentences have no white space either."""
LONGEST_SYMBOL = 2
"""In characters, of the median: most phones and letters are shorter than most words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Sources, each with the references of which any is right."""

    sources: tuple[str, ...]
    """What is translated."""
    references: tuple[tuple[str, ...], ...]
    """For each source at least one reference."""
    places: tuple[int, ...]
    """For each line that was read, in order, the number of its item."""
    blank: tuple[int, ...] = ()
    """Numbers, from 1, of lines with a blank side, which were left out."""

    @classmethod
    def of(cls, lines: Iterable[Sequence[str]], *, group: bool, blank: Sequence[int] = ()) -> "Items":
        """Return the items of lines, each of which is a source and its references.

        With `group`, lines with the same source (differences in white space aside) are one item, in order of first
        appearance, with the references of all of them; otherwise each line is an item of its own.
        """
        found: dict[str | int, tuple[str, dict[str, None]]] = {}
        numbers: dict[str | int, int] = {}
        places = []
        for line, (source, *references) in enumerate(lines):
            key = normalise(source) if group else line
            places.append(numbers.setdefault(key, len(numbers)))
            found.setdefault(key, (source, {}))[1].update(dict.fromkeys(references))
        return cls(
            sources=tuple(source for source, _ in found.values()),
            references=tuple(tuple(several) for _, several in found.values()),
            places=tuple(places),
            blank=tuple(blank),
        )

    def first(self, count: int) -> "Items":
        """Return the first items, with the lines that are theirs."""
        return Items(
            sources=self.sources[:count],
            references=self.references[:count],
            places=tuple(place for place in self.places if place < count),
        )

    def to_lines(self, outputs: Sequence[str]) -> list[str]:
        """Return for each line of the file the output of its item, "" for a blank one."""
        lines = [outputs[place] for place in self.places]
        for number in self.blank:
            lines.insert(number - 1, "")
        return lines

    def from_lines(self, lines: Sequence[str]) -> list[str]:
        """Return for each item its output, given those for each line of the file: that of its first line.

        Raises:
            DataError: there are not as many lines as the file has.
        """
        if len(lines) != len(self.places) + len(self.blank):
            raise DataError(
                f"got {len(lines)} hypotheses for {len(self.places) + len(self.blank)} lines of the test set"
            )
        left_out = set(self.blank)
        kept = [line for number, line in enumerate(lines, start=1) if number not in left_out]
        first = dict(zip(reversed(self.places), reversed(kept), strict=True))
        return [first[place] for place in range(len(self.sources))]

    def __str__(self) -> str:
        """Say how many there are: "6,238 lines, 5,945 different sources"."""
        text = f"{len(self.places):,} lines"
        if len(self.sources) < len(self.places):
            text += f", {len(self.sources):,} different sources"
        return text + (f" ({len(self.blank):,} more with a blank side are left out)" if self.blank else "")


def read_items(corpus: Corpus, *, more: Sequence[str | Path] = (), group: bool | None = None) -> Items:
    """Return the items of a small corpus.

    Args:
        corpus: files of both sides, or files that hold both (TSV, JSONL), whose pairs with a blank side are left out.
        more: with files of both sides, further references, line by line; a blank line is none.
        group: whether lines with the same source are one item. Unless given, those of files that hold both sides are
            (they are a dictionary), those of two sides are not (they are a parallel text, scored line by line).

    Raises:
        ConfigError: there are further references for files that hold both sides.
        DataError: a file cannot be read, sides have unequal numbers of lines, or there is no text.
    """
    if corpus.format == "lines":
        return Items.of(_with_more(_pairs(corpus), more), group=bool(group))
    if more:
        raise ConfigError(f"{corpus.names} holds its references itself, on further lines with the same source")
    pairs = _pairs(corpus)
    whole = [all(side.strip() for side in pair) for pair in pairs]
    if not any(whole):
        raise DataError(f"{corpus.names}: no pair with text on both sides among {len(pairs)}: is it the right file?")
    blank = [number for number, both in enumerate(whole, start=1) if not both]
    return Items.of(compress(pairs, whole), group=group is not False, blank=blank)


def default_metrics(items: Items) -> tuple[str, ...]:
    """Return the metrics that fit what the items look like.

    Sentences: BLEU, chrF and exact matches. Words: the share that is wrong, and the edits within them, counted in
    symbols where references are symbols between white space (phones, spelled letters), otherwise in characters.
    """
    words = [source for source in items.sources if len(source.split()) == 1 and len(source) <= LONGEST_WORD]
    symbols = [reference.split() for several in items.references for reference in several]
    spaced = median(map(len, symbols)) > 1
    short = median(len(symbol) for line in symbols for symbol in line or [""]) <= LONGEST_SYMBOL
    if len(words) < MOST * len(items.sources) or (spaced and not short):
        return "bleu", "chrf", "exact"
    return "word_error", "per" if spaced else "cer"


def _pairs(corpus: Corpus) -> list[tuple[str, str]]:
    reader, pairs = PairReader(corpus), list[tuple[str, str]]()
    for block in reader:
        sides = (_texts(text, reader, len(pairs), side) for side, text in enumerate((block.source, block.target)))
        pairs += zip(*sides, strict=True)
    reader.check()
    if not pairs:
        raise DataError(f"{corpus.names} is empty: expected at least one line")
    return pairs


def _texts(block: bytes, reader: PairReader, first: int, side: int) -> list[str]:
    """Return the lines of a block, whose first one has this number in the corpus."""
    try:
        return block.decode().split("\n")[:-1]
    except UnicodeDecodeError as error:
        file, line = reader.place(first + block.count(b"\n", 0, error.start), side)
        raise DataError(f"{file}, line {line}: expected UTF-8 ({error.reason}): correct the line") from error


def _with_more(pairs: Sequence[tuple[str, str]], more: Sequence[str | Path]) -> Iterator[tuple[str, ...]]:
    """Yield each source with its references."""
    others = [read_lines(path) for path in more]
    for path, lines in zip(more, others, strict=True):
        if len(lines) != len(pairs):
            raise DataError(f"{path} has {len(lines)} lines, expected {len(pairs)}: a reference for each source line")
    for (source, first), *several in zip(pairs, *others, strict=True):
        yield source, first, *(one for one in several if one.strip())
