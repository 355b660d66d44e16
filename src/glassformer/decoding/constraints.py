"""Constraints on every search: tokens that may never be chosen, required prefixes, and the final `<eos>`.

Axis letters: B sentences · L the largest maximum length · R rows · V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding.engine import check_room
from glassformer.decoding.step import Step
from glassformer.errors import DecodingError

__all__ = ["FREE", "Constraints", "keep_only_", "no_output"]

FREE = -1
"""Marks a position without a forced token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """The forced and the forbidden tokens of B sentences, computed once per search."""

    forced: Int[Tensor, "B L"]
    """For each sentence and position: the token of the prefix, `<eos>` at the last position, or FREE."""
    forced_positions: frozenset[int]
    """The positions at which at least one sentence has a forced token; `forced` is read only at these positions."""
    suppressed: Int[Tensor, "2"]
    """`<bos>` and `<pad>`, which are never chosen."""

    @classmethod
    def of(cls, step: Step[Any], max_lengths: Sequence[int], prefixes: Sequence[Sequence[int]] | None) -> "Constraints":
        """Return the constraints of a search with these maximum lengths (including `<eos>`) and prefixes.

        Raises:
            DecodingError: a maximum length is below 1, or a prefix is too long or invalid.
        """
        if prefixes is None:
            prefixes = [()] * len(max_lengths)
        else:
            _check_prefixes(step, prefixes, len(max_lengths))
        for sentence, (prefix, max_length) in enumerate(zip(prefixes, max_lengths, strict=True)):
            check_room(sentence, max_length, len(prefix))
        longest = max(max_lengths, default=0)
        forced = [[FREE] * longest for _ in max_lengths]
        for row, max_length, prefix in zip(forced, max_lengths, prefixes, strict=True):
            row[max_length - 1] = step.eos_id
            row[: len(prefix)] = prefix
        last_positions = (max_length - 1 for max_length in max_lengths)
        return cls(
            forced=torch.tensor(forced, dtype=torch.int64, device=step.device).view(len(forced), longest),
            forced_positions=frozenset(last_positions).union(*(range(len(prefix)) for prefix in prefixes)),
            suppressed=torch.tensor([step.bos_id, step.pad_id], device=step.device),
        )

    def apply_(
        self, log_probs: Float[Tensor, "R V"], sentences: Int[Tensor, "B2"], positions: Int[Tensor, "B2"]
    ) -> None:
        """Set the log probability of each token that is not allowed to −inf, in place.

        `log_probs` has the same number of rows for each of the `sentences`, in the order of `sentences`; `positions`
        has the position of each sentence. The log probabilities of allowed tokens are not renormalised, so an output
        has the same log probability in a search as in the scoring of a given target.
        """
        log_probs.index_fill_(1, self.suppressed, -torch.inf)
        if not self.forced_positions.isdisjoint(positions.tolist()):
            rows_per_sentence = len(log_probs) // len(sentences)
            keep_only_(log_probs, self.forced[sentences, positions].repeat_interleave(rows_per_sentence))


def keep_only_(log_probs: Float[Tensor, "R V"], tokens: Int[Tensor, "R"]) -> None:
    """In each row, set all numbers except the row's token to −inf, in place; a row whose token is FREE is unchanged."""
    rows = (tokens != FREE).nonzero().squeeze(1)
    tokens = tokens[rows]
    kept = log_probs[rows, tokens]
    log_probs[rows] = -torch.inf
    log_probs[rows, tokens] = kept


def no_output(sentence: int) -> DecodingError:
    """Return the error for a sentence without a possible output."""
    return DecodingError(
        f"sentence {sentence} (counted from 0) has no output: every continuation has probability 0 or NaN; "
        "check that the model's weights are finite, and that the sentence's prefix is possible"
    )


def _check_prefixes(step: Step[Any], prefixes: Sequence[Sequence[int]], sentences: int) -> None:
    if len(prefixes) != sentences:
        raise DecodingError(
            f"prefixes: expected a prefix for each of {sentences} sentences, got {len(prefixes)}; [] means no prefix"
        )
    for sentence, prefix in enumerate(prefixes):
        _check_tokens(step, sentence, prefix)


def _check_tokens(step: Step[Any], sentence: int, prefix: Sequence[int]) -> None:
    special = {step.pad_id: "<pad>", step.bos_id: "<bos>", step.eos_id: "<eos>"}
    for token in prefix:
        if token in special:
            raise DecodingError(
                f"the prefix of sentence {sentence} (counted from 0) holds {special[token]} (id {token}): "
                "leave special tokens out"
            )
        if not 0 <= token < step.vocab_size:
            raise DecodingError(
                f"the prefix of sentence {sentence} (counted from 0): expected ids from 0 to {step.vocab_size - 1}, "
                f"got {token}; encode it with the tokenizer of this model's target"
            )
