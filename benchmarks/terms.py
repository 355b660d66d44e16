"""Measure what protected spans and glossaries cost: `python -m benchmarks.terms NAME RUN [SRC REF] [--lines 2000]`.

Each test sentence gets one span at a random place: an address, an e-mail address, a placeholder, a tag or a number, in
turn. The span must occur in the translation exactly once. The rest of the translation, without the span, is scored
against the reference, and compared with the translation of the sentence without the span.

Then a glossary requires a certain translation of some words, in sentences whose references have this translation.
Another glossary keeps the same words untranslated; in the references, these words replace their translations. Both are
compared with the outputs without a glossary.

Without SRC and REF, the run's own test set is used. The figures are written to results/terms-NAME.json.
"""

import argparse
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command import as_command
from benchmarks.results import described, machine, number, table, write
from glassformer.corpus.word_alignment import align_words
from glassformer.evaluation.items import read_items
from glassformer.evaluation.metrics import score_texts
from glassformer.jobs.evaluation import corpus_of, held_out
from glassformer.translating.translation import Translation
from glassformer.translator import Translator

NAME = "terms"
ENGINES = ("torch", "ctranslate2")
TERMS = 50
"""Number of entries of a glossary."""
SHORTEST_TERM, FEWEST_LINKS = 4, 5
"""Minimum number of letters of a glossary's words, and minimum number of times that the aligner links such a word."""
KINDS: tuple[Callable[[random.Random], str], ...] = (
    lambda chance: f"https://example.org/{_letters(chance)}/{chance.randrange(10**4)}?id={_letters(chance)}",
    lambda chance: f"{_letters(chance)}.{_letters(chance)}@example.com",
    lambda chance: chance.choice(["{{name}}", "{{user.name}}", "%s", "%(count)d", "%1$s", "$count$"]),
    lambda chance: f'<x id="{chance.randrange(100)}"/>',
    lambda chance: str(chance.randrange(100, 10**6)),
)

Pair = tuple[str, str]
_WORD = re.compile(r"[^\W\d_]+")
_WHOLE_WORD = re.compile(r"(?<![\w-])(?:(?<!['’])[^\W\d_]|[^\W\d_]{2,})(?![\w'’-])")
"""A word, without an elided word before it (l') and without the ending of a contraction after it ('ll)."""


class Outcome(NamedTuple):
    """Translations of the lines of a set."""

    found: list[Translation]
    seconds: float


def _letters(chance: random.Random) -> str:
    return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(4, 8)))


def with_spans(sources: Sequence[str], seed: int = 1) -> list[tuple[str, str]]:
    """Return, for each text, the text with a span inserted after one of its words, and this span."""
    found = []
    for place, source in enumerate(sources):
        chance = random.Random(repr((seed, place)))
        words, span = source.split(), KINDS[place % len(KINDS)](chance)
        at = chance.randint(1, max(len(words) - 1, 1))
        found.append((" ".join([*words[:at], span, *words[at:]]), span))
    return found


def frequent_translations(pairs: Sequence[Pair]) -> dict[str, str]:
    """Return source words, in lower case, each with the target word that most of its occurrences are aligned to."""
    split = [(_WHOLE_WORD.findall(source), _WHOLE_WORD.findall(target)) for source, target in pairs]
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for (source, target), links in zip(split, align_words(split), strict=True):
        for word, link in zip(target, links, strict=True):
            if link is not None:
                found[source[link].lower()][word.lower()] += 1
    best = {word: (*forms.most_common(1)[0], forms.total()) for word, forms in found.items()}
    return {word: form for word, (form, often, total) in best.items() if often >= FEWEST_LINKS and 2 * often > total}


def in_place_of_words(pairs: Sequence[Pair], seed: int = 1) -> list[tuple[str, str, str]]:
    """Return the pairs in which a span replaces a word and its usual translation, and the span of each pair."""
    translations, found = frequent_translations(pairs), []
    for place, (source, target) in enumerate(pairs):
        chance, words = random.Random(repr((seed, place))), [Counter(_WORD.findall(text)) for text in (source, target)]
        both = sorted(
            word
            for word, count in words[0].items()
            if len(word) >= SHORTEST_TERM and count == words[1][translations.get(word, "")] == 1
        )
        if both:
            word, span = chance.choice(both), KINDS[place % len(KINDS)](chance)
            found.append((_with_span(source, word, span), _with_span(target, translations[word], span), span))
    return found


def _with_span(text: str, word: str, span: str) -> str:
    """Return a text with a span in place of a word."""
    return re.sub(rf"\b{word}\b", lambda _: span, text)


def without(text: str, span: str) -> str:
    """Return a text without a span, and without the space before or after it."""
    return re.sub(r" +([.,])", r"\1", " ".join(text.replace(span, " ").split()))


def aligned_terms(pairs: Sequence[Pair], seed: int = 1) -> dict[str, str]:
    """Return some words of the sources, each with the word that it is aligned to most often."""
    split = [(_WORD.findall(source), _WORD.findall(target)) for source, target in pairs]
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for (source, target), links in zip(split, align_words(split), strict=True):
        for word, link in zip(target, links, strict=True):
            if link is not None and min(len(source[link]), len(word)) >= SHORTEST_TERM and source[link] != word:
                found[source[link].lower()][word.lower()] += 1
    frequent = sorted(word for word, forms in found.items() if forms.total() >= FEWEST_LINKS)
    chosen = random.Random(seed).sample(frequent, min(TERMS, len(frequent)))
    return {word: found[word].most_common(1)[0][0] for word in chosen}


def with_terms(pairs: Sequence[Pair], terms: dict[str, str]) -> list[Pair]:
    """Return the pairs whose source has terms, each as often as the reference has the term's translation."""
    kept = []
    for source, target in pairs:
        words, there = _counted(source, terms), Counter(word.lower() for word in _WORD.findall(target))
        if words and all(there[terms[word]] == count for word, count in words.items()):
            kept.append((source, target))
    return kept


def untranslated(pairs: Sequence[Pair], terms: dict[str, str]) -> list[Pair]:
    """Return the pairs with references in which the terms themselves replace the translations of the terms."""
    back = {target: source for source, target in terms.items()}

    def replaced(source: str, target: str) -> str:
        words = _counted(source, terms)

        def instead(found: re.Match[str]) -> str:
            word = back.get(found[0].lower(), "")
            return word if word in words else found[0]

        return _WORD.sub(instead, target)

    return [(source, replaced(source, target)) for source, target in pairs]


def _counted(text: str, terms: dict[str, str]) -> Counter[str]:
    return Counter(word for found in _WORD.findall(text) if (word := found.lower()) in terms)


def translated(translator: Translator, sources: Sequence[str], **options: Any) -> Outcome:
    """Return the translations of some texts, and the time that the translation took."""
    began = time.perf_counter()
    found = translator.translate(sources, log_probs=False, guards=False, **options)
    return Outcome(found, time.perf_counter() - began)


def bleu(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Return the BLEU of outputs."""
    [score] = score_texts(outputs, [[reference] for reference in references], metrics=["bleu"])
    return score.value


def row(
    name: str, engine: str, base: float, rest: float, alone: int, kept: int, both: Sequence[Outcome]
) -> dict[str, Any]:
    """Return the figures of one set of sentences."""
    free, made = both
    lines = len(made.found)
    return {
        "set": name,
        "engine": engine,
        "lines": lines,
        "kept_by_the_model": alone / lines,
        "kept": kept / lines,
        "ways": dict(Counter(one.kept for one in made.found)),
        "bleu": base,
        "bleu_with_terms": rest,
        "milliseconds": 1000 * free.seconds / lines,
        "milliseconds_with_terms": 1000 * made.seconds / lines,
    }


def of_spans(translator: Translator, engine: str, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the figures for protected spans."""
    marked, references = with_spans([source for source, _ in pairs]), [target for _, target in pairs]
    texts = [text for text, _ in marked]
    plain = translated(translator, [source for source, _ in pairs], protect=False)
    free, made = translated(translator, texts, protect=False), translated(translator, texts)

    def kept(outcome: Outcome) -> int:
        return sum(one.text.count(span) == 1 for one, (_, span) in zip(outcome.found, marked, strict=True))

    rest = [without(one.text, span) for one, (_, span) in zip(made.found, marked, strict=True)]
    base = bleu([one.text for one in plain.found], references)
    return row("spans", engine, base, bleu(rest, references), kept(free), kept(made), (free, made))


def of_words(translator: Translator, engine: str, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the figures for sentences in which a protected span replaces a word; BLEU counts the spans, too."""
    sources, references, spans = zip(*in_place_of_words(pairs), strict=True)
    free, made = translated(translator, sources, protect=False), translated(translator, sources)

    def kept(outcome: Outcome) -> int:
        return sum(one.text.count(span) == 1 for one, span in zip(outcome.found, spans, strict=True))

    base, rest = (bleu([one.text for one in outcome.found], references) for outcome in (free, made))
    return row("spans for words", engine, base, rest, kept(free), kept(made), (free, made))


def of_glossary(
    translator: Translator,
    engine: str,
    name: str,
    pairs: Sequence[Pair],
    originals: Sequence[Pair],
    terms: dict[str, str],
) -> dict[str, Any]:
    """Return the figures for a glossary; `pairs` are the pairs `originals`, changed as the glossary requires."""
    sources, references = zip(*pairs, strict=True)
    free, made = translated(translator, sources), translated(translator, sources, glossary=terms)

    def kept(outcome: Outcome) -> int:
        count = 0
        for one, source in zip(outcome.found, sources, strict=True):
            there = Counter(word.lower() for word in _WORD.findall(one.text))
            count += all(there[terms[word]] >= often for word, often in _counted(source, terms).items())
        return count

    base = bleu([one.text for one in free.found], [target for _, target in originals])
    rest = bleu([one.text for one in made.found], references)
    return row(name, engine, base, rest, kept(free), kept(made), (free, made))


def measure(run: Path, engine: str, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Return the figures of all sets with an engine."""
    translator = Translator.load(run, engine=engine, workers=1)  # type: ignore[arg-type]  # one of ENGINES
    translated(translator, [source for source, _ in pairs[:64]], protect=False)
    terms = aligned_terms(pairs)
    kept = with_terms(pairs, terms)
    same, words = {word: word for word in terms}, untranslated(kept, terms)
    return [
        of_spans(translator, engine, pairs),
        of_words(translator, engine, pairs),
        of_glossary(translator, engine, "glossary", kept, kept, terms),
        of_glossary(translator, engine, "untranslated words", words, kept, same),
    ]


def shown(rows: Sequence[dict[str, Any]]) -> str:
    """Return the figures as a table."""
    head = ("set, engine", "lines", "kept alone", "kept", "ways", "BLEU", "BLEU with terms", "ms", "ms with terms")
    return table(
        head,
        [
            [
                f"{one['set']}, {one['engine']}",
                number(one["lines"]),
                f"{100 * one['kept_by_the_model']:.1f} %",
                f"{100 * one['kept']:.2f} %",
                " / ".join(str(one["ways"].get(way, 0)) for way in ("output", "placed", "lost")),
                f"{one['bleu']:.2f}",
                f"{one['bleu_with_terms']:.2f}",
                f"{one['milliseconds']:.1f}",
                f"{one['milliseconds_with_terms']:.1f}",
            ]
            for one in rows
        ],
    )


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    name = figures["name"]
    return (
        f"## Protected spans and glossaries: {name}\n\n`{figures['command']}`, {figures['day']}: "
        f"{number(figures['lines'])} test sentences.\n\n"
        "- *Spans*: each sentence contains one address, e-mail address, placeholder, tag or number at a random "
        "position. *BLEU* is measured on the same sentences without spans, and *BLEU with terms* on the outputs after "
        "their spans have been removed.\n"
        "- *Spans for words*: a span replaces one word of the sentence, and the word's translation in the reference. "
        "Here both scores include the spans: *BLEU* is measured without protection of the spans, and *BLEU with terms* "
        "with protection.\n"
        "- *Glossary*: a glossary has translations of some words, one for each word. The sentences are those whose "
        "references contain the glossary's translation of such a word.\n"
        "- *Untranslated words*: the same words must stay untranslated, and replace one word each in the references. "
        "Some of these words, such as verbs, have a translation of two words; then no output can equal the reference.\n"
        "- *Kept alone* is the share of sentences whose terms the model writes by itself, and *kept* is the share of "
        "sentences whose output contains all terms. *Ways* counts the sentences for each value of the field `kept`: "
        "output, placed, lost. Milliseconds are per sentence, with one worker.\n\n"
        f"{shown(figures['rows'])}\n{described(figures['machine'])}\n"
    )


def pairs_of(run: Path, source: str | None, reference: str | None, lines: int) -> list[Pair]:
    """Return the first pairs of a test set."""
    configuration = Translator.load(run).bundle.configuration
    if source:
        sets = [read_items(corpus_of(source, reference, configuration))]
    else:
        sets = list(held_out(configuration).values())
    pairs = [
        (text, several[0]) for items in sets for text, several in zip(items.sources, items.references, strict=True)
    ]
    return pairs[:lines]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("source", nargs="?", metavar="SRC")
    parser.add_argument("reference", nargs="?", metavar="REF")
    parser.add_argument("--lines", type=int, default=2000, metavar="N")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="repeatable; by default, all")
    given = parser.parse_args()
    of = machine()
    pairs = pairs_of(given.run, given.source, given.reference, given.lines)
    rows = [one for engine in given.engine or ENGINES for one in measure(given.run, engine, pairs)]
    print(shown(rows))
    write(f"{NAME}-{given.name}", {"name": given.name, "lines": len(pairs), "rows": rows}, of)


if __name__ == "__main__":
    as_command(main)
