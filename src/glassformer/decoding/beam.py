"""Beam search: each step keeps the N best hypotheses of each sentence.

Axis letters: B active sentences · N beam size · K living (unfinished) hypotheses per sentence (1 at the start, later up
to N) · J any number of hypotheses · T tokens so far.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.decoding.constraints import Constraints, no_output
from glassformer.decoding.continuations import Continuations, best_continuations
from glassformer.decoding.engine import check_n_best
from glassformer.decoding.hypothesis import Hypothesis, penalty_of, score_of
from glassformer.decoding.queued_step import Active
from glassformer.decoding.search_trace import SearchStep, SearchTree
from glassformer.decoding.step import State, Step, widest
from glassformer.recipes.configuration import DecodingConfig

__all__ = ["beam_search", "search_tree"]


@torch.inference_mode()
def beam_search(
    step: Step[State],
    *,
    max_lengths: Sequence[int],
    n_best: int = 1,
    prefixes: Sequence[Sequence[int]] | None = None,
    watch: Callable[[SearchStep], object] | None = None,
    **settings: Any,
) -> list[list[Hypothesis]]:
    """Return, for each sentence, the `n_best` distinct hypotheses of the beam with the highest scores, best first.

    If the beam found fewer than `n_best` hypotheses of a sentence, all of them are returned. With a beam as large as
    the output space, beam search is exhaustive search; with a beam of size 1, it is greedy search.

    Args:
        step: The model and its sources.
        max_lengths: For each sentence, its maximum number of tokens, including `<eos>`; at the last position, only
            `<eos>` is allowed.
        n_best: Number of hypotheses to return, at most `beam_size`.
        prefixes: For each sentence, the tokens that its output must begin with.
        watch: Function that is called with the candidates of each sentence at each step; see `SearchTree`.
        settings: Settings of `DecodingConfig` by name; the search reads `beam_size` and `length_penalty`.

    Raises:
        ConfigError: a setting is out of range.
        DecodingError: `n_best` is out of range, a prefix is too long or invalid, or a sentence has no possible output.

    Paper: §6.1 (beam size 4, α = 0.6).
    """
    decoding = DecodingConfig(**settings)
    check_n_best(n_best, decoding.beam_size)
    constraints = Constraints.of(step, max_lengths, prefixes)
    found = dict(_search(step, constraints, decoding, watch))
    return [found[sentence][:n_best] for sentence in range(len(max_lengths))]


def search_tree(
    step: Step[State],
    *,
    max_length: int,
    n_best: int = 1,
    prefix: Sequence[int] = (),
    **settings: Any,
) -> tuple[list[Hypothesis], SearchTree]:
    """Return the result of `beam_search` for one sentence, and the tree of all candidates that it considered.

    `step` contains exactly one sentence. The other arguments are those of `beam_search`, for this sentence.

    Raises:
        ConfigError: a setting is out of range.
        DecodingError: `n_best` is out of range, the prefix is too long or invalid, or no output is possible.
    """
    seen: list[SearchStep] = []
    [hypotheses] = beam_search(
        step, max_lengths=[max_length], n_best=n_best, prefixes=[prefix], watch=seen.append, **settings
    )
    return hypotheses, SearchTree.of(seen, bos_id=step.bos_id)


class _Paths(NamedTuple):
    """Up to J hypotheses for each of B sentences, best first; an entry with the sort key −inf is unused.

    The last column holds the newest of T tokens. If a sentence entered the batch late, its first columns are unused.
    """

    sort_keys: Float[Tensor, "B J"]
    """Living hypotheses are sorted by `log_prob`, because their lengths are equal; finished hypotheses by `score`."""
    tokens: Int[Tensor, "B J T"]
    token_log_probs: Float[Tensor, "B J T"]

    @classmethod
    def empty(cls, keys: Float[Tensor, "B J"]) -> "_Paths":
        """Return paths without tokens, with these sort keys."""
        return cls(keys, keys.new_empty(*keys.shape, 0, dtype=torch.int64), keys.new_empty(*keys.shape, 0))

    def of(self, sentences: Int[Tensor, "B2"]) -> "_Paths":
        """Return the paths of these sentences."""
        return _Paths(*(field[sentences] for field in self))

    def extended(self, by: Continuations) -> "_Paths":
        """Return the paths extended by one token; their sort keys are the continuations' log_prob."""
        return _Paths(
            by.log_probs,
            torch.cat([self.tokens.flatten(0, 1)[by.rows], by.tokens[..., None]], dim=-1),
            torch.cat([self.token_log_probs.flatten(0, 1)[by.rows], by.token_log_probs[..., None]], dim=-1),
        )

    def longer(self) -> "_Paths":
        """Return the paths with an unused token appended after `<eos>`."""
        return _Paths(self.sort_keys, F.pad(self.tokens, (0, 1)), F.pad(self.token_log_probs, (0, 1)))

    def joined(self, sentences: int, columns: int) -> "_Paths":
        """Return the last `columns` columns of the paths, and append unused entries for `sentences` new sentences."""
        keys = F.pad(self.sort_keys, (0, 0, 0, sentences), value=-torch.inf)
        ways = (self.tokens, self.token_log_probs)
        return _Paths(keys, *(F.pad(way[..., way.shape[-1] - columns :], (0, 0, 0, 0, 0, sentences)) for way in ways))


def _search(
    step: Step[State],
    constraints: Constraints,
    settings: DecodingConfig,
    watch: Callable[[SearchStep], object] | None,
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Yield the index and the finished hypotheses (best first) of each sentence as soon as its search ends."""
    (B, longest), beam_size = constraints.forced.shape, settings.beam_size
    each = [penalty_of(length, settings) for length in range(1, longest + 1)]
    penalties = torch.tensor(each, dtype=widest(step.device), device=step.device)
    active = Active(step, B)
    living, finished = _beginning(active.admit(), beam_size, step.device)
    newest = torch.full_like(living.sort_keys, step.bos_id, dtype=torch.int64)
    while len(newest):
        log_probs = active.advance(newest.flatten())
        sentences, positions = active.sentences, active.positions
        constraints.apply_(log_probs, sentences, positions)
        # Each of up to N hypotheses has one continuation with `<eos>`. So at least N of the best 2 N go on.
        best = best_continuations(log_probs, living.sort_keys, 2 * beam_size)
        if watch:
            for seen in _seen(active, living, best, settings, step.eos_id):
                watch(seen)
        penalty = penalties[positions, None].to(log_probs.dtype)
        # Finished paths grow, too, because `_merge` puts them into one tensor with paths that end later.
        finished, ends = finished.longer(), best.tokens == step.eos_id
        if ends[:, :beam_size].any():
            ending, lasting = _split(best, ends, beam_size)
            finished = _merge(finished, living.extended(ending), penalty)
        else:  # usually, nothing ends: this gives the same result with a third of the operations
            lasting = best.first(beam_size)
        living = living.extended(lasting)

        # The search for a sentence continues while its best living hypothesis has a higher score than its N-th best
        # finished hypothesis. The score of the N-th best is −inf while fewer than N hypotheses have finished. A length
        # penalty may still let the living hypothesis win later; docs/decisions/how-a-beam-ends.md says why not to wait.
        goes_on = score_of(living.sort_keys[:, 0], penalty[:, 0]) > finished.sort_keys[:, -1]
        going, rows = goes_on.nonzero().squeeze(1), lasting.rows
        if len(going) < len(goes_on):
            done = (~goes_on).nonzero().squeeze(1)
            yield from _results(sentences[done], positions[done] + 1, finished.of(done), step.eos_id, settings)
            living, finished, rows = living.of(going), finished.of(going), rows[going]
        active.keep(going, rows.flatten())
        newest = living.tokens[..., -1]
        if count := active.admit():
            living, finished = _joined(living, finished, count, columns=int(active.positions.max()))
            newest = F.pad(newest[:, : living.sort_keys.shape[1]], (0, 0, 0, count), value=step.bos_id)


def _beginning(sentences: int, beam_size: int, device: torch.device) -> tuple[_Paths, _Paths]:
    """Return the first paths of new sentences: one empty living hypothesis each, and no finished hypotheses."""
    living = torch.zeros(sentences, 1, device=device)
    return _Paths.empty(living), _Paths.empty(torch.full((sentences, beam_size), -torch.inf, device=device))


def _joined(living: _Paths, finished: _Paths, sentences: int, columns: int) -> tuple[_Paths, _Paths]:
    """Return the last `columns` columns of all paths, with `sentences` new sentences appended."""
    if not len(living.sort_keys):
        return _beginning(sentences, finished.sort_keys.shape[1], living.sort_keys.device)
    living, finished = living.joined(sentences, columns), finished.joined(sentences, columns)
    living.sort_keys[-sentences:, 0] = 0  # the empty hypothesis; the other entries are unused
    return living, finished


def _split(best: Continuations, ends: Bool[Tensor, "B C"], beam_size: int) -> tuple[Continuations, Continuations]:
    """Return two sets: the continuations among the best N that end with `<eos>`, and the best N without `<eos>`.

    Each sentence has the same number of entries; unused entries have the log probability −inf.
    """
    ending = best.first(beam_size)
    ending = ending._replace(log_probs=ending.log_probs.masked_fill(~ends[:, :beam_size], -torch.inf))
    lasting = best._replace(log_probs=best.log_probs.masked_fill(ends, -torch.inf))
    # a stable sort, so that the continuations without `<eos>` remain in the order of their log probabilities
    return ending, lasting.pick(ends.int().argsort(dim=1, stable=True)[:, :beam_size])


def _seen(
    active: Active, living: _Paths, best: Continuations, settings: DecodingConfig, eos_id: int
) -> Iterator[SearchStep]:
    """Yield the possible candidates of each sentence, and whether `_split` keeps, finishes or drops each of them."""
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
        penalty = penalty_of(position + 1, settings)
        yield SearchStep.of(sentence, own, possible, beam_size=settings.beam_size, eos_id=eos_id, penalty=penalty)


def _merge(finished: _Paths, newcomers: _Paths, penalty: Float[Tensor, "B 1"]) -> _Paths:
    """Return the N paths with the highest scores among the N finished paths and the newly finished `newcomers`."""
    newcomers = newcomers._replace(sort_keys=score_of(newcomers.sort_keys, penalty))
    both = _Paths(*(torch.cat(pair, dim=1) for pair in zip(finished, newcomers, strict=True)))
    keys, places = both.sort_keys.topk(finished.sort_keys.shape[1])
    rows = torch.arange(len(keys), device=keys.device)[:, None]
    return _Paths(keys, both.tokens[rows, places], both.token_log_probs[rows, places])


def _results(
    sentences: Int[Tensor, "B"], lengths: Int[Tensor, "B"], finished: _Paths, eos_id: int, settings: DecodingConfig
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Yield each sentence's index and hypotheses, best first; `lengths` are the numbers of columns with its tokens."""
    fields = (sentences, lengths, *finished)
    for sentence, length, *ways in zip(*(field.tolist() for field in fields), strict=True):
        found = [
            Hypothesis.ending_with(eos_id, tokens[-length:], token_log_probs[-length:], settings)
            for rank, tokens, token_log_probs in zip(*ways, strict=True)
            if rank > -torch.inf
        ]
        if not found:
            raise no_output(sentence)
        yield sentence, sorted(found, key=lambda hypothesis: hypothesis.score, reverse=True)
