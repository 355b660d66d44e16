"""Beam search: at each step the N best hypotheses of each sentence live on.

Axis letters: B sentences still being searched · N beam size · K living hypotheses of each sentence (1 at the start,
then N, or fewer when there are not as many) · J any number of hypotheses · T tokens so far.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding.constraints import Constraints, no_output
from glassformer.decoding.continuations import Continuations, best_continuations
from glassformer.decoding.hypothesis import PAPER_ALPHA, Hypothesis, length_penalty
from glassformer.decoding.search_trace import SearchStep, SearchTree
from glassformer.decoding.step import State, Step
from glassformer.errors import DecodingError

__all__ = ["beam_search", "search_tree"]


@torch.no_grad()
def beam_search(
    step: Step[State],
    *,
    beam_size: int,
    max_lengths: Sequence[int],
    n_best: int = 1,
    length_penalty: float = PAPER_ALPHA,
    prefixes: Sequence[Sequence[int]] | None = None,
    watch: Callable[[SearchStep], object] | None = None,
) -> list[list[Hypothesis]]:
    """Return for each sentence its `n_best` hypotheses of highest score that the beam met, best first, all different.

    There are fewer where fewer exist. With a beam as large as the space of outputs this is exhaustive search; with a
    beam of one it is greedy search.

    Args:
        step: The model and its sources.
        beam_size: How many hypotheses of a sentence live on at each step.
        max_lengths: For each sentence, how many tokens it may have, counting `<eos>`, which alone may come last.
        n_best: How many hypotheses to return, at most `beam_size`.
        length_penalty: The exponent α of the length penalty; 0 ranks by `log_prob`.
        prefixes: For each sentence, the tokens that it has to begin with.
        watch: Hears the candidates of each sentence at each step; see `SearchTree`.

    Raises:
        DecodingError: a size is out of its range, a prefix does not fit, or a sentence has no output.

    Paper: §6.1 (beam size 4, α = 0.6).
    """
    _check(beam_size, n_best)
    constraints = Constraints.of(step, max_lengths, prefixes)
    found = dict(_search(step, constraints, beam_size, length_penalty, watch))
    return [found[sentence][:n_best] for sentence in range(len(max_lengths))]


def search_tree(
    step: Step[State],
    *,
    beam_size: int,
    max_length: int,
    n_best: int = 1,
    length_penalty: float = PAPER_ALPHA,
    prefix: Sequence[int] = (),
) -> tuple[list[Hypothesis], SearchTree]:
    """Return what `beam_search` finds for one sentence, and the tree of all candidates that it weighed.

    The arguments are those of `beam_search`, for the one sentence that `step` has.

    Raises:
        DecodingError: a size is out of its range, the prefix does not fit, or the sentence has no output.
    """
    seen: list[SearchStep] = []
    [hypotheses] = beam_search(
        step,
        beam_size=beam_size,
        max_lengths=[max_length],
        n_best=n_best,
        length_penalty=length_penalty,
        prefixes=[prefix],
        watch=seen.append,
    )
    return hypotheses, SearchTree.of(seen, bos_id=step.bos_id)


class _Paths(NamedTuple):
    """J hypotheses of T tokens for each of B sentences, best first; those of rank −inf do not exist."""

    ranks: Float[Tensor, "B J"]
    """What orders them: the log_prob of the living, which are all of one length; the score of the finished."""
    tokens: Int[Tensor, "B J T"]
    token_log_probs: Float[Tensor, "B J T"]

    @classmethod
    def empty(cls, ranks: Float[Tensor, "B J"]) -> "_Paths":
        """Return paths without tokens."""
        return cls(ranks, ranks.new_empty(*ranks.shape, 0, dtype=torch.int64), ranks.new_empty(*ranks.shape, 0))

    def of(self, sentences: Int[Tensor, "B2"]) -> "_Paths":
        """Return the paths of these sentences."""
        return _Paths(*(field[sentences] for field in self))

    def extended(self, by: Continuations) -> "_Paths":
        """Return the paths that are one token longer; their ranks are the continuations' log_prob."""
        return _Paths(
            by.log_probs,
            torch.cat([self.tokens.flatten(0, 1)[by.rows], by.tokens[..., None]], dim=-1),
            torch.cat([self.token_log_probs.flatten(0, 1)[by.rows], by.token_log_probs[..., None]], dim=-1),
        )


def _search(
    step: Step[State],
    constraints: Constraints,
    beam_size: int,
    alpha: float,
    watch: Callable[[SearchStep], object] | None,
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Yield each sentence, when it is done, with its finished hypotheses, best first."""
    B, longest = constraints.forced.shape
    sentences = torch.arange(B, device=step.device)
    living = _Paths.empty(torch.zeros(B, 1, device=step.device))
    finished = _Paths.empty(torch.full((B, beam_size), -torch.inf, device=step.device))
    newest = torch.full((B,), step.bos_id, device=step.device)
    state = step.start()
    for position in range(longest):
        log_probs, state = step.advance(newest, state)
        constraints.apply_(log_probs, sentences, position)
        best = best_continuations(log_probs, living.ranks, 2 * beam_size)
        ending, lasting = _split(best, step.eos_id, beam_size)
        penalty = length_penalty(position + 1, alpha)
        if watch:
            for seen in _seen(sentences, living, best, beam_size, step.eos_id, penalty):
                watch(seen)
        finished = _merge(finished, living.extended(ending), penalty)
        living = living.extended(lasting)

        # A sentence goes on while its best living hypothesis beats its N-th best finished one (−inf: there is none).
        goes_on = living.ranks[:, 0] / penalty > finished.ranks[:, -1]
        going = goes_on.nonzero().squeeze(1)
        if len(going) < len(sentences):
            done = (~goes_on).nonzero().squeeze(1)
            yield from _results(sentences[done], finished.of(done), step.eos_id, alpha)
            sentences, living, finished = sentences[going], living.of(going), finished.of(going)
        if len(going) == 0:
            break
        newest = living.tokens[..., -1].flatten()
        state = step.select(state, rows=lasting.rows[going].flatten(), sentences=going)


def _split(best: Continuations, eos_id: int, beam_size: int) -> tuple[Continuations, Continuations]:
    """Return those of the first N that end their hypothesis, and the first N of those that do not.

    The places of the others stay, with −inf: a tensor has as many for each sentence.
    """
    ends = best.tokens == eos_id
    ending = Continuations(*(field[:, :beam_size] for field in best))
    ending = ending._replace(log_probs=ending.log_probs.masked_fill(~ends[:, :beam_size], -torch.inf))
    lasting = best._replace(log_probs=best.log_probs.masked_fill(ends, -torch.inf))
    return ending, lasting.pick(ends.int().argsort(dim=1, stable=True)[:, :beam_size])


def _seen(
    sentences: Int[Tensor, "B"], living: _Paths, best: Continuations, beam_size: int, eos_id: int, penalty: float
) -> Iterator[SearchStep]:
    """Yield what `_split` decides on for each sentence; impossible continuations are left out."""
    K = living.ranks.shape[1]
    fields = zip(sentences.tolist(), living.token_log_probs.tolist(), *(field.tolist() for field in best), strict=True)
    for block, (sentence, past, *ways) in enumerate(fields):
        possible = [
            (row - block * K, token, token_log_prob)
            for log_prob, row, token, token_log_prob in zip(*ways, strict=True)
            if log_prob > -torch.inf
        ]
        yield SearchStep.of(sentence, past, possible, beam_size=beam_size, eos_id=eos_id, penalty=penalty)


def _merge(finished: _Paths, newcomers: _Paths, penalty: float) -> _Paths:
    """Return the N paths of highest score among the N finished ones and the newcomers, which are one token longer."""
    fields = (
        (finished.ranks, newcomers.ranks / penalty),
        (F.pad(finished.tokens, (0, 1)), newcomers.tokens),  # behind <eos>: never looked at
        (F.pad(finished.token_log_probs, (0, 1)), newcomers.token_log_probs),
    )
    both = _Paths(*(torch.cat(pair, dim=1) for pair in fields))
    ranks, places = both.ranks.topk(finished.ranks.shape[1])
    rows = torch.arange(len(ranks), device=ranks.device)[:, None]
    return _Paths(ranks, both.tokens[rows, places], both.token_log_probs[rows, places])


def _results(
    sentences: Int[Tensor, "B"], finished: _Paths, eos_id: int, alpha: float
) -> Iterator[tuple[int, list[Hypothesis]]]:
    for sentence, *fields in zip(sentences.tolist(), *(field.tolist() for field in finished), strict=True):
        found = [
            Hypothesis.ending_with(eos_id, tokens, token_log_probs, alpha)
            for rank, tokens, token_log_probs in zip(*fields, strict=True)
            if rank > -torch.inf
        ]
        if not found:
            raise no_output(sentence)
        yield sentence, sorted(found, key=lambda hypothesis: hypothesis.score, reverse=True)


def _check(beam_size: int, n_best: int) -> None:
    if beam_size < 1:
        raise DecodingError(f"beam_size must be at least 1, got {beam_size}: 1 is greedy search, the paper's is 4")
    if not 1 <= n_best <= beam_size:
        raise DecodingError(
            f"n_best must be from 1 to beam_size, which is {beam_size}, got {n_best}: raise beam_size or lower n_best"
        )
