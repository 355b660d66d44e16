"""Write lines in capitals, in lower case or in title case as the training sources were usually written.

A table of usual spellings has the words that lower case alone would spell wrongly: names, German nouns, abbreviations,
and words whose accents or ß are lost in capitals. For words that it lacks, it has endings: "-Ung" if most words that
end in "ung" are written with a capital, "-ung" if they are not although a shorter ending says so.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, takewhile
from typing import Literal

from glassformer.text.casing import capitalised, casing_of
from glassformer.text.edits import Replacement
from glassformer.text.links import Span
from glassformer.text.normalisation import plain

__all__ = ["CASES", "LineCase", "Spellings", "case_of", "in_capitals", "lowered", "recased", "words_of"]

LineCase = Literal["", "capitals", "lower", "title"]
"""How a line is written: all its words in capitals, none with a capital, most words with a capital that usually have
none, or "" for ordinary lines."""

CASES: tuple[LineCase, ...] = ("capitals", "lower", "title")
"""The unusual ones."""
MOST_SPELLINGS = 50_000
MOST_BYTES = 1_000_000
LEAST_SEEN = 2
"""How often a word must be seen away from the beginning of a sentence."""
ENDING_LENGTHS = (2, 3, 4, 5)
"""The numbers of letters of endings. A word has at least two letters more."""
LEAST_ALIKE = 3
"""How many words must have an ending."""
MOST_ENDINGS = 5_000
TITLE_SHARE = 0.8
"""Share of the long words that begin with a capital in a line in title case, of those that usually do not."""
INNER_SHARE = 0.6
"""The same for all words except the first; new German nouns and names are not enough."""
LONG = 4
MOST_LETTERS = 100
_WITHIN = "\u0300-\u036f\u00ad\u200b\u2060\ufeff"
"""Marks, soft hyphens and other invisible characters inside a word."""
_WORD = re.compile(rf"(?:[^\W_]|[{_WITHIN}])+")
_ODD = re.compile(f"[{_WITHIN}]")
_NO_CASE = re.compile("[\u10a0-\u10ff\u1c90-\u1cbf\u2d00-\u2d2f]")
"""Georgian letters, whose capitals nobody writes."""
_BETWEEN = frozenset(" \t\u00a0,'’-/&+")
"""Characters between two words of one sentence."""
_ENDS = frozenset(".!?…")
"""Characters at the end of a sentence, if white space follows."""
_QUOTED = re.compile(r"""[!?…]['"’”“»«]\s*$""")
"""The end of a quoted question or exclamation."""
_ACCENTS = re.compile("(?<=[A-Za-z\u0370-\u03ff\u1f00-\u1fff])[\u0300-\u036f]+")
_TONOS = re.compile("(?<=[\u0370-\u03ff])[\u0300\u0301\u0342]+")


class Spellings:
    """The usual spellings of words that are not spelled by their lower case alone."""

    def __init__(self, forms: Iterable[str], language: str = "") -> None:
        self.forms, self.language = tuple(forms), language
        self._exact: dict[str, str] = {}
        self._bare: dict[str, str] = {}
        for form in self.forms:
            lower = lowered(form, language)
            self._exact.setdefault(lower, form)
            self._bare.setdefault(_bare(lower), form)

    @classmethod
    def of(cls, lines: Iterable[str], language: str) -> "Spellings":
        """Return the usual spellings in the lines of a corpus; the most frequent words come first."""
        seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
        words = Counter(word for line in lines if not (line.isupper() or line.istitle()) for word in _inner_words(line))
        for word, count in words.items():
            seen[lowered(word, language)][word] += count
        usual = {lower: forms.most_common(1)[0] for lower, forms in seen.items()}
        wanted = Counter[str]()
        for lower, (form, count) in usual.items():
            is_accented = _bare(lower) != lower and _bare(lower) not in usual
            if count >= LEAST_SEEN and (form != lower or is_accented):
                wanted[form] = count
        endings = [*_endings({lower: form for lower, (form, _) in usual.items()})]
        guessed = cls(chain(endings, wanted), language)
        for lower, (form, count) in usual.items():
            if form == lower != guessed.usual(lower):
                wanted[form] = count
        return cls(_first(chain(endings, (form for form, _ in wanted.most_common()))), language)

    def joined(self, others: Iterable[str]) -> "Spellings":
        """Return a table that also has others' spellings of words that this table does not know."""
        new = (form for form in others if lowered(form, self.language) not in self._exact)
        return Spellings(_first(chain(self.forms, new)), self.language)

    def usual(self, word: str) -> str:
        """Return the usual spelling of a word; if the table lacks it, as most words with its ending are written."""
        lower = lowered(word, self.language)
        if lower in self._exact:
            return self._exact[lower]
        if lower in self._bare and _bare(lower) == lower:
            return self._bare[lower]
        ending = next((found for key in _endings_of(lower) if (found := self._exact.get(f"-{key}"))), "")
        return capitalised(lower, self.language) if ending[1:2].isupper() else lower


def _endings_of(lower: str) -> Iterator[str]:
    """Yield the endings of a word in lower case, the longest first."""
    for letters in reversed(ENDING_LENGTHS):
        if len(lower) >= letters + 2:
            yield lower[-letters:]


def _endings(usual: Mapping[str, str]) -> Iterator[str]:
    """Yield endings of words by which the first letter of an unknown word is guessed, those of most words first.

    `usual` has the usual spelling of each word in lower case.
    """
    words, capitals = Counter[str](), Counter[str]()
    for lower, form in usual.items():
        if lower.isalpha():
            words.update(_endings_of(lower))
            capitals.update(_endings_of(lower) if form[0].isupper() else ())
    said = {"": False}
    frequent = (ending for ending, count in words.items() if count >= LEAST_ALIKE)
    for ending in sorted(frequent, key=len):
        is_capital = 2 * capitals[ending] > words[ending]
        shorter = next(ending[begin:] for begin in range(1, len(ending) + 1) if ending[begin:] in said)
        if is_capital != said[shorter]:
            said[ending] = is_capital
    most = sorted((ending for ending in said if ending), key=lambda ending: (-words[ending], ending))
    for ending in most[:MOST_ENDINGS]:
        yield f"-{ending[0].upper() if said[ending] else ending[0]}{ending[1:]}"


def lowered(word: str, language: str) -> str:
    """Return a word of a language in lower case; Georgian letters do not change.

    >>> lowered("IŞIK", "tr"), lowered("ΟΔΟΣ", "el"), lowered("ᲗᲑᲘᲚᲘᲡᲘ", "ka")
    ('ışık', 'οδος', 'ᲗᲑᲘᲚᲘᲡᲘ')
    """
    if _NO_CASE.search(word):
        return word
    return (word.replace("İ", "i").replace("I", "ı") if casing_of(language) else word).lower()


def in_capitals(word: str, language: str) -> str:
    """Return a word of a language in capitals; Greek capitals have no accents, and Georgian letters do not change.

    >>> in_capitals("Straße", "de"), in_capitals("ışık i", "tr"), in_capitals("άνθρωπος", "el")
    ('STRASSE', 'IŞIK İ', 'ΑΝΘΡΩΠΟΣ')
    """
    if _NO_CASE.search(word):
        return word
    upper = (word.replace("i", "İ") if casing_of(language) else word).upper()
    bare = _TONOS.sub("", unicodedata.normalize("NFD", upper))
    return unicodedata.normalize("NFC", bare)


def _bare(word: str) -> str:
    """Return a word in lower case without the accents of Latin and Greek letters, and with ss for ß."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", word.replace("ß", "ss"))))


def _first(forms: Iterable[str]) -> Iterator[str]:
    """Yield the first forms, as many as a table may have."""
    size = MOST_BYTES
    for form in islice(forms, MOST_SPELLINGS):
        size -= len(form.encode()) + 1
        if size < 0:
            return
        yield form


def words_of(text: str, kept: Sequence[Span] = ()) -> Iterator[Span]:
    """Yield the span of each word with a letter, except words that overlap the spans `kept`, which are in order.

    A run of more than MOST_LETTERS characters is no word.
    """
    rest = iter([*kept, (len(text) + 1, len(text) + 1)])
    span = next(rest)
    for found in _WORD.finditer(text):
        while span[1] <= found.start():
            span = next(rest)
        is_word = len(found[0]) <= MOST_LETTERS and any(map(str.isalpha, found[0]))
        if found.end() <= span[0] and is_word:
            yield found.span()


def _inner_words(line: str) -> Iterator[str]:
    """Yield the words of a line that do not begin a sentence."""
    last = None
    for found in _WORD.finditer(line):
        if last is not None and (line[last : found.start()] == " " or _BETWEEN.issuperset(line[last : found.start()])):
            yield _plain(found[0])
        last = found.end()


def case_of(line: str, usual: Callable[[str], str], kept: Sequence[Span] = ()) -> LineCase:
    """Return how a line is written; the spans `kept` do not count. `usual` returns the usual spelling of a word.

    A line needs two words with at least two letters that have a case. In a line in title case, most of the long words
    that usually have no capital begin with one, apart from the first; of short words, three are enough if all do.
    """
    if not kept and _is_ordinary(line):
        return ""
    spans = [*words_of(line, kept)]
    words = [word for begin, end in spans if _cased(word := line[begin:end]) > 1]
    if len(words) < 2:
        return ""
    if all(map(str.isupper, words)):
        return "capitals"
    if not any(letter.isupper() for begin, end in spans for letter in line[begin:end]):
        return "lower"
    inner = words[1:]
    if _share(inner) < INNER_SHARE:  # most lines end here, before the table is looked at
        return ""
    unusual = [word for word in inner if not usual(word)[0].isupper()]
    long = [word for word in unusual if len(word) >= LONG]
    if len(unusual) < 2:
        return ""
    is_title = _share(long) >= TITLE_SHARE if len(long) > 1 else len(unusual) > 2 and _share(unusual) == 1
    return "title" if is_title else ""


def _is_ordinary(line: str) -> bool:
    """Return True only if a line has no unusual case: it has capitals, but too few for a line in title case.

    This takes a fifth of the time that looking at each word takes, and is true for nearly all lines.
    """
    tokens = line.split()
    small = sum(token[0].islower() and token[1:2].islower() for token in tokens)  # words without a capital
    capitals = sum(map(str.isupper, filter(str.isalpha, line)))  # at least the words with one
    are_words = max(map(len, tokens), default=0) <= MOST_LETTERS and not _NO_CASE.search(line)
    return are_words and 0 < capitals * (1 - INNER_SHARE) < (small - 1) * INNER_SHARE


def _share(words: Sequence[str]) -> float:
    """Return the share of words that begin with a capital."""
    return sum(word[0].isupper() for word in words) / max(len(words), 1)


def _cased(word: str) -> int:
    """Return the number of letters of a word that have a case."""
    return 0 if _NO_CASE.search(word) else sum(letter.isupper() or letter.islower() for letter in word)


def recased(
    line: str, usual: Callable[[str], str], language: str, *, capital: bool, kept: Sequence[Span] = ()
) -> Iterator[Replacement]:
    """Yield the edits that write each word as usual, and the first word of a sentence with a capital if `capital`."""
    last = 0
    for begin, end in words_of(line, kept):
        word, before = _plain(line[begin:end]), line[last:begin]
        if _cased(word):
            form = usual(word)
            begins = not any(map(str.isalnum, before)) if last == 0 else _ends_sentence(before)
            if capital and begins:
                form = capitalised(form, language)
            if form != word:
                yield Replacement(begin, end, form)
        last = end


def _plain(word: str) -> str:
    """Return a word without invisible characters, its letters composed."""
    return plain(word) if _ODD.search(word) else word


def _ends_sentence(between: str) -> bool:
    """Return whether a sentence ends between two words; a span may stand there, too.

    After a question in quotation marks, the sentence around it may go on: “Who is it?” she asked.
    """
    marks = "".join(reversed([*takewhile(lambda one: not one.isalnum(), reversed(between))]))
    has_end = not _ENDS.isdisjoint(marks) and any(map(str.isspace, marks))
    return has_end and not _QUOTED.search(marks)
