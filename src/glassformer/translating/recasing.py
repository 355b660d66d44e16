"""Translate lines in capitals, in lower case or in title case as if they were written as usual."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import ClassVar

from glassformer.bundle import Bundle
from glassformer.text.casing import capitalised
from glassformer.text.edits import Replacement, edited, moved
from glassformer.text.habits import Habits
from glassformer.text.links import Link, Span, word_spans
from glassformer.text.recasing import LineCase, Spellings, case_of, in_capitals, lowered, recased, words_of
from glassformer.text.signs import Signs
from glassformer.text.terms import written_forms
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import SPECIALS
from glassformer.translating.reading import status_of
from glassformer.translating.request import Request
from glassformer.translating.rewriting import Rewrite
from glassformer.translating.translation import TRANSLATED, Translation

__all__ = ["RecasedText", "recasing"]


@dataclass(frozen=True, slots=True)
class RecasedText:
    """A line that is translated in other letters: capitals for small letters, or the other way round."""

    needs_links: ClassVar[bool] = False

    text: str
    usual: str
    """The line as the model reads it; it has the same words."""
    target_language: str
    """The language of the translation, if it is written in capitals, as a BCP 47 tag."""
    to_capitals: bool

    @property
    def parts(self) -> list[str]:
        """The line as the model reads it."""
        return [self.usual]

    def restored(self, found: Sequence[Translation], asked: Request) -> Translation:
        """Return the translation, in capitals if the line is; spans and terms keep their letters."""
        terms = asked.terms.of(self.usual) if self.to_capitals else ()

        def whole(one: Translation) -> Translation:
            text, edits = one.text, list[Replacement]()
            if self.to_capitals and one.status in TRANSLATED:
                kept = [(form.begin, form.end) for form in written_forms(terms, text)]
                edits = [
                    Replacement(begin, end, in_capitals(text[begin:end], self.target_language))
                    for begin, end in words_of(text, kept)
                ]
            links = tuple(self._links(one.links, edits))
            return replace(one, text=edited(text, edits), links=links, alternatives=tuple(map(whole, one.alternatives)))

        return whole(found[0])

    def _links(self, links: Iterable[Link], edits: Sequence[Replacement]) -> Iterator[Link]:
        """Yield the links between the words of the line as it is given and of the edited translation."""
        given = dict(zip(word_spans(self.usual), word_spans(self.text), strict=False)) if links else {}
        for link in links:
            [target] = moved([link.target], edits)
            yield Link(given.get(link.source, link.source), target)


def recasing(bundle: Bundle, habits: Habits) -> Rewrite:
    """Return the function that writes unusual lines as the training sources of a run are written.

    If all letters of the source vocabulary have one case, each line is written in this case. If the sources are single
    words, letters that the vocabulary lacks are replaced by their base letters.
    """
    tokenizer, data = bundle.source_tokenizer, bundle.configuration.data
    fold = _folding(tokenizer, habits)

    @cache
    def spellings() -> Spellings:  # read when the first unusual line comes
        table = bundle.spellings.read_text(encoding="utf-8", errors="replace") if bundle.spellings else ""
        return Spellings(table.splitlines(), data.source_language)

    def edits_of(text: str, kept: Sequence[Span]) -> tuple[LineCase, list[Replacement]]:
        if fold:
            words = words_of(text, kept)
            return "", [Replacement(*word, fold(text[slice(*word)], data.source_language)) for word in words]
        kind = case_of(text, lambda word: spellings().usual(word), kept)
        if not kind or kind not in habits.unusual_cases:
            return "", []
        usual = spellings().usual if bundle.spellings else partial(_fewest_pieces, tokenizer, data.source_language)
        return kind, [*recased(text, usual, data.source_language, capital=habits.begins_with_capital, kept=kept)]

    def way(text: str, asked: Request) -> RecasedText | None:
        if asked.search.sample or not asked.search.settings.recase or status_of(text) != "ok":
            return None
        with_terms = fold and asked.terms.glossary
        kept = [(one.begin, one.end) for one in asked.terms.of(text)] if with_terms else asked.terms.spans(text)
        kind, edits = edits_of(text, kept)
        usual = edited(text, edits)
        return RecasedText(text, usual, data.target_language, kind == "capitals") if usual != text else None

    return way


def _folding(tokenizer: Tokenizer, habits: Habits) -> Callable[[str, str], str] | None:
    """Return the function that writes each word of a language as the vocabulary can; None if words stay as they are."""
    fold = _only_case(tokenizer)
    if not habits.reads_words:
        return fold
    signs = Signs(tokenizer)
    return lambda word, language: signs.based(fold(word, language) if fold else word)


def _only_case(tokenizer: Tokenizer) -> Callable[[str, str], str] | None:
    """Return the function that writes words in the only case of a vocabulary; None if it has both cases or none."""
    small = capitals = False
    for id in range(len(SPECIALS), len(tokenizer)):
        [token] = tokenizer.tokens([id])
        small = small or any(map(str.islower, token))
        capitals = capitals or any(map(str.isupper, token))
        if small and capitals:  # after some tokens; reading all takes 13 ms
            return None
    return lowered if small else in_capitals if capitals else None


def _fewest_pieces(tokenizer: Tokenizer, language: str, word: str) -> str:
    """Return a word in lower case, with a first capital or as it is: the form that is cut into the fewest pieces."""
    lower = lowered(word, language)
    forms = dict.fromkeys((lower, capitalised(lower, language), word))

    def cost(form: str) -> tuple[int, int]:
        ids = tokenizer.encode(form)
        return ids.count(tokenizer.unk_id), len(ids)

    return min(forms, key=cost)
