"""What a page lights in a sentence at first: the step of one word, its rival, and what each head is worth to the word.

The page measures the same for any other sentence (`web/ui/stage/opening.ts`).

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
"""Maximum number of multiplications for the openings of a page: a few seconds of two cores."""
TURNED = 3
"""Number of heads of cross-attention whose row is turned to each source word."""
WHOLE_TOKENS = ("words", "characters")
"""Kinds of tokenizers without pieces of words: characters are words of their own."""


@dataclass(frozen=True)
class _Written:
    """A sentence, and the output that a model wrote for it."""

    bundle: Bundle
    model: Transformer
    source: list[int]
    output: list[int]

    @cached_property
    def trace(self) -> Trace:
        """Log probabilities, and weights of cross-attention."""
        target = [self.model.config.bos_id, *self.output[:-1]]
        with record(self.model, ["log_probs", "*.cross_attention.weights"]) as trace:
            self.model(padded(self.model, [self.source]), padded(self.model, [target]))
        return trace

    def read(self, row: int, name: str, head: int) -> int:
        """Return the source position that a head reads most in a row of cross-attention."""
        return int(self.trace[f"{name}.weights"][0, head, row].argmax())

    def varied(self, row: int, variants: Sequence[Mapping[str, Edit]]) -> Float[Tensor, "B V"]:
        """Return the log probabilities in a row under each variant's edits, many variants in one pass.

        Searches never write `<pad>` and `<bos>`, so these have −∞.
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
    """A place in an output, its word, and the word's rival."""

    row: int
    word: int
    rival: int


class _Turn(NamedTuple):
    """A head's row of cross-attention, turned from one source position to another."""

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
    """Return what a page lights at first in each sentence, as plain data, by sentence.

    A sentence is left out if the model cannot translate it, or if the sentences up to it take more than `most_work`
    multiplications. `model` is the translator's model with the weights of the page.

    The word: in a sentence that differs in one word from one of the `examples`, or of the story's pair, the first word
    in which the outputs of the two sentences differ; its rival is the other sentence's word. In other sentences, the
    closest call: the word whose strongest rival is nearest in log p. Of the words, those come first that begin a word,
    as their rivals do; then pieces inside a word; then punctuation, and words that differ from their rival in case
    alone; `<eos>` counts only if it is the whole output. A word that its rival beats is taken only if all others of its
    kind are beaten, too.

    The turn: the word's row of the three heads of cross-attention whose loss lowers the margin most is turned to each
    other source word, `from` the position that the head reads most. Of the turns after which the rival is the likeliest
    word, the one counts after which it is most probable; in a sentence of a pair, turns to what one of these heads
    reads most in the other sentence's row come first.
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
    """Return about how many multiplications an opening takes."""
    passes = model.config.heads * len(attentions(model)) + TURNED * length
    return passes * length * sum(parameter.numel() for parameter in model.parameters())


@torch.no_grad()
def _opening(written: _Written, other: _Written | None) -> dict[str, Any]:
    """Return the opening of a sentence; `other` is the sentence with which it makes a pair."""
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
    """Return the first place where two outputs differ; None if they do not."""
    words = enumerate(zip(one.output, other.output, strict=False)) if other else ()
    return next((_Call(row, word, rival) for row, (word, rival) in words if word != rival), None)


def _closest_call(written: _Written) -> _Call:
    """Return the word whose strongest rival is nearest; see `openings`."""
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
    """Return the lower rank of a word and its rival; 0 if they differ in case alone, as "L'" and "l'" do."""
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
    """Return the turn of one of these heads that `openings` describes, with the probabilities of word and rival."""
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
    """Return edits of a batch in which each sentence has the edits of one variant."""

    def edit(name: str) -> Edit:
        def edited(batch: Tensor) -> Tensor:
            rows = zip(variants, batch.split(1), strict=True)
            return torch.cat([variant[name](row) if name in variant else row for variant, row in rows])

        return edited

    return {name: edit(name) for name in dict.fromkeys(name for one in variants for name in one)}


def _short(number: float) -> float:
    """Return a number with six digits, which a page stores in less space."""
    return float(f"{number:.6g}")
