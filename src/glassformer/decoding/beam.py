"""Beam search: at each step the N best hypotheses of each sentence live on.

Axis letters: B sentences still being searched · N beam size · K living hypotheses of each sentence (1 at the start,
then N, or fewer when there are not as many) · J any number of hypotheses · T tokens so far.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.decoding.active import Active
from glassformer.decoding.constraints import Constraints, no_output
from glassformer.decoding.continuations import Continuations, best_continuations
from glassformer.decoding.engine import check_sizes
from glassformer.decoding.hypothesis import PAPER_ALPHA, Hypothesis, length_penalty
from glassformer.decoding.search_trace import SearchStep, SearchTree
from glassformer.decoding.step import State, Step

__all__ = ["beam_search", "search_tree"]


@torch.inference_mode()
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
    check_sizes(beam_size, n_best)
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
    """J hypotheses for each of B sentences, best first; those of rank −inf do not exist.

    The newest of T tokens is in the last column; a sentence that entered later has nothing in the first ones.
    """

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

    def longer(self) -> "_Paths":
        """Return the paths with one more token, behind `<eos>`: never looked at."""
        return _Paths(self.ranks, F.pad(self.tokens, (0, 1)), F.pad(self.token_log_probs, (0, 1)))

    def joined(self, sentences: int, columns: int) -> "_Paths":
        """Return the last columns of the paths, with room for more sentences behind these."""
        ranks = F.pad(self.ranks, (0, 0, 0, sentences), value=-torch.inf)
        ways = (self.tokens, self.token_log_probs)
        return _Paths(ranks, *(F.pad(way[..., way.shape[-1] - columns :], (0, 0, 0, 0, 0, sentences)) for way in ways))


def _search(
    step: Step[State],
    constraints: Constraints,
    beam_size: int,
    alpha: float,
    watch: Callable[[SearchStep], object] | None,
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Yield each sentence, when it is done, with its finished hypotheses, best first."""
    B, longest = constraints.forced.shape
    penalties = torch.tensor([length_penalty(length, alpha) for length in range(1, longest + 1)], dtype=torch.float64)
    penalties = penalties.to(step.device)
    active = Active(step, B)
    living, finished = _beginning(active.admit(), beam_size, step.device)
    newest = torch.full_like(living.ranks, step.bos_id, dtype=torch.int64)
    while len(newest):
        log_probs = active.advance(newest.flatten())
        sentences, positions = active.sentences, active.positions
        constraints.apply_(log_probs, sentences, positions)
        best = best_continuations(log_probs, living.ranks, 2 * beam_size)
        if watch:
            for seen in _seen(active, living, best, beam_size, step.eos_id, alpha):
                watch(seen)
        penalty = penalties[positions, None].to(log_probs.dtype)
        finished, ends = finished.longer(), best.tokens == step.eos_id
        if ends[:, :beam_size].any():
            ending, lasting = _split(best, ends, beam_size)
            finished = _merge(finished, living.extended(ending), penalty)
        else:  # as at most steps: the same, in a third of the operations
            lasting = best.first(beam_size)
        living = living.extended(lasting)

        # A sentence goes on while its best living hypothesis beats its N-th best finished one (−inf: there is none).
        goes_on = (living.ranks[:, 0] / penalty[:, 0]) > finished.ranks[:, -1]
        going, rows = goes_on.nonzero().squeeze(1), lasting.rows
        if len(going) < len(goes_on):
            done = (~goes_on).nonzero().squeeze(1)
            yield from _results(sentences[done], positions[done] + 1, finished.of(done), step.eos_id, alpha)
            living, finished, rows = living.of(going), finished.of(going), rows[going]
        active.keep(going, rows.flatten())
        newest = living.tokens[..., -1]
        if count := active.admit():
            living, finished = _joined(living, finished, count, columns=int(active.positions.max()))
            newest = F.pad(newest[:, : living.ranks.shape[1]], (0, 0, 0, count), value=step.bos_id)


def _beginning(sentences: int, beam_size: int, device: torch.device) -> tuple[_Paths, _Paths]:
    """Return the living and the finished paths of sentences that have not begun."""
    living = torch.zeros(sentences, 1, device=device)
    return _Paths.empty(living), _Paths.empty(torch.full((sentences, beam_size), -torch.inf, device=device))


def _joined(living: _Paths, finished: _Paths, sentences: int, columns: int) -> tuple[_Paths, _Paths]:
    """Return both with sentences that have not begun behind those that they have, whose last columns are in use."""
    if not len(living.ranks):
        return _beginning(sentences, finished.ranks.shape[1], living.ranks.device)
    living, finished = living.joined(sentences, columns), finished.joined(sentences, columns)
    living.ranks[-sentences:, 0] = 0  # the one hypothesis that has no token; the others do not exist
    return living, finished


def _split(best: Continuations, ends: Bool[Tensor, "B C"], beam_size: int) -> tuple[Continuations, Continuations]:
    """Return those of the first N that end their hypothesis, and the first N of those that do not.

    The places of the others stay, with −inf: a tensor has as many for each sentence.
    """
    ending = best.first(beam_size)
    ending = ending._replace(log_probs=ending.log_probs.masked_fill(~ends[:, :beam_size], -torch.inf))
    lasting = best._replace(log_probs=best.log_probs.masked_fill(ends, -torch.inf))
    return ending, lasting.pick(ends.int().argsort(dim=1, stable=True)[:, :beam_size])


def _seen(
    active: Active, living: _Paths, best: Continuations, beam_size: int, eos_id: int, alpha: float
) -> Iterator[SearchStep]:
    """Yield what `_split` decides on for each sentence; impossible continuations are left out."""
    _, K, T = living.tokens.shape
    of_sentences = (active.sentences, active.positions, living.token_log_probs, *best)
    fields = zip(*(field.tolist() for field in of_sentences), strict=True)
    for block, (sentence, position, past, *ways) in enumerate(fields):
        possible = [
            (row - block * K, token, token_log_prob)
            for log_prob, row, token, token_log_prob in zip(*ways, strict=True)
            if log_prob > -torch.inf
        ]
        own = [each[T - position :] for each in past]
        penalty = length_penalty(position + 1, alpha)
        yield SearchStep.of(sentence, own, possible, beam_size=beam_size, eos_id=eos_id, penalty=penalty)


def _merge(finished: _Paths, newcomers: _Paths, penalty: Float[Tensor, "B 1"]) -> _Paths:
    """Return the N paths of highest score among the N finished ones and the newcomers."""
    newcomers = newcomers._replace(ranks=newcomers.ranks / penalty)
    both = _Paths(*(torch.cat(pair, dim=1) for pair in zip(finished, newcomers, strict=True)))
    ranks, places = both.ranks.topk(finished.ranks.shape[1])
    rows = torch.arange(len(ranks), device=ranks.device)[:, None]
    return _Paths(ranks, both.tokens[rows, places], both.token_log_probs[rows, places])


def _results(
    sentences: Int[Tensor, "B"], lengths: Int[Tensor, "B"], finished: _Paths, eos_id: int, alpha: float
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Yield the hypotheses of each sentence, which stand in its last columns, as many as these lengths."""
    fields = (sentences, lengths, *finished)
    for sentence, length, *ways in zip(*(field.tolist() for field in fields), strict=True):
        found = [
            Hypothesis.ending_with(eos_id, tokens[-length:], token_log_probs[-length:], alpha)
            for rank, tokens, token_log_probs in zip(*ways, strict=True)
            if rank > -torch.inf
        ]
        if not found:
            raise no_output(sentence)
        yield sentence, sorted(found, key=lambda hypothesis: hypothesis.score, reverse=True)
