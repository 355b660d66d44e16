"""A lexicon that proposes targets of unknown words by analogy with the words of a training corpus.

Endings: "abates" is to "abate" as "cats" is to "cat", so the target changes in the same way. For any two endings, all
pairs of known words with these endings show how the target changes; the change depends on the last symbols of the
target. Beginnings are treated as endings of mirrored words. For a compound, the targets of two known words are joined.
No rules are given: all changes are learned from the training pairs.

lexicon.tsv.gz       the training pairs: a word, a tab and a target per line

Papers: Yvon 1996, "Grapheme-to-phoneme conversion using multiple unbounded overlapping chunks"; Stroppa and Yvon 2005,
"An analogical learner for morphological analysis".
"""

import gzip
import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from sys import intern
from typing import NamedTuple

from glassformer.errors import CheckpointError, shortened
from glassformer.system.files import check_regular, write_safely
from glassformer.text.normalisation import normalise
from glassformer.text.reversal import forward_of
from glassformer.text.tokenizer import Tokenizer

__all__ = ["LEXICON", "Lexicon", "save_lexicon"]

LEXICON = "lexicon.tsv.gz"
"""The name of the lexicon's file in the folder of a run."""
LONGEST_ENDING = 4
"""Maximum length of an exchanged ending, in letters."""
SHORTEST_STEM = 3
"""Minimum length of a stem (the part that two words share) and of each part of a compound, in letters."""
SHORT_CHANGE = 2
"""Maximum length of both endings together after the shortest stems, which many unrelated words share."""
FEWEST_PAIRS = 5
"""Minimum number of known word pairs with two endings for learning how targets change between these endings."""
MOST_PAIRS = 300
"""Maximum number of known word pairs that are examined for two endings."""
FEWEST_SEEN = 3
"""Minimum number of known word pairs whose targets have the same last symbols, to learn a change for these symbols."""
MOST_CHANGES = 3
"""Maximum number of ways in which a target may change between two endings."""
CONTEXT_LENGTHS = (2, 1, 0)
"""Numbers of last symbols of a known word's target that a change may depend on; the first number that fits is used."""
LONGEST_CONTEXT = max(CONTEXT_LENGTHS)
COMPOUND_SHARE = 0.5
"""Assumed share of compounds whose target consists of the targets of the compound's parts."""

Symbols = tuple[str, ...]
"""A target as a sequence of tokens."""
KnownWords = Mapping[str, Sequence[Symbols]]
"""The targets of each known word."""


class _Change(NamedTuple):
    """A change of the end of a target: the symbols `before` become `after`."""

    before: Symbols
    after: Symbols
    share: float
    """Share of the known word pairs with this change, counted with one additional pair without the change (so < 1)."""


class Lexicon:
    """The words of a training corpus with their targets, from which targets of other words are derived."""

    def __init__(self, pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer) -> None:
        self._tokenizer = forward_of(tokenizer)
        known: dict[str, dict[Symbols, None]] = defaultdict(dict)
        for word, target in pairs:
            # Comparing interned symbols is faster.
            known[normalise(word, "plain")][tuple(map(intern, self._tokenizer.split(target)))] = None
        self.words: KnownWords = {word: tuple(targets) for word, targets in known.items()}
        """The targets of each known word, in the order of the corpus."""
        mirrored = {word[::-1]: [one[::-1] for one in targets] for word, targets in self.words.items()}
        self._sides = (_Endings(self.words), _Endings(mirrored))
        self.analogies = lru_cache(maxsize=1 << 16)(self._analogies)

    @classmethod
    def load(cls, path: Path, tokenizer: Tokenizer) -> "Lexicon":
        """Return the lexicon in a file.

        Args:
            path: the file, as `save_lexicon` writes it.
            tokenizer: the run's target tokenizer, which cuts targets into symbols.

        Raises:
            CheckpointError: the file is missing or damaged.
        """
        check_regular(path)
        try:
            with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
                pairs = [tuple(line.rstrip("\n").split("\t")) for line in file]
            return cls(((word, target) for word, target in pairs), tokenizer)
        except FileNotFoundError as error:
            command = f"glassformer tune {shlex.quote(str(path.parent))} --lexicon"
            raise CheckpointError(f"{path} does not exist; `{command}` makes it from the training corpus") from error
        except (OSError, EOFError, ValueError) as error:
            raise CheckpointError(
                f"{path} is damaged: {shortened(str(error))}; delete the file, and tune again"
            ) from error

    def _analogies(self, word: str) -> Mapping[str, float]:
        """Return the targets of a word by analogy, best first, each with its confidence (above 0, below 1).

        The confidence is the probability that at least one analogy holds, times the target's share of the evidence. The
        word's own targets in the corpus are not used.
        """
        word = normalise(word, "plain")
        evidence: dict[Symbols, float] = defaultdict(float)
        for target, share, stem in self._derived(word):
            evidence[target] -= math.log1p(-share) * stem / len(word)
        total = sum(evidence.values())
        held = -math.expm1(-total)
        ranked = sorted(evidence.items(), key=lambda one: (-one[1], one[0]))
        return {self._tokenizer.join(target): held * some / total for target, some in ranked if target}

    def _derived(self, word: str) -> Iterator[tuple[Symbols, float, int]]:
        """Yield each analogy's target, the share of known word pairs that support the analogy, and the stem length."""
        endings, beginnings = self._sides
        yield from endings.derived(word)
        for target, share, stem in beginnings.derived(word[::-1]):
            yield target[::-1], share, stem
        for cut in range(SHORTEST_STEM, len(word) - SHORTEST_STEM + 1):
            for first in self.words.get(word[:cut], ()):
                for second in self.words.get(word[cut:], ()):
                    same = first[-1:] == second[:1]  # joined words may share a sound: "bookkeeper" has a single K sound
                    yield first + second[same:], COMPOUND_SHARE, len(word)


class _Endings:
    """The known words, grouped by stem and by ending, and the changes of targets between two endings."""

    def __init__(self, words: KnownWords) -> None:
        self._words = words
        # The endings of a stem are stored in one string, because Python's garbage collector would traverse 500 000
        # lists repeatedly.
        self._endings: dict[str, str] = defaultdict(str)
        """For each stem, the endings of the words with this stem; a tab precedes each ending."""
        self._stems: dict[str, set[str]] = defaultdict(set)
        """For each ending, the stems of the words with this ending."""
        # equal stems share one string object, so that their sets intersect faster and take less memory
        same: dict[str, str] = {}
        for word in words:
            for stem, ending in _cuts(word):
                self._endings[stem] += f"\t{ending}"
                self._stems[ending].add(same.setdefault(stem, stem))
        self._changes = lru_cache(maxsize=None)(self._learned)

    def derived(self, word: str) -> Iterator[tuple[Symbols, float, int]]:
        """Apply each learned change to each known word with the same stem; yield targets, shares and stem lengths."""
        for stem, ending in _cuts(word):
            longest = SHORT_CHANGE - len(ending) if len(stem) == SHORTEST_STEM else LONGEST_ENDING
            if longest < 0:
                continue
            for known in self._endings.get(stem, "").split("\t")[1:]:
                if known[:1] == ending[:1]:
                    continue  # both words share a longer stem, or are the same word
                if len(known) > longest:
                    continue
                if changes := self._changes(known, ending):
                    for target in self._words[stem + known]:
                        for one in _fitting(changes, target):
                            yield target[: len(target) - len(one.before)] + one.after, one.share, len(stem)

    def _learned(self, known: str, ending: str) -> Mapping[Symbols, Sequence[_Change]]:
        """Return how targets change if the ending `known` becomes `ending`, keyed by the last symbols of the target."""
        stems = self._stems.get(ending, ())
        if len(stems) < FEWEST_PAIRS or len(both := self._stems[known].intersection(stems)) < FEWEST_PAIRS:
            return {}
        found = Counter(
            _change(target, self._words[stem + ending])
            for stem in sorted(both)[:: -(-len(both) // MOST_PAIRS)]
            for target in self._words[stem + known]
        )
        seen: dict[Symbols, dict[tuple[Symbols, Symbols], int]] = defaultdict(lambda: defaultdict(int))
        # There are few changes, so each change can be counted in all contexts.
        for (end, before, after), count in found.items():
            for length in CONTEXT_LENGTHS:
                seen[end[-length:] if length else ()][before, after] += count
        totals = {context: sum(counts.values()) for context, counts in seen.items()}
        return {
            context: [_Change(*one, count / (totals[context] + 1)) for one, count in _most_common(counts)]
            for context, counts in seen.items()
            if totals[context] >= FEWEST_SEEN
        }


def save_lexicon(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Write training pairs as a lexicon. The same pairs always give the same bytes.

    Raises:
        CheckpointError: the file cannot be written.
    """
    lines = dict.fromkeys(f"{normalise(word)}\t{normalise(target)}\n" for word, target in pairs)
    content = gzip.compress("".join(lines).encode(), mtime=0)
    write_safely(path, lambda temporary: temporary.write_bytes(content))


def _cuts(word: str) -> Iterator[tuple[str, str]]:
    """Yield each stem of a word with the remaining ending, longest stem first."""
    for cut in range(len(word), max(SHORTEST_STEM, len(word) - LONGEST_ENDING) - 1, -1):
        yield word[:cut], word[cut:]


def _fitting(changes: Mapping[Symbols, Sequence[_Change]], target: Symbols) -> Iterator[_Change]:
    """Yield the changes that fit a target, as learned in the longest context that equals the target's last symbols."""
    contexts = (target[-length:] if length else () for length in CONTEXT_LENGTHS)
    for one in next((changes[context] for context in contexts if context in changes), ()):
        if target[len(target) - len(one.before) :] == one.before:
            yield one


def _most_common(counts: Mapping[tuple[Symbols, Symbols], int]) -> list[tuple[tuple[Symbols, Symbols], int]]:
    return sorted(counts.items(), key=itemgetter(1), reverse=True)[:MOST_CHANGES]


def _change(target: Symbols, others: Sequence[Symbols]) -> tuple[Symbols, Symbols, Symbols]:
    """Return a target's last symbols, and the old and new end that turn it into the nearest other target."""
    shared, other = _shared(target, others[0]), others[0]
    for one in others[1:]:
        if (more := _shared(target, one)) > shared:
            shared, other = more, one
    return target[-LONGEST_CONTEXT:], target[shared:], other[shared:]


def _shared(one: Symbols, other: Symbols) -> int:
    """Return the number of symbols with which both targets begin."""
    shared = min(len(one), len(other))
    # shortens the common beginning symbol by symbol; this is fast because endings are short
    while one[:shared] != other[:shared]:
        shared -= 1
    return shared
