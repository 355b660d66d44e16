"""Make sure that translations contain the protected spans and the glossary terms of their texts."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from glassformer.text.glossary import Term
from glassformer.text.placing import Stripped, copied, placed, stripped
from glassformer.text.settling import settled
from glassformer.text.terms import Terms, missing_terms
from glassformer.text.tokenizer import Tokenizer
from glassformer.translating.copying import copy_of, links_of_words
from glassformer.translating.request import Request, Translate
from glassformer.translating.translation import TRANSLATED, Kept, Translation

__all__ = ["KeepingTerms", "TermKeeper"]


@dataclass(frozen=True, slots=True)
class KeepingTerms:
    """The layer that makes sure that translations contain the protected spans and glossary terms of their texts."""

    terms: Mapping[int, Sequence[Term]]
    """The terms of each text with terms, by the index of the text."""
    tokenizer: Tokenizer
    """The target tokenizer."""
    translate: Translate
    """Translates with all layers."""

    def __call__(self, asked: Request, below: Translate) -> Iterator[Translation]:
        """Start translating; return an iterator over the translations, which contain their terms."""
        return TermKeeper(asked.within(), self.terms, self.tokenizer, self.translate).kept(below(asked))


@dataclass(frozen=True, slots=True)
class TermKeeper:
    """Puts terms that the model did not write into the translations of a request."""

    request: Request
    terms: Mapping[int, Sequence[Term]]
    """The terms of each text with terms, by the index of the text."""
    tokenizer: Tokenizer
    """The target tokenizer."""
    translate: Translate

    def kept(self, found: Iterable[Translation]) -> Iterator[Translation]:
        """Yield the translations, which contain the terms of their texts."""
        results, lacking = dict(enumerate(found)), dict[int, list[Term]]()
        for place, terms in self.terms.items():
            output = results[place].text
            if output != self.request.texts[place] and (some := missing_terms(terms, output)):
                lacking[place] = some
            results[place] = _kept(results[place], terms, "output")
        for place, one in chain(self._copied(lacking), self._placed(lacking)):
            results[place] = one
        for place in self.terms:
            one = self._settled(place, results[place])
            results[place] = one if self.request.links else _without_links(one)
        yield from results.values()

    def _copied(self, lacking: Collection[int]) -> Iterator[tuple[int, Translation]]:
        """Yield the index and the translation of each text that has only terms: a copy with the terms' forms."""
        for place in filter(self._is_copied, lacking):
            source = self.request.texts[place]
            text, links = copied(source, self.terms[place])
            yield place, copy_of(text, links_of_words(source, text, links))

    def _is_copied(self, place: int) -> bool:
        return not self.request.prefixes[place] and not self.request.terms.leave_words(self.request.texts[place])

    def _placed(self, lacking: Mapping[int, Sequence[Term]]) -> Iterator[tuple[int, Translation]]:
        """Translate again the texts whose outputs lack terms, unless they are copied; yield index and new translation.

        Protected spans are taken out of a text before it is translated again, because a model often fails after tokens
        that it has never seen. Glossary terms are translated like other words, and then replace their translations.
        """
        rest = {
            place: stripped(self.request.texts[place], self._taken_out(place, some))
            for place, some in lacking.items()
            if not self._is_copied(place)
        }
        free, whole = ([place for place, one in rest.items() if bool(one.gaps) == some] for some in (True, False))
        for places, terms in ((free, self.request.terms), (whole, Terms(protect=False))):
            for place, one in self._linked({place: rest[place].text for place in places}, terms):
                yield place, self._arranged(place, one, rest[place])

    def _taken_out(self, place: int, lacking: Sequence[Term]) -> list[Term]:
        """Return the protected spans that a text's output lacks, except spans in the prefix of the output."""
        begun, taken = Counter(span.forms for span in Terms().of(self.request.prefixes[place])), list[Term]()
        for term in lacking:
            if begun[term.forms]:
                begun[term.forms] -= 1
            elif term.kind == "span":
                taken.append(term)
        return taken

    def _linked(self, texts: Mapping[int, str], terms: Terms) -> Iterator[tuple[int, Translation]]:
        """Translate `texts`, which replace texts of the request; yield each text's index and linked translation."""
        by_prefix = defaultdict[str, list[int]](list)
        for place in texts:
            by_prefix[self.request.prefixes[place]].append(place)
        for prefix, places in by_prefix.items():
            # If the text has a forced prefix, the rest of its output may need more room than the rest of its source
            # allows.
            room = len(self.tokenizer.encode(prefix)) if prefix else 0
            longer = self.request.search.settings.extra_length + room
            asked = self.request.within(extra_length=longer)._replace(
                texts=[texts[place] for place in places],
                prefixes=[prefix] * len(places),
                seeds=[self.request.seeds[place] for place in places],
                terms=terms,
                links=True,
            )
            yield from zip(places, self.translate(asked), strict=True)

    def _begun(self, place: int) -> str:
        """Return the prefix of an output as the output spells it."""
        prefix = self.request.prefixes[place]
        return self.tokenizer.decode(self.tokenizer.encode(prefix)) if prefix else ""

    def _settled(self, place: int, one: Translation) -> Translation:
        """Return a translation and its alternatives; the order and the spaces of protected spans are corrected."""
        begun = len(self._begun(place)) if self.request.prefixes[place] else 0
        text, links = settled(self.request.texts[place], self.terms[place], one.text, one.links, begun)
        others = tuple(self._settled(place, other) for other in one.alternatives)
        return replace(one, text=text, links=tuple(links), alternatives=others)

    def _arranged(self, place: int, one: Translation, rest: Stripped) -> Translation:
        """Return an output and its alternatives, with the missing terms put into them."""
        source, terms, begun = self.request.texts[place], self.terms[place], len(self._begun(place))
        if one.status == "blank":  # nothing is left to translate
            one = copy_of(self._begun(place))
        elif one.status not in TRANSLATED:
            return _kept(one, terms, "lost")

        def arranged(output: Translation) -> Translation:
            missing = [*rest.gaps] or missing_terms(terms, output.text)
            text, links = placed(rest, missing, terms, output.text, output.links, begun)
            return replace(output, text=text, links=tuple(links_of_words(source, text, links)), alternatives=())

        first, others = arranged(one), tuple(map(arranged, one.alternatives))
        kept: Kept = "lost" if missing_terms(terms, first.text) else "placed"
        return _kept(replace(first, alternatives=others), terms, kept)


def _kept(one: Translation, terms: Sequence[Term], kept: Kept) -> Translation:
    """Return a translation with its field `kept` set, without the alternatives that lack a term."""
    others = (replace(other, kept=kept) for other in one.alternatives if not missing_terms(terms, other.text))
    return replace(one, kept=kept, alternatives=tuple(others))


def _without_links(one: Translation) -> Translation:
    return replace(one, links=(), alternatives=tuple(map(_without_links, one.alternatives)))
