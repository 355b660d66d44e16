"""The moment of a choice: a source, the words written so far, and two words, one of which is right."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, cached_property

import torch
from torch import Tensor

import glassformer as gf
from glassformer.corpus.tasks import Example, english_french
from glassformer.corpus.tasks.world.ambiguous import AMBIGUOUS
from glassformer.corpus.tasks.world.coreference import PAIRS
from glassformer.decoding.transformer_step import padded
from glassformer.model.taps import Edit
from glassformer.watch.inspection import edits, heads_of
from glassformer.watch.inspection.edits import HeadSet

ANIMALS, PLACES = ({pair[side].english for pair in PAIRS} for side in (0, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One sentence at the moment of a choice."""

    words: tuple[str, ...]
    """The source's words, `<eos>` last."""
    source: tuple[int, ...]
    prefix: tuple[int, ...]
    """The tokens written so far, without `<bos>`."""
    right: int
    wrong: int
    roles: Mapping[str, tuple[int, ...]]
    """Positions of the source, by role."""
    written: Mapping[str, tuple[int, ...]]
    """Positions of the decoder's input (`<bos>` is 0) that translate each role."""
    kind: str
    """Which sentence of its pair it is, "animal" or "place"; or the ambiguous word."""
    sense: str = ""
    """Which meaning of the ambiguous word: its French noun, or "" if that has none."""


class Choices:
    """Many choices, run side by side."""

    def __init__(self, model: gf.Transformer, choices: Sequence[Choice]) -> None:
        self.model, self.each = model, list(choices)
        self.source = padded(model, [choice.source for choice in choices])
        self.target = padded(model, [[model.config.bos_id, *choice.prefix] for choice in choices])
        self.last = torch.tensor([len(choice.prefix) for choice in choices])
        """The decoder's row from which the choice is read."""
        self.right, self.wrong = (
            torch.tensor([getattr(choice, side) for choice in choices])[:, None] for side in ("right", "wrong")
        )

    @torch.no_grad()
    def margins(self, changes: Mapping[str, Edit] | None = None) -> Tensor:
        """Return log p(right word) − log p(wrong word) of each sentence, in nats, under these edits."""
        changes = changes or {}
        with gf.intervene(self.model, changes):
            # Without edits of its own, this may be called under an intervention in the encoder.
            same = changes and all(name.startswith(("decoder.", "target.")) for name in changes)
            memory = self.memory if same else self.model.encode(self.source)
            logits = self.model.decode(self.target, memory, self.source)
        row = logits[torch.arange(len(logits)), self.last]
        return (row.gather(1, self.right) - row.gather(1, self.wrong)).squeeze(1)

    @cached_property
    @torch.no_grad()
    def memory(self) -> Tensor:
        """The encoder's output for the sentences."""
        return self.model.encode(self.source)

    @torch.no_grad()
    def trace(self, patterns: str | Iterable[str]) -> Mapping[str, Tensor]:
        """Return a recording of all sentences."""
        with gf.record(self.model, patterns) as trace:
            self.model(self.source, self.target)
        return trace

    def at(self, *roles: str) -> Tensor:
        """Return the cells (sentence, source position) of these roles."""
        return _cells(self.source, [choice.roles for choice in self.each], roles)

    def written(self, *roles: str) -> Tensor:
        """Return the cells (sentence, target position) of these roles' translations."""
        return _cells(self.target, [choice.written for choice in self.each], roles)

    def of(self, kind: str) -> Tensor:
        """Return which sentences are of this kind."""
        return torch.tensor([choice.kind == kind for choice in self.each])


def _cells(ids: Tensor, places: Sequence[Mapping[str, tuple[int, ...]]], roles: Sequence[str]) -> Tensor:
    cells = torch.zeros(ids.shape, dtype=torch.bool)
    for row, each in enumerate(places):
        cells[row, [place for role in roles for place in each.get(role, ())]] = True
    return cells


def attentions(model: gf.Transformer, *ends: HeadSet) -> list[str]:
    """Return the names of the attentions in "encoder", "decoder" (masked self-attention) or "cross"."""
    wanted = {name for end in ends for name, _ in heads_of(model, end)}
    return [name for name in edits.attentions(model) if name in wanted]


def hidden(names: Iterable[str], keys: Tensor) -> dict[str, Edit]:
    """Return the edits that hide these keys, (sentence, key position), in these attentions.

    Like a mask, they set scores to −∞ before the softmax.
    """
    return {f"{name}.scores": lambda x: x.masked_fill(keys[:, None, None], -torch.inf) for name in names}


def share(margins: Tensor) -> float:
    """Return the share of sentences whose right word is the more probable one, in %."""
    return 100 * (margins > 0).float().mean().item()


def task_examples(split: str, seed: int, *, kind: str | None = None, limit: int | None = None) -> list[Example]:
    """Return `limit` examples of one kind from a split of minimal pairs, spread over the split."""
    chosen = [example for example in _task(seed)[split] if kind in (None, example.kind)]
    pairs = [chosen[place : place + 2] for place in range(0, len(chosen), 2)]
    wanted = len(pairs) if limit is None else max(1, min(len(pairs), limit // 2))
    return [example for place in range(wanted) for example in pairs[place * len(pairs) // wanted]]


@cache
def _task(seed: int) -> dict[str, list[Example]]:
    """Return the splits of minimal pairs, which do not depend on the sizes of the other splits."""
    return english_french(seed, train=0, valid=0, test=0, unseen=0, longer=0).splits


def pronouns(translator: gf.Translator, examples: Sequence[Example]) -> Choices:
    """Return the choice between "il" and "elle" in sentences of the split "coreference", the two of a pair in turn."""
    return Choices(translator.model, [_pronoun(translator, one, place % 2) for place, one in enumerate(examples)])


def _pronoun(translator: gf.Translator, example: Example, member: int) -> Choice:
    bundle = translator.bundle
    source = (*bundle.source_tokenizer.encode(example.source), bundle.model_config.eos_id)
    target = bundle.target_tokenizer.encode(example.target)
    written = bundle.target_tokenizer.tokens(target)
    pronouns = [place for place, word in enumerate(written) if word in ("il", "elle")]
    words = [*bundle.source_tokenizer.tokens(source[:-1]), "<eos>"]
    place, because = pronouns[-1], words.index("because")
    right, wrong = written[place], "elle" if written[place] == "il" else "il"
    start = _phrase(words, max(i for i in range(because) if words[i] in PLACES)).start
    roles = {
        "animal": [i for i in range(because) if words[i] in ANIMALS][:1],
        "place": [i for i in range(because) if words[i] in PLACES][-1:],
        "verb": [start - 1],
        "because": [because],
        "it": [because + 1],
        "was": [because + 2],
        "degree": [*range(because + 3, len(words) - 3)],
        "adjective": [len(words) - 3],
        "full stop": [len(words) - 2],
        "<eos>": [len(words) - 1],
    }
    roles["rest"] = sorted({*range(len(words))} - {i for places in roles.values() for i in places})
    ids = [bundle.target_tokenizer.encode(word)[0] for word in (right, wrong)]
    phrases = {role: _phrase(words, roles[role][0]) for role in ("animal", "place")}
    return Choice(
        words=tuple(words),
        source=source,
        prefix=tuple(target[:place]),
        right=ids[0],
        wrong=ids[1],
        roles={role: tuple(places) for role, places in roles.items()},
        written={role: _translated(example, phrase, place) for role, phrase in phrases.items()},
        kind=("animal", "place")[member],
    )


def _phrase(words: Sequence[str], noun: int) -> range:
    """Return the positions of a noun phrase, from its article or possessive to the noun."""
    return range(max(place for place in range(noun) if words[place].lower() in _DETERMINERS), noun + 1)


def _translated(example: Example, sources: Iterable[int], before: int) -> tuple[int, ...]:
    """Return the positions of the decoder's input, before a target word, that come from these source words."""
    bits = sum(1 << source for source in sources)
    return tuple(place + 1 for place, origin in enumerate(example.origins[:before]) if origin & bits)


_DETERMINERS = {"the", "this", "my", "our", "his", "her", "a", "an", "their", "your", "its", "these", "that"}


def senses(translator: gf.Translator, examples: Sequence[Example], *, prefix_of_partner: bool = False) -> Choices:
    """Return the choice between two meanings of an ambiguous word, in sentences of the split "senses".

    The choice is made where the translation of the word begins: at its noun, or at the article if that differs. With
    `prefix_of_partner`, the tokens written so far come from the other sentence of the pair.
    """
    partners = [examples[place ^ 1] for place in range(len(examples))]
    both = zip(examples, partners, strict=True)
    return Choices(translator.model, [_sense(translator, one, other, prefix_of_partner) for one, other in both])


def _sense(translator: gf.Translator, one: Example, other: Example, swapped: bool) -> Choice:
    bundle = translator.bundle
    sources, targets = bundle.source_tokenizer, bundle.target_tokenizer
    source = (*sources.encode(one.source), bundle.model_config.eos_id)
    words, others = (sources.tokens(sources.encode(each.source)) for each in (one, other))
    mine, theirs = (targets.tokens(targets.encode(each.target)) for each in (one, other))
    here, there = _first_of_noun(one, words, mine, other, others, theirs)
    word = _place(words, one.kind)
    telling = _unshared(words, others)
    same = here > 0 and mine[here - 1] == theirs[there - 1]  # the last word written, "la", tells nothing
    ids = targets.encode(other.target if swapped else one.target)[: there if swapped else here]
    return Choice(
        words=(*words, "<eos>"),
        source=source,
        prefix=tuple(ids),
        right=targets.encode(one.target)[here],
        wrong=targets.encode(other.target)[there],
        roles={
            "telling": tuple(place for place in telling if place != word),
            "word": (word,),
            "other": tuple(place for place in range(len(source)) if place not in telling and place != word),
        },
        written={"telling": tuple(place + 1 for place in _unshared(mine, theirs) if place < here - same)},
        kind=one.kind,
        sense=next((noun for noun in _FRENCH[one.kind] if {noun, noun + "s"} & set(mine)), ""),
    )


_FRENCH = {kind: [meaning.noun.french for meaning in word.meanings] for kind, word in AMBIGUOUS.items()}


def _place(words: Sequence[str], kind: str) -> int:
    return max(place for place, word in enumerate(words) if word == kind)


def _unshared(one: Sequence[str], other: Sequence[str]) -> list[int]:
    """Return the positions of the words that the other sentence does not have."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    shared = {place for block in blocks for place in range(block.a, block.a + block.size)}
    return [place for place in range(len(one)) if place not in shared]


def _first_of_noun(
    one: Example,
    words: Sequence[str],
    mine: Sequence[str],
    other: Example,
    others: Sequence[str],
    theirs: Sequence[str],
) -> tuple[int, int]:
    """Return the first position at which the two translations of the word differ, in each output."""
    here = there = 0
    if one.kind not in ("light", "well"):  # for these, nothing before the word differs
        here, there = (
            _translated(example, _phrase(source, _place(source, example.kind)), len(target))[0] - 1
            for example, source, target in ((one, words, mine), (other, others, theirs))
        )
        if {mine[here], theirs[there]} & {"du", "au"}:  # "du stylo", but "de l'enclos"
            here -= mine[here - 1] in ("de", "à")
            there -= theirs[there - 1] in ("de", "à")
    while mine[here] == theirs[there]:
        here, there = here + 1, there + 1
    return here, there
