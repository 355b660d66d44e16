"""Translations, and how they were computed."""

import json
from dataclasses import dataclass, field, replace
from typing import Literal

from glassformer.decoding.search_trace import SearchTree
from glassformer.evaluation.guards import Confidence
from glassformer.model.alignment import Alignment
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.links import Link

__all__ = [
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
"""The statuses of texts that have a translation."""

Retry = Literal["", "first", "greedy", "beam", "samples", "n_best", "parts"]

Kept = Literal["", "output", "placed", "lost"]
"""How the protected spans and glossary terms of a text came into its translation: there are none; the model wrote them;
placed at the aligned words of an output, or copied with a text of nothing but terms; or one is missing, stands too
often, or could not be kept in order beside tags, where the text stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """An output of a model, with its scores."""

    text: str
    """The translation; "" if there is none."""
    log_prob: float = 0.0
    """Sum of the tokens' log probabilities, including `<eos>` (natural logarithm, ≤ 0); NaN if not computed."""
    score: float = 0.0
    """The value by which the search ranks outputs: log_prob / length penalty; NaN if not computed."""
    tokens: tuple[str, ...] = ()
    """The tokens, including `<eos>`."""
    token_log_probs: tuple[float, ...] = ()
    """Log probability of each token (natural logarithm, ≤ 0); empty if not computed."""
    alternatives: tuple["Translation", ...] = ()
    """The next best outputs, best first, if several were requested."""
    links: tuple[Link, ...] = ()
    """The aligned words, in the translation's order: each word of the translation with its source word, and each source
    word that is then left with its word of the translation. Empty if not requested."""
    status: Status = "ok"
    """"ok"; "suspicious": guards were set off; "max_length": cut at its maximum length; "empty": the model has written
    nothing; or why the text was not translated."""
    reasons: tuple[str, ...] = ()
    """The guards that the output set off, by the names in `glassformer.evaluation.signals.SIGNALS`."""
    confidence: Confidence | None = None
    """How reliable the output is; None if the run is not calibrated, or log probabilities were not computed."""
    retry: Retry = ""
    """With the setting `retry`, the search that made the output, if the output of the first search was suspicious:
    "greedy" or "beam"; "samples" or "n_best": of several samples, or of the best outputs of a wide beam, the one most
    like the others; "parts": the parts of the text between commas, each by itself; or "first", if all of these are more
    suspicious. "" if nothing was suspicious."""
    kept: Kept = ""
    """How the protected spans and glossary terms came in. If placed, the tokens and their log probabilities are those
    of the output before; a copy has no log probabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a translation was computed. If the text has no translation, only its text, status and settings are set."""

    text: str
    translation: Translation
    """The result of `translate`; its alternatives are all other finished hypotheses of the beam search."""
    settings: DecodingConfig
    """The settings of the search: the run's decoding settings, changed by the settings given for this text."""
    source: tuple[str, ...] = ()
    """The tokens that the encoder reads, including `<eos>`."""
    unknown: tuple[str, ...] = ()
    """Tokens of the text outside the vocabulary, which the encoder reads as `<unk>`."""
    attention: tuple[tuple[float, ...], ...] = ()
    """Cross-attention weights: for each token of the translation, a row with a weight for each source token. A weight
    is the mean over the heads of `alignment`; each row sums to 1."""
    attention_layer: str = ""
    """The full name of the module that `attention` shows."""
    alignment: Alignment | None = None
    """The heads that `attention` shows: those that align words best, or all of the last layer if not compared."""
    tree: SearchTree = field(default_factory=lambda: SearchTree(()))
    """All candidates of the search."""
    tree_tokens: tuple[str, ...] = ()
    """The token of each node of the tree, in readable form."""


def or_empty(one: Translation) -> Translation:
    """Return a translation, whose status says so if the model has written nothing."""
    return one if one.text.strip() or one.status not in TRANSLATED else replace(one, status="empty")


def text_or(one: Translation, source: str) -> str:
    """Return the text of a translation, or that of its source if it has none or the model has written nothing."""
    return one.text if one.status in TRANSLATED and one.text.strip() else source


def score_line(scored: Translation) -> str:
    """Return log_prob, score and number of tokens of a scored target, separated by tabs; "" if it was not scored."""
    return f"{scored.log_prob:.4f}\t{scored.score:.4f}\t{len(scored.tokens)}" if scored.status == "ok" else ""


def status_entry(line: int, one: Translation) -> str:
    """Return the line of a file of statuses (JSONL) for a line of the input, from 1."""
    why = f', "reasons": {json.dumps(one.reasons)}' if one.reasons else ""
    how = "".join(f', "{name}": "{value}"' for name in ("retry", "kept") if (value := getattr(one, name)))
    status = f'"status": "{one.status}"{why}{how}'
    return f'{{"line": {line}, {status}}}\n'  # encoding the whole object with json.dumps takes ten times as long
