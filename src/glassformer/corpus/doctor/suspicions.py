"""Signs that files or columns are the wrong ones, or that their lines are not translations of each other.

Some thousand pairs are enough for these questions (`PairSample`). Nothing is left out because of a suspicion.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from glassformer.corpus.doctor.case import Case, Pairs, Tally
from glassformer.corpus.doctor.examination import SHOWN, Finding
from glassformer.corpus.doctor.fit import fit_of
from glassformer.corpus.doctor.function_words import FUNCTION_WORDS, seeming_language
from glassformer.corpus.doctor.mojibake import repaired
from glassformer.corpus.doctor.problem import CorpusWarning, Effect, Problem, data_of, such_as
from glassformer.errors import quoted
from glassformer.text.languages import language_name, primary, script

__all__ = ["Header", "IgnoredColumns", "Languages", "Misfits", "Mojibake", "NoWords"]

SIDES: tuple[Literal["source", "target"], ...] = ("source", "target")
LEAST_LINES = 20
"""Minimum number of lines from which a column is said to have no words."""
MOST_CODES = 0.9
"""Share of lines without words from which a side is said to have none."""
LEAST_MOJIBAKE = 3
LEAST_MOJIBAKE_SHARE = 0.05
"""Minimum number of lines of mojibake, and their minimum share of the lines with letters outside ASCII. Of real
corpora and catalogues, single lines look like mojibake by chance."""
LEAST_MISFITS = 0.12
"""Minimum share of targets that do not fit. Corpora and catalogues of messages in ten languages have 0 to 0.07."""

_HEADERS = {"source", "src", "target", "tgt", "trg", "input", "output", "text", "translation", "sentence", "word"}
_HEADERS |= {*FUNCTION_WORDS, *(language_name(code).lower() for code in FUNCTION_WORDS)}


class _Suspicion(Problem):
    """A question about the sample; the pairs of the corpus have been added to the sample."""

    effect: Effect = "report"

    def look_at(self, pairs: Pairs) -> None:
        """Do nothing: the doctor adds the pairs to the sample."""

    def lines_at(self, indices: Sequence[int]) -> Finding:
        """Return the finding with some pairs of the sample, by their indices."""
        numbers = self.case.sample.numbers
        return self.case.finding(Tally(len(indices), [numbers[index] for index in indices[:SHOWN]]))


class IgnoredColumns(_Suspicion):
    """A TSV file has more columns than the two that are read, and no setting names these two."""

    id = "ignored_columns"

    def warnings(self) -> Iterator[CorpusWarning]:
        """Yield one warning for the file with the most columns."""
        corpus, columns = self.case.reader.corpus, self.case.reader.columns
        if columns > 2 and corpus.source_column is None and corpus.target_column is None:
            more = "column 2 is ignored" if columns == 3 else f"columns 2 to {columns - 1} are ignored"
            yield CorpusWarning(
                f"the lines have up to {columns} columns: columns 0 and 1 are read, {more}; data.source_column and "
                "data.target_column choose columns",
                self.id,
                {"columns": columns},
            )


class Header(_Suspicion):
    """The first line names columns or languages."""

    id = "header"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.first: tuple[str, str] | None = None

    def look_at(self, pairs: Pairs) -> None:
        """Remember the first pair of the corpus."""
        if self.first is None:
            source, target = (side[0].decode(errors="replace") for side in pairs.lines)
            self.first = source, target

    def warnings(self) -> Iterator[CorpusWarning]:
        """Yield a warning if both sides of the first pair are names of columns or of languages."""
        corpus = self.case.reader.corpus
        unnamed = not any(isinstance(column, str) for column in corpus.columns)
        if self.first and corpus.format != "jsonl" and unnamed and all(map(_is_header, self.first)):
            source, target = map(quoted, self.first)
            remedy = (
                f"data.source_column = {source} and data.target_column = {target} read the columns by these names"
                if corpus.format == "tsv"
                else f"remove {source} and {target} from the files"
            )
            yield CorpusWarning(f"line 1 looks like a header, and is read as a pair: {remedy}", self.id, [*self.first])


def _is_header(text: str) -> bool:
    name = text.strip().lower()
    return name in _HEADERS or language_name(name) != name


class NoWords(_Suspicion):
    """A side has numbers or codes instead of text: probably the wrong column."""

    id = "no_words"

    def warnings(self) -> Iterator[CorpusWarning]:
        """Yield a warning for a side without words, if the other side has words."""
        sides = self.case.sample.sides
        shares = [sum(map(_is_code, lines)) / max(len(lines), 1) for lines in sides]
        for side, lines, share, other in zip(SIDES, sides, shares, shares[::-1], strict=True):
            if len(lines) >= LEAST_LINES and share >= MOST_CODES and other < 0.5:
                yield CorpusWarning(
                    f"the {side} has no words, only numbers or codes such as {quoted(lines[0])}: is this the right "
                    "column or file?",
                    self.id,
                    {"share": share},
                    side,
                )


def _is_code(line: str) -> bool:
    """Return whether a line has no letter, or is one word with a digit."""
    return not any(map(str.isalpha, line)) or (len(line.split()) == 1 and any(map(str.isdigit, line)))


class Languages(_Suspicion):
    """A side is not in the language that the settings name."""

    id = "languages"

    def warnings(self) -> Iterator[CorpusWarning]:
        """Yield one warning for swapped sides, otherwise one for each side in another language."""
        tags = self.case.languages
        expected = [_judged(tag) for tag in tags]
        found = [seeming_language(*one) for one in zip(self.case.sample.sides, expected, strict=True)]
        if [one and one.language for one in found] == expected[::-1]:
            yield CorpusWarning(
                f"the sides seem to be swapped: the source seems to be {language_name(expected[1])}, and the target "
                f"{language_name(expected[0])}, but data.source_language is {quoted(tags[0])} and "
                f"data.target_language {quoted(tags[1])}",
                self.id,
                {"swapped": True},
            )
            return
        for side, tag, seeming in zip(SIDES, tags, found, strict=True):
            if seeming:
                yield CorpusWarning(
                    f"the {side} seems to be {language_name(seeming.language)}, but data.{side}_language is "
                    f"{quoted(tag)}: is this the right file?",
                    self.id,
                    {"expected": tag, "found": seeming.language},
                    side,
                )


def _judged(tag: str) -> str:
    """Return the code of a tag's language, or "" for another script than usual, such as phonetic letters."""
    return "" if script(tag) or "fon" in tag else primary(tag)


class Mojibake(_Suspicion):
    """Lines are UTF-8 that was read as another encoding."""

    id = "mojibake"

    def warnings(self) -> Iterator[CorpusWarning]:
        """Yield a warning for each side with many such lines."""
        for side, lines in zip(SIDES, self.case.sample.sides, strict=True):
            others = sum(not line.isascii() for line in lines)
            found = [index for index, line in enumerate(lines) if repaired(line) != line]
            if len(found) >= max(LEAST_MOJIBAKE, LEAST_MOJIBAKE_SHARE * others):
                first, finding = lines[found[0]], self.lines_at(found)
                yield CorpusWarning(
                    f"mojibake in {100 * len(found) / others:.0f} % of the {side} lines with letters outside ASCII"
                    f"{such_as(finding)}: {quoted(first)} seems to stand for {quoted(repaired(first))}; UTF-8 was "
                    "read as another encoding: convert the file again from the original",
                    self.id,
                    {"share": len(found) / others, **data_of(finding)},
                    side,
                )


class Misfits(_Suspicion):
    """Targets are not translations of their sources, for example because one file was shuffled."""

    id = "misfits"

    def warnings(self) -> Iterator[CorpusWarning]:
        """Yield a warning if too many targets have words that their sources do not explain, and no shift does."""
        fit, lines = fit_of(*self.case.sample.sides), self.case.reader.lines[0]
        shifted = sum((lines if one.end is None else one.end) - one.start for one in self.case.shifts) / max(lines, 1)
        if fit is not None and fit.misfits - shifted >= LEAST_MISFITS:
            worst = self.lines_at(fit.worst)
            yield CorpusWarning(
                f"about {100 * fit.misfits:.0f} % of the targets do not seem to belong to their sources"
                f"{such_as(worst)}: was one file sorted, shuffled or shifted?",
                self.id,
                {"share": fit.misfits, "judged": fit.judged, "lines": [*worst.lines]},
            )
