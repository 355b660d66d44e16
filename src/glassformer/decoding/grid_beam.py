"""Grid beam search: a beam search whose outputs contain given phrases, each as one uninterrupted run of tokens.

A hypothesis either writes a free token, begins one of its phrases, or goes on with the phrase that it has begun. The
hypotheses of a sentence are kept in rows of a grid, by the number of phrase tokens that they still have to write; each
row keeps the N best. So a hypothesis that has paid for improbable phrase tokens never competes with one that has not.

Finished hypotheses are ranked by their score, but the log probabilities of phrase tokens are not divided by the length
penalty: they can be so low that a longer output, which shares them among more tokens, would always win.

Paper: Hokamp and Liu 2017. Differs: a phrase may have several spellings, and need not join with the words around.

Axis letters: B active sentences · R rows of the state (B × hypotheses per sentence) · V vocabulary · N beam size.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding.constraints import Constraints
from glassformer.decoding.engine import Ids, Spellings, WordEdges, check_n_best
from glassformer.decoding.hypothesis import Hypothesis, penalty_of, score_of
from glassformer.decoding.queued_step import Active
from glassformer.decoding.step import State, Step
from glassformer.errors import DecodingError
from glassformer.recipes.configuration import DecodingConfig

__all__ = ["grid_beam_search"]


@torch.inference_mode()
def grid_beam_search(
    step: Step[State],
    *,
    max_lengths: Sequence[int],
    phrases: Sequence[Sequence[Spellings]],
    edges: WordEdges | None = None,
    n_best: int = 1,
    prefixes: Sequence[Sequence[int]] | None = None,
    **settings: Any,
) -> list[list[Hypothesis]]:
    """Return for each sentence the `n_best` distinct hypotheses that contain its phrases and rank highest, best first.

    A sentence has no hypothesis if no output contains its phrases within its maximum length. Without phrases, the
    result is that of `beam_search`. With a beam as large as the space of outputs, the search is exhaustive.

    Args:
        step: The model and its sources.
        max_lengths: For each sentence, its maximum number of tokens, including `<eos>`.
        phrases: For each sentence, the phrases that its outputs must contain, in any order and without overlaps; a
            phrase that is listed twice must occur twice. A phrase is a set of spellings, one of which suffices.
        edges: How tokens join to words; if given, a phrase occurs only where it does not join with the tokens around.
        n_best: Number of hypotheses to return, at most `beam_size`.
        prefixes: For each sentence, the tokens that its output must begin with.
        settings: Settings of `DecodingConfig` by name; the search reads `beam_size` and `length_penalty`.

    Raises:
        ConfigError: a setting is out of range.
        DecodingError: `n_best` is out of range, a prefix does not fit, or a spelling is empty or not of the vocabulary.
    """
    decoding = DecodingConfig(**settings)
    check_n_best(n_best, decoding.beam_size)
    constraints = Constraints.of(step, max_lengths, prefixes)
    _check(step, max_lengths, phrases)
    edges = edges or WordEdges((0,) * step.vocab_size, (0,) * step.vocab_size)
    if len(edges.begins) != step.vocab_size:
        raise DecodingError(f"edges: expected those of {step.vocab_size} tokens, got {len(edges.begins)}")
    grids = [_Grid(each, edges, length, decoding) for each, length in zip(phrases, max_lengths, strict=True)]
    _search(step, constraints, grids, edges)
    return [[one.hypothesis(step.eos_id, decoding) for one in grid.finished[:n_best]] for grid in grids]


class _Progress(NamedTuple):
    """What a hypothesis still has to write."""

    left: tuple[int, ...]
    """The phrases that have not begun, as ascending indices; equal phrases have the same index."""
    ahead: Ids = ()
    """The next tokens, if a phrase has begun."""
    is_after: bool = False
    """Whether the newest token ended a phrase."""


class _Path(NamedTuple):
    """A hypothesis without `<bos>`."""

    key: float
    """Its log probability; once it has finished, the key by which it ranks."""
    of_phrases: float
    """Sum of the log probabilities of its phrase tokens."""
    tokens: Ids
    token_log_probs: tuple[float, ...]
    progress: _Progress
    row: int
    """The row of the state from which its newest token was chosen."""

    def hypothesis(self, eos_id: int, settings: DecodingConfig) -> Hypothesis:
        return Hypothesis.ending_with(eos_id, self.tokens, self.token_log_probs, settings)


class _Move(NamedTuple):
    """A continuation of a path by one token; `key` is the log probability of the longer path."""

    key: float
    path: _Path
    row: int
    token: int
    token_log_prob: float
    progress: _Progress
    of_phrases: float

    def made(self, key: float) -> _Path:
        path = self.path
        log_probs = (*path.token_log_probs, self.token_log_prob)
        return _Path(key, self.of_phrases, (*path.tokens, self.token), log_probs, self.progress, self.row)


class _Grid:
    """The hypotheses of one sentence."""

    def __init__(
        self, phrases: Sequence[Spellings], edges: WordEdges, max_length: int, settings: DecodingConfig
    ) -> None:
        self.edges, self.max_length, self.settings = edges, max_length, settings
        self._phrases = list(dict.fromkeys(phrases))
        left = tuple(sorted(map(self._phrases.index, phrases)))
        self.living = [_Path(0.0, 0.0, (), (), _Progress(left), 0)]
        self.finished: list[_Path] = []

    def phrase_moves(self, path: _Path) -> Iterator[tuple[int, _Progress]]:
        """Yield the tokens that go on with a phrase or begin one, each with the progress that follows."""
        left, ahead, _ = path.progress
        if ahead:
            yield ahead[0], _Progress(left, ahead[1:], len(ahead) == 1)
            return
        before = self.edges.ends[path.tokens[-1]] if path.tokens else 0
        for place, phrase in enumerate(left):
            if phrase not in left[:place]:
                rest = left[:place] + left[place + 1 :]
                for first, *others in self._phrases[phrase]:
                    if not (before and before == self.edges.begins[first]):
                        yield first, _Progress(rest, tuple(others), not others)

    def advance(self, moves: Iterable[_Move], eos_id: int) -> None:
        """Replace the living paths by the N best in each row of the grid; N of those that end may finish."""
        beam_size, length = self.settings.beam_size, len(self.living[0].tokens) + 1
        penalty = penalty_of(length, self.settings)
        rows: dict[int, dict[Any, _Move]] = {}
        for move in moves:
            if move.token == eos_id or length + self._fewest(move.progress) < self.max_length:
                row = rows.setdefault(self._most(move.progress), {})
                same = (move.path.tokens, move.token, move.progress)  # the same tokens, with phrases at other places
                if same not in row or row[same].of_phrases < move.of_phrases:
                    row[same] = move
        self.living = []
        for found in rows.values():
            best = sorted(found.values(), key=lambda move: move.key, reverse=True)
            ends = (move for move in best[:beam_size] if move.token == eos_id)
            self._finish(move.made(_rank(move.key, move.of_phrases, penalty)) for move in ends)
            self.living += [move.made(move.key) for move in best if move.token != eos_id][:beam_size]

    def goes_on(self) -> bool:
        """Return whether the best living path, as if it ended now, beats the N-th best finished one.

        A path whose phrases are not written yet counts as if they cost what they cost the finished path that paid
        least; otherwise, it would always beat those that have paid.
        """
        if not self.living or len(self.finished) < self.settings.beam_size:
            return bool(self.living)
        penalty = penalty_of(len(self.living[0].tokens), self.settings)
        least = max(path.of_phrases for path in self.finished)
        ranks = (score_of(path.key - path.of_phrases, penalty) + min(path.of_phrases, least) for path in self.living)
        return max(ranks) > self.finished[-1].key

    def _finish(self, paths: Iterable[_Path]) -> None:
        """Add finished paths, and keep the N best; no two have the same tokens."""
        best = sorted([*self.finished, *paths], key=lambda path: path.key, reverse=True)
        self.finished = best[: self.settings.beam_size]

    def _most(self, progress: _Progress) -> int:
        """Return the largest number of phrase tokens that may still be to write: the row of the grid."""
        return len(progress.ahead) + sum(max(map(len, self._phrases[phrase])) for phrase in progress.left)

    def _fewest(self, progress: _Progress) -> int:
        return len(progress.ahead) + sum(min(map(len, self._phrases[phrase])) for phrase in progress.left)


def _search(step: Step[State], constraints: Constraints, grids: Sequence[_Grid], edges: WordEdges) -> None:
    """Advance the grids until all have ended."""
    active, going = Active(step, len(grids)), list(grids)
    newest = torch.full((active.admit() if grids else 0,), step.bos_id, device=step.device)
    begins = torch.tensor(edges.begins, device=step.device)
    while going:
        log_probs = active.advance(newest).nan_to_num_(nan=-torch.inf, neginf=-torch.inf)
        constraints.apply_(log_probs, active.sentences, active.positions)
        each = len(log_probs) // len(going)
        paths = {b * each + i: path for b, grid in enumerate(going) for i, path in enumerate(grid.living)}
        _separate_(log_probs, paths, edges, begins)
        for grid, moves in zip(going, _moves(log_probs, going, each, step.eos_id), strict=True):
            grid.advance(moves, step.eos_id)

        kept = [place for place, grid in enumerate(going) if grid.goes_on()]
        going = [going[place] for place in kept]
        most = max((len(grid.living) for grid in going), default=0)
        # The state has the same number of rows for each sentence: a sentence with fewer paths repeats one.
        chosen = [grid.living + grid.living[:1] * (most - len(grid.living)) for grid in going]
        active.keep(_ids(kept, step.device), _ids([path.row for path in chain(*chosen)], step.device))
        newest = _ids([path.tokens[-1] for path in chain(*chosen)], step.device)


def _ids(values: Sequence[int], device: torch.device) -> Int[Tensor, "R"]:
    return torch.tensor(values, device=device, dtype=torch.int64)


def _separate_(
    log_probs: Float[Tensor, "R V"], paths: dict[int, _Path], edges: WordEdges, begins: Int[Tensor, "V"]
) -> None:
    """Set the tokens that would join with a phrase that has just ended to −inf, in place."""
    for row, path in paths.items():
        if path.progress.is_after and (kind := edges.ends[path.tokens[-1]]):
            log_probs[row].masked_fill_(begins == kind, -torch.inf)


def _moves(log_probs: Float[Tensor, "R V"], grids: Sequence[_Grid], each: int, eos_id: int) -> Iterator[list[_Move]]:
    """Yield the possible moves of each sentence; of the free ones, the N best of each path, and its end."""
    special = [
        [(b * each + i, path, *move) for i, path in enumerate(grid.living) for move in grid.phrase_moves(path)]
        for b, grid in enumerate(grids)
    ]
    places = [(row, token) for row, _, token, _ in chain(*special)]
    flat = _ids([row * log_probs.shape[1] + token for row, token in places], log_probs.device)
    values = iter(log_probs.take(flat).tolist())
    ends = log_probs[:, eos_id].tolist()
    log_probs[:, eos_id] = -torch.inf
    best = log_probs.topk(min(max((grid.settings.beam_size for grid in grids), default=1), log_probs.shape[1]))
    best_values, best_tokens = best.values.tolist(), best.indices.tolist()
    for b, grid in enumerate(grids):
        found = [
            _move(path, row, token, next(values), progress, is_of_phrase=True)
            for row, path, token, progress in special[b]
        ]
        for row, path in enumerate(grid.living, start=b * each):
            left, ahead, _ = path.progress
            if not ahead:
                free = _Progress(left)
                pairs = zip(best_tokens[row], best_values[row], strict=True)
                found += [_move(path, row, token, value, free) for token, value in pairs]
                if not left:
                    found.append(_move(path, row, eos_id, ends[row], free))
        yield [move for move in found if move.key > -torch.inf]


def _move(
    path: _Path, row: int, token: int, log_prob: float, progress: _Progress, *, is_of_phrase: bool = False
) -> _Move:
    cost = path.of_phrases + (log_prob if is_of_phrase else 0.0)
    return _Move(path.key + log_prob, path, row, token, log_prob, progress, cost)


def _rank(log_prob: float, of_phrases: float, penalty: float) -> float:
    """Return the score of the free tokens, plus the log probability of the phrase tokens."""
    return score_of(log_prob - of_phrases, penalty) + of_phrases


def _check(step: Step[Any], max_lengths: Sequence[int], phrases: Sequence[Sequence[Spellings]]) -> None:
    if len(phrases) != len(max_lengths):
        raise DecodingError(
            f"phrases: expected a list for each of {len(max_lengths)} sentences, got {len(phrases)}; give [] for none"
        )
    special = (step.pad_id, step.bos_id, step.eos_id)
    for sentence, several in enumerate(phrases):
        for phrase in several:
            for spelling in phrase or [()]:
                if not spelling or any(not 0 <= token < step.vocab_size or token in special for token in spelling):
                    raise DecodingError(
                        f"the phrases of sentence {sentence}: expected spellings of ids from 0 to "
                        f"{step.vocab_size - 1} without special tokens, got {list(spelling)}; encode them with the "
                        "tokenizer of this model's target"
                    )
