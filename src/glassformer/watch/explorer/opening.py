"""What a page highlights in a sentence at first: an output word, its rival, and each head's effect on the word.

The page itself computes the same for any other sentence (`web/ui/figure/opening.ts`).

Axes: B variants of one sentence · V target vocabulary.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.bundle import Bundle
from glassformer.decoding.transformer_step import padded
from glassformer.errors import DataError, DecodingError
from glassformer.model.taps import Edit, Trace, intervene, record
from glassformer.model.transformer import Transformer
from glassformer.text.normalisation import SPACE_MARK
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import UNK_ID
from glassformer.translator import Translator
from glassformer.watch.explorer.examples import partner, story_pair
from glassformer.watch.explorer.sentence import searched, source_ids
from glassformer.watch.inspection.edits import attentions, with_rows, without_heads
from glassformer.watch.inspection.forced import SIDE_BY_SIDE

__all__ = ["MOST_WORK", "call_rank", "openings", "token_rank"]

MOST_WORK = 50e9
"""Maximum number of multiplications for the openings of a page, which take a few seconds on two cores."""
TURNED = 3
"""Number of cross-attention heads that are turned to each source word (their row of weights is replaced)."""
WHOLE_TOKENS = ("words", "characters")
"""Kinds of tokenizers without pieces of words; a character counts as a word."""


@dataclass(frozen=True)
class _Written:
    """A sentence, and the output of a model for it."""

    bundle: Bundle
    model: Transformer
    source: list[int]
    output: list[int]

    @cached_property
    def trace(self) -> Trace:
        """A recording of the log probabilities and the cross-attention weights."""
        target = [self.model.config.bos_id, *self.output[:-1]]
        with record(self.model, ["log_probs", "*.cross_attention.weights"]) as trace:
            self.model(padded(self.model, [self.source]), padded(self.model, [target]))
        return trace

    def read(self, row: int, name: str, head: int) -> int:
        """Return the source position with the largest weight of a head in a row of cross-attention."""
        return int(self.trace[f"{name}.weights"][0, head, row].argmax())

    def varied(self, row: int, variants: Sequence[Mapping[str, Edit]]) -> Float[Tensor, "B V"]:
        """Return the log probabilities of a row under each variant's edits; many variants share one pass.

        `<pad>` and `<bos>` have −∞, because searches never choose them.
        """
        model, config = self.model, self.model.config
        prefix = [config.bos_id, *self.output[:row]]
        size = max(1, SIDE_BY_SIDE // max(len(self.source), len(prefix)))
        parts = [torch.empty(0, config.target_vocab_size, device="cpu")]
        for start in range(0, len(variants), size):
            chosen = variants[start : start + size]
            with intervene(model, _side_by_side(chosen)):
                logits = model(padded(model, [self.source] * len(chosen)), padded(model, [prefix] * len(chosen)))
            parts.append(logits[:, -1].log_softmax(-1).cpu())
        log_probs = torch.cat(parts)
        log_probs[:, [config.pad_id, config.bos_id]] = -torch.inf
        return log_probs


class _Call(NamedTuple):
    """A row of the output (an index), the word there, and the word's rival."""

    row: int
    word: int
    rival: int


class _Turn(NamedTuple):
    """A change: in one row of a head's cross-attention, all weight moves from one source position to another."""

    name: str
    head: int
    old: int
    new: int


def openings(
    translator: Translator,
    model: Transformer,
    sentences: Iterable[str],
    most_work: float = MOST_WORK,
    *,
    examples: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """Return what a page highlights at first in each sentence, as plain data, by sentence.

    A sentence is left out if the model cannot translate it, or if this sentence and those before it take more than
    `most_work` multiplications. `model` is the translator's model with the weights of the page.

    A page highlights an output word and its rival. If the sentence differs in one word from one of the `examples`, or
    from a sentence of the story, the highlighted word is the first word in which the outputs of the two sentences
    differ. Its rival is the word in the other output. For any other sentence, the highlighted word is the closest call:
    the token whose most probable rival is nearest in log p. Tokens are preferred if they and their rivals begin a word.
    Next come pieces inside a word. Last come punctuation marks, and tokens that differ from their rivals only in case.
    `<eos>` is chosen only if it is the whole output. A token that is less probable than its rival is chosen only if all
    tokens of the same kind are.

    A page also offers a turn: in the word's row, all weight of one head moves to a different source word. `from` is the
    position that had the largest weight before. Turns are tried for the three cross-attention heads whose removal
    lowers the margin between word and rival most. From the turns that make the rival the most probable word, the turn
    with the highest probability of the rival is chosen. For a sentence of a pair, a turn is preferred if one of the
    three heads has its largest weight in the other sentence at the turn's new position.
    """
    bundle, paired = translator.bundle, [*examples, *story_pair(translator.bundle)]

    @cache
    def written(text: str) -> _Written:
        source = source_ids(translator, text)
        hypotheses, _ = searched(bundle, model, source)
        return _Written(bundle, model, source, list(hypotheses[0].tokens))

    found, work = {}, 0.0
    for sentence in dict.fromkeys(sentences):
        other = partner(sentence, paired)
        try:
            work += _work(model, len(source_ids(translator, sentence)))
            if work > most_work:
                break
            found[sentence] = _opening(written(sentence), written(other) if other else None)
        except (DataError, DecodingError):
            continue
    return found


def _work(model: Transformer, length: int) -> float:
    """Return the approximate number of multiplications that the highlights of one sentence take."""
    passes = model.config.heads * len(attentions(model)) + TURNED * length
    return passes * length * sum(parameter.numel() for parameter in model.parameters())


@torch.no_grad()
def _opening(written: _Written, other: _Written | None) -> dict[str, Any]:
    """Return what a page highlights at first in a sentence; `other` is the other sentence of its pair, if any."""
    of_pair = _call_of_pair(written, other)
    call = of_pair or _closest_call(written)
    heads = [(name, head) for name in attentions(written.model) for head in range(written.model.config.heads)]
    log_probs = written.varied(call.row, [{}, *(without_heads({name: [head]}) for name, head in heads)])
    probabilities = log_probs[:, call.word].exp().tolist()
    margins = (log_probs[:, call.word] - log_probs[:, call.rival]).tolist()
    without: dict[str, list[dict[str, float]]] = {}
    for (name, _), probability, margin in zip(heads, probabilities[1:], margins[1:], strict=True):
        without.setdefault(name, []).append({"probability": _short(probability), "margin": _short(margin)})
    by_cost = [head for _, head in sorted(zip(margins[1:], heads, strict=True)) if head[0].endswith("cross_attention")]
    turn = _turn(written, other, call, by_cost[:TURNED]) if margins[0] > 0 else None
    found = {"ids": written.output, "row": call.row, "rival": call.rival, "ofPair": of_pair is not None}
    return {**found, "without": without, "turn": turn}


# The word and its rival


def _call_of_pair(one: _Written, other: _Written | None) -> _Call | None:
    """Return the first position at which two outputs differ; None if they do not differ."""
    words = enumerate(zip(one.output, other.output, strict=False)) if other else ()
    return next((_Call(row, word, rival) for row, (word, rival) in words if word != rival), None)


def _closest_call(written: _Written) -> _Call:
    """Return the word whose most probable rival is nearest (see `openings`)."""
    tokenizer, output = written.bundle.target_tokenizer, written.output
    calls = []
    for row, word in enumerate(output[: max(1, len(output) - 1)]):
        log_probs = written.trace["log_probs"][0, row].cpu()
        never = torch.tensor([word, tokenizer.pad_id, tokenizer.bos_id], device=log_probs.device)
        rivals = log_probs.index_fill(0, never, -torch.inf)
        rival = int(rivals.argmax())
        margin = (log_probs[word] - log_probs[rival]).item()
        calls.append(((-call_rank(tokenizer, word, rival), margin < 0, margin), _Call(row, word, rival)))
    return min(calls, key=lambda one: one[0])[1]


def call_rank(tokenizer: Tokenizer, word: int, rival: int) -> int:
    """Return the lower `token_rank` of a word and its rival; 0 if they differ only in case, such as "L'" and "l'"."""
    one, other = tokenizer.tokens([word, rival])
    return 0 if one.lower() == other.lower() else min(token_rank(tokenizer, id) for id in (word, rival))


def token_rank(tokenizer: Tokenizer, id: int) -> int:
    """Return 2 for a token that begins a word, 1 for a piece inside a word, 0 for a special token or punctuation."""
    [token] = tokenizer.tokens([id])
    if id <= UNK_ID or not any(map(str.isalnum, token)):
        return 0
    return 2 if tokenizer.kind in WHOLE_TOKENS or token.startswith(SPACE_MARK) else 1


# Turning a row of cross-attention


def _turn(
    written: _Written, other: _Written | None, call: _Call, heads: Sequence[tuple[str, int]]
) -> dict[str, Any] | None:
    """Return the turn that `openings` describes and the new probabilities of word and rival; None if no turn works."""
    tokenizer = written.bundle.source_tokenizer
    words = [place for place, id in enumerate(written.source) if token_rank(tokenizer, id) > 0]
    olds = [(name, head, written.read(call.row, name, head)) for name, head in heads]
    turns = [_Turn(*one, new) for one in olds for new in words if new != one[-1]]
    rows = [with_rows({one.name: [(one.head, call.row, [0.0] * one.new + [1.0])]}) for one in turns]
    log_probs = written.varied(call.row, rows)
    there = {other.read(call.row, name, head) for name, head in heads} if other else set()
    after = zip(turns, log_probs.argmax(-1).tolist(), log_probs[:, [call.word, call.rival]].exp().tolist(), strict=True)
    flips = [(one, word, rival) for one, best, (word, rival) in after if best == call.rival]
    if not flips:
        return None
    one, word, rival = max(flips, key=lambda flip: (flip[0].new in there, flip[2]))
    places = {"attention": one.name, "head": one.head, "from": one.old, "to": one.new}
    return {**places, "word": _short(word), "rival": _short(rival)}


def _side_by_side(variants: Sequence[Mapping[str, Edit]]) -> dict[str, Edit]:
    """Return edits for a batch that apply the edits of one variant to each sentence."""

    def edit(name: str) -> Edit:
        def edited(batch: Tensor) -> Tensor:
            rows = zip(variants, batch.split(1), strict=True)
            return torch.cat([variant[name](row) if name in variant else row for variant, row in rows])

        return edited

    return {name: edit(name) for name in dict.fromkeys(name for one in variants for name in one)}


def _short(number: float) -> float:
    """Return a number rounded to six digits, to save space in the page."""
    return float(f"{number:.6g}")
