"""The trace of a beam search: the candidates at each step, and the tree that they form.

`beam_search` passes one `SearchStep` per sentence and position to its argument `watch`. The steps give a tree:

    seen: list[SearchStep] = []
    beam_search(step, beam_size=4, max_lengths=[20], watch=seen.append)
    tree = SearchTree.of(seen, bos_id=step.bos_id)
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from glassformer.decoding.hypothesis import score_of

__all__ = ["Candidate", "Fate", "Node", "SearchStep", "SearchTree"]

Fate = Literal["kept", "finished", "pruned"]
"""The fate of a candidate: kept among the N best, finished with `<eos>`, or dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A possible continuation of a hypothesis."""

    parent: int
    """Index of the continued hypothesis among the hypotheses kept at the previous position, best first; 0 at the first
    position."""
    token: int
    token_log_prob: float
    """Log probability of this token (natural logarithm, ≤ 0)."""
    log_prob: float
    """Log probability of the whole hypothesis: the sum over its tokens, rounded once."""
    state: Fate
    """The candidate's fate. The field has this name because the explorer's page reads it; a `Step` has an unrelated
    `State`."""
    score: float | None
    """`log_prob` divided by the length penalty; None unless the candidate is finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStep:
    """The best 2N candidates for one position of one sentence; N is the beam size."""

    sentence: int
    position: int
    """Index of the candidates' token in the output, from 0."""
    candidates: tuple[Candidate, ...]
    """The candidates, best first; fewer than 2N if fewer continuations are possible."""

    @classmethod
    def of(
        cls,
        sentence: int,
        living: Sequence[Sequence[float]],
        ways: Sequence[tuple[int, int, float]],
        *,
        beam_size: int,
        eos_id: int,
        penalty: float,
    ) -> "SearchStep":
        """Return the step that extends the hypotheses `living`, each given by the log probabilities of its tokens.

        `ways` are the continuations (parent, token, token_log_prob), best first. `penalty` is the length penalty of the
        hypotheses that finish in this step.
        """
        fates = _fates((token for _, token, _ in ways), beam_size, eos_id)
        candidates = []
        for (parent, token, token_log_prob), state in zip(ways, fates, strict=True):
            log_prob = math.fsum((*living[parent], token_log_prob))
            score = score_of(log_prob, penalty) if state == "finished" else None
            candidates.append(
                Candidate(
                    parent=parent,
                    token=token,
                    token_log_prob=token_log_prob,
                    log_prob=log_prob,
                    state=state,
                    score=score,
                )
            )
        return cls(sentence=sentence, position=len(living[0]), candidates=tuple(candidates))


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A candidate as a node of the tree; the root is `<bos>`."""

    id: int
    """Index among the tree's nodes; 0 is the root."""
    parent: int | None
    """The id of the parent node; None at the root."""
    position: int
    """Index of the token in the output, from 0; −1 at the root."""
    token: int
    token_log_prob: float
    """Log probability of this token (natural logarithm, ≤ 0); 0 at the root."""
    log_prob: float
    """Log probability of the whole hypothesis: the sum over its tokens, rounded once."""
    state: Fate
    """The candidate's fate. The field has this name because the explorer's page reads it; a `Step` has an unrelated
    `State`."""
    score: float | None
    """`log_prob` divided by the length penalty; None unless the candidate is finished."""


@dataclass(frozen=True, slots=True)
class SearchTree:
    """All candidates of one sentence; each is a child of the candidate that it continues."""

    nodes: tuple[Node, ...]
    """The nodes by id: the root, then position by position, best first."""

    @classmethod
    def of(cls, seen: Iterable[SearchStep], *, bos_id: int, sentence: int = 0) -> "SearchTree":
        """Return the tree of one sentence, from the steps that `watch` received."""
        root = Node(
            id=0, parent=None, position=-1, token=bos_id, token_log_prob=0.0, log_prob=0.0, state="kept", score=None
        )
        nodes, beam = [root], [0]
        for step in seen:
            if step.sentence == sentence:
                new = list(_nodes(step, beam, first_id=len(nodes)))
                nodes, beam = nodes + new, [node.id for node in new if node.state == "kept"]
        return cls(tuple(nodes))

    def path(self, id: int) -> list[Node]:
        """Return the nodes from the first token to this node; an empty list for the root."""
        path = []
        while (node := self.nodes[id]).parent is not None:
            path.append(node)
            id = node.parent
        return path[::-1]

    def steps(self) -> list[list[Node]]:
        """Return the nodes of each position, best first, without the root."""
        return [list(nodes) for _, nodes in groupby(self.nodes[1:], key=lambda node: node.position)]


def _fates(tokens: Iterable[int], beam_size: int, eos_id: int) -> Iterator[Fate]:
    """Yield the fate of each candidate, given the candidates' tokens, best first.

    Among the first N candidates, those with `<eos>` are finished. The first N candidates without `<eos>` are kept. All
    other candidates are pruned.
    """
    kept = 0
    for place, token in enumerate(tokens):
        if token == eos_id:
            yield "finished" if place < beam_size else "pruned"
        else:
            yield "kept" if kept < beam_size else "pruned"
            kept += 1


def _nodes(step: SearchStep, beam: Sequence[int], first_id: int) -> Iterator[Node]:
    for id, candidate in enumerate(step.candidates, start=first_id):
        yield Node(
            id=id,
            parent=beam[candidate.parent],
            position=step.position,
            token=candidate.token,
            token_log_prob=candidate.token_log_prob,
            log_prob=candidate.log_prob,
            state=candidate.state,
            score=candidate.score,
        )
