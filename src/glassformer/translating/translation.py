"""Translations, and explanations of how they were computed."""

import json
from dataclasses import dataclass, field, replace
from typing import Literal

from glassformer.decoding.search_trace import SearchTree
from glassformer.evaluation.guards import Confidence
from glassformer.model.alignment import Alignment
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.links import Link

__all__ = [
    "MOST_CHARACTERS",
    "TRANSLATED",
    "Explanation",
    "Kept",
    "Retry",
    "Status",
    "Translation",
    "or_empty",
    "score_line",
    "status_entry",
    "text_or",
]

Status = Literal["ok", "suspicious", "blank", "too_long", "undecodable", "max_length", "empty"]
TRANSLATED: tuple[Status, ...] = ("ok", "suspicious", "max_length")
"""The statuses of texts that were translated."""

MOST_CHARACTERS = 100_000
"""Maximum number of characters of a text, or of a unit of a document, that is translated."""

Retry = Literal["", "first", "greedy", "beam", "samples", "n_best", "parts"]

Kept = Literal["", "output", "placed", "lost"]
"""How a text's protected spans and glossary terms came into its translation. "": the text has none. "output": the model
wrote them. "placed": they were put next to the aligned words of an output, or copied with a text that consists only of
terms. "lost": a term is missing or occurs too often; or placeholders in tags could not be kept in order or a link found
no word, so that the text is not translated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """An output of a model, with its scores."""

    text: str
    """The translation; "" if there is none."""
    log_prob: float = 0.0
    """Sum of the tokens' log probabilities, including `<eos>` (natural logarithm, ≤ 0); NaN if not computed."""
    score: float = 0.0
    """The score by which the search ranks outputs: log_prob / length penalty; NaN if not computed."""
    tokens: tuple[str, ...] = ()
    """The tokens, including `<eos>`."""
    token_log_probs: tuple[float, ...] = ()
    """Log probability of each token (natural logarithm, ≤ 0); empty if not computed."""
    alternatives: tuple["Translation", ...] = ()
    """The next best outputs, best first, if several were requested."""
    links: tuple[Link, ...] = ()
    """Links between aligned words, in the order of the translation. Each word of the translation has a link to a source
    word, and each source word without such a link has a link to a word of the translation. Empty if not requested."""
    status: Status = "ok"
    """"ok"; "suspicious": the output set off guards; "max_length": the output was cut at its maximum length; "empty":
    the model wrote nothing. "blank", "too_long" and "undecodable" are reasons why the text was not translated."""
    reasons: tuple[str, ...] = ()
    """The names of the guards that the output set off (`glassformer.evaluation.signals.SIGNALS`)."""
    confidence: Confidence | None = None
    """How reliable the output is; None if the run is not calibrated, or log probabilities were not computed."""
    retry: Retry = ""
    """With the setting `retry`, the search that gave this output because the first output was suspicious. "greedy" or
    "beam": another search. "samples" or "n_best": the output most like the others, of several samples or of a wide
    beam's best outputs. "parts": the clauses of the text, translated one by one. "first": the first output, because the
    others were more suspicious. "": the first output, which was not suspicious."""
    read: tuple[int, ...] = field(default=(), repr=False, compare=False)
    """The ids of the source tokens that the model read for this output. If spans were placed, these are the tokens of
    the text without its spans; a text that was copied has none."""
    kept: Kept = ""
    """How the protected spans and glossary terms came into the translation (see `Kept`). If they were placed, the
    tokens and their log probabilities are those of the output into which they were put; a copied text has no log
    probabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a translation was computed.

    If the text could not be translated, only `text`, `settings` and the status of `translation` are set.
    """

    text: str
    translation: Translation
    """The result of `translate`; its alternatives are all other finished hypotheses of the beam search."""
    settings: DecodingConfig
    """The decoding settings of the search: the run's settings, with the changes requested for this text."""
    source: tuple[str, ...] = ()
    """The tokens that the encoder reads, including `<eos>`."""
    unknown: tuple[str, ...] = ()
    """Tokens of the text outside the vocabulary, which the encoder reads as `<unk>`."""
    rewritten: tuple[str, ...] | None = None
    """What `translate` would let the model read instead, as `Translator.rewritten` returns it."""
    attention: tuple[tuple[float, ...], ...] = ()
    """Cross-attention weights: for each token of the translation, a row with a weight for each source token. A weight
    is the mean over the heads of `alignment`; each row sums to 1."""
    attention_layer: str = ""
    """The full name of the module that `attention` shows."""
    alignment: Alignment | None = None
    """The heads that `attention` shows: the heads that align words best, or all heads of the last layer if heads were
    never compared."""
    tree: SearchTree = field(default_factory=lambda: SearchTree(()))
    """The search tree, with all hypotheses of the search."""
    tree_tokens: tuple[str, ...] = ()
    """The token of each node of the tree, in readable form."""


def or_empty(one: Translation) -> Translation:
    """Return a translation, with the status "empty" if the model wrote nothing."""
    return one if one.text.strip() or one.status not in TRANSLATED else replace(one, status="empty")


def text_or(one: Translation, source: str) -> str:
    """Return the text of a translation; the source if it was not translated or the model wrote nothing."""
    return one.text if one.status in TRANSLATED and one.text.strip() else source


def score_line(scored: Translation) -> str:
    """Return a target's log probability, score and number of tokens, separated by tabs; "" if it was not scored."""
    return f"{scored.log_prob:.4f}\t{scored.score:.4f}\t{len(scored.tokens)}" if scored.status == "ok" else ""


def status_entry(line: int, one: Translation) -> str:
    """Return the JSON line of a status file for line number `line` of the input, counted from 1."""
    why = f', "reasons": {json.dumps(one.reasons)}' if one.reasons else ""
    how = "".join(f', "{name}": "{value}"' for name in ("retry", "kept") if (value := getattr(one, name)))
    status = f'"status": "{one.status}"{why}{how}'
    return f'{{"line": {line}, {status}}}\n'  # encoding the whole object with json.dumps takes ten times as long
