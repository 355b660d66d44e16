"""A lexicon that proposes targets of unknown words by analogy with the words of a training corpus.

An ending for another: "abates" is to "abate" as "cats" is to "cat", so the target changes in the same way. Whatever a
word's ending and a known word's ending are, all pairs of known words with these endings show how targets change between
the two, depending on the last symbols of the known word's target. Beginnings are endings of mirrored words. Compounds
join the targets of two known words. No rule is given: all come from the training pairs.

lexicon.tsv.gz       the training pairs, a word, a tab and a target per line

Papers: Yvon 1996, "Grapheme-to-phoneme conversion using multiple unbounded overlapping chunks"; Stroppa and Yvon 2005,
"An analogical learner for morphological analysis".
"""

import gzip
import math
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
"""The file's name in the folder of its run."""
LONGEST_ENDING = 4
"""Maximum length of an exchanged ending, in letters."""
SHORTEST_STEM = 3
"""Minimum length of what two words share, and of the parts of a compound, in letters."""
SHORT_CHANGE = 2
"""Maximum length of both endings together after a shortest stem, which many unrelated words share."""
FEWEST_PAIRS = 5
"""Minimum number of pairs of known words that show how targets change between two endings."""
MOST_PAIRS = 300
"""Maximum number of these pairs that are looked at."""
FEWEST_SEEN = 3
"""Minimum number of these pairs with the same last symbols."""
MOST_CHANGES = 3
"""Maximum number of ways in which a target may change between two endings."""
CONTEXT_LENGTHS = (2, 1, 0)
"""Numbers of last symbols of a known word's target on which a change may depend, the most telling one first."""
LONGEST_CONTEXT = max(CONTEXT_LENGTHS)
COMPOUND_SHARE = 0.5
"""Share of compound words whose target consists of the targets of their parts."""

Symbols = tuple[str, ...]
"""A target, in tokens."""
KnownWords = Mapping[str, Sequence[Symbols]]
"""The targets of each known word."""


class _Change(NamedTuple):
    """A change of the end of a target."""

    before: Symbols
    after: Symbols
    share: float
    """Share of the pairs of known words that show it; below 1, because one more pair might not."""


class Lexicon:
    """The words of a training corpus, and what follows from them for others."""

    def __init__(self, pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer) -> None:
        self._tokenizer = forward_of(tokenizer)
        known: dict[str, dict[Symbols, None]] = defaultdict(dict)
        for word, target in pairs:
            # Comparing interned symbols is faster.
            known[normalise(word)][tuple(map(intern, self._tokenizer.split(target)))] = None
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
            raise CheckpointError(
                f"{path} does not exist; `glassformer tune {path.parent} --lexicon` makes it from the training corpus"
            ) from error
        except (OSError, EOFError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged: {shortened(str(error))}; delete it, and tune again") from error

    def _analogies(self, word: str) -> Mapping[str, float]:
        """Return the targets of a word by analogy, best first, each with its confidence (above 0, below 1).

        The confidence is the probability that any of the analogies holds, times this target's share of the evidence.
        The targets that the corpus itself gives to the word are not used.
        """
        word = normalise(word)
        evidence: dict[Symbols, float] = defaultdict(float)
        for target, share, stem in self._derived(word):
            evidence[target] -= math.log1p(-share) * stem / len(word)
        total = sum(evidence.values())
        held = -math.expm1(-total)
        ranked = sorted(evidence.items(), key=lambda one: (-one[1], one[0]))
        return {self._tokenizer.join(target): held * some / total for target, some in ranked if target}

    def _derived(self, word: str) -> Iterator[tuple[Symbols, float, int]]:
        """Yield the result of each analogy: a target, its share among the known pairs, and the length of the stem."""
        endings, beginnings = self._sides
        yield from endings.derived(word)
        for target, share, stem in beginnings.derived(word[::-1]):
            yield target[::-1], share, stem
        for cut in range(SHORTEST_STEM, len(word) - SHORTEST_STEM + 1):
            for first in self.words.get(word[:cut], ()):
                for second in self.words.get(word[cut:], ()):
                    same = first[-1:] == second[:1]  # joined words may share a sound: "bookkeeper" has one K
                    yield first + second[same:], COMPOUND_SHARE, len(word)


class _Endings:
    """The known words by their beginnings, and the changes of targets between their endings."""

    def __init__(self, words: KnownWords) -> None:
        self._words = words
        # All endings are kept in one string, because Python's garbage collector would traverse 500 000 lists
        # repeatedly.
        self._endings: dict[str, str] = defaultdict(str)
        """The endings of the words with each stem, each after a tab."""
        self._stems: dict[str, set[str]] = defaultdict(set)
        """The stems of the words with each ending."""
        # equal stems share one string object, so that their sets intersect faster and take less memory
        same: dict[str, str] = {}
        for word in words:
            for stem, ending in _cuts(word):
                self._endings[stem] += f"\t{ending}"
                self._stems[ending].add(same.setdefault(stem, stem))
        self._changes = lru_cache(maxsize=None)(self._learned)

    def derived(self, word: str) -> Iterator[tuple[Symbols, float, int]]:
        """Yield a target of the word for each known word with another ending and each change between the two."""
        for stem, ending in _cuts(word):
            longest = SHORT_CHANGE - len(ending) if len(stem) == SHORTEST_STEM else LONGEST_ENDING
            if longest < 0:
                continue
            for known in self._endings.get(stem, "").split("\t")[1:]:
                if known[:1] == ending[:1]:
                    continue  # the two words share a longer stem, or are the same word
                if len(known) > longest:
                    continue
                if changes := self._changes(known, ending):
                    for target in self._words[stem + known]:
                        for one in _fitting(changes, target):
                            yield target[: len(target) - len(one.before)] + one.after, one.share, len(stem)

    def _learned(self, known: str, ending: str) -> Mapping[Symbols, Sequence[_Change]]:
        """Return the changes of targets from one ending to the other, by the last symbols of the first one's target."""
        stems = self._stems.get(ending, ())
        if len(stems) < FEWEST_PAIRS or len(both := self._stems[known].intersection(stems)) < FEWEST_PAIRS:
            return {}
        found = Counter(
            _change(target, self._words[stem + ending])
            for stem in sorted(both)[:: -(-len(both) // MOST_PAIRS)]
            for target in self._words[stem + known]
        )
        seen: dict[Symbols, dict[tuple[Symbols, Symbols], int]] = defaultdict(lambda: defaultdict(int))
        # There are few changes, so each can be counted in all contexts.
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
    """Write training pairs as a lexicon: the same pairs always give the same bytes.

    Raises:
        CheckpointError: the file cannot be written.
    """
    lines = dict.fromkeys(f"{normalise(word)}\t{normalise(target)}\n" for word, target in pairs)
    content = gzip.compress("".join(lines).encode(), mtime=0)
    write_safely(path, lambda temporary: temporary.write_bytes(content))


def _cuts(word: str) -> Iterator[tuple[str, str]]:
    """Yield the stems and endings of a word, the longest stem first."""
    for cut in range(len(word), max(SHORTEST_STEM, len(word) - LONGEST_ENDING) - 1, -1):
        yield word[:cut], word[cut:]


def _fitting(changes: Mapping[Symbols, Sequence[_Change]], target: Symbols) -> Iterator[_Change]:
    """Yield the changes that a target allows, after as many of its last symbols as have been seen."""
    contexts = (target[-length:] if length else () for length in CONTEXT_LENGTHS)
    for one in next((changes[context] for context in contexts if context in changes), ()):
        if target[len(target) - len(one.before) :] == one.before:
            yield one


def _most_common(counts: Mapping[tuple[Symbols, Symbols], int]) -> list[tuple[tuple[Symbols, Symbols], int]]:
    return sorted(counts.items(), key=itemgetter(1), reverse=True)[:MOST_CHANGES]


def _change(target: Symbols, others: Sequence[Symbols]) -> tuple[Symbols, Symbols, Symbols]:
    """Return the last symbols of a target, and how its end differs from the nearest of the others."""
    shared, other = _shared(target, others[0]), others[0]
    for one in others[1:]:
        if (more := _shared(target, one)) > shared:
            shared, other = more, one
    return target[-LONGEST_CONTEXT:], target[shared:], other[shared:]


def _shared(one: Symbols, other: Symbols) -> int:
    """Return the number of symbols with which both targets begin."""
    shared = min(len(one), len(other))
    # shortens the common beginning step by step, which is quick because endings are short
    while one[:shared] != other[:shared]:
        shared -= 1
    return shared
