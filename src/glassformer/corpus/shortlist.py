"""Shortlists: the few target tokens that a source suggests. A search with a shortlist chooses only among these tokens.

The candidates of a source token are the target tokens that it most probably generates, according to IBM model 1 on the
ids of the training pairs. A source token that is also a target token, such as a name or a number, is its own candidate.

shortlist.safetensors    the candidates of each source token, and the most frequent target tokens

Papers: L'Hostis et al. 2016, "Vocabulary selection strategies for neural machine translation"; Senellart et al. 2018,
"OpenNMT system description for WNMT 2018".
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from glassformer.corpus.batching import Examples
from glassformer.errors import CheckpointError, ConfigError, quoted, shortened
from glassformer.system.files import check_regular, write_safely
from glassformer.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SUGGESTED", "Shortlist"]

SUGGESTED = 20
"""Maximum number of candidates of a source token. A larger number adds many candidates to a batch, but changes few
outputs (docs/decisions/shortlists.md)."""
MOST_LINKS = 16_000_000
"""Maximum number of links (a source position and a target position of the same pair) to align. Of a larger corpus, only
every n-th pair is read."""
MODEL_1_ROUNDS = 5
"""Number of rounds of expectation maximisation; 5 is usual for IBM model 1."""
_FORMAT = {"format": "glassformer shortlist 1"}
_TENSORS = ("frequent", "candidates", "ends")


@dataclass(frozen=True, slots=True, eq=False)
class Shortlist:
    """The candidates of each source token, and all target tokens, most frequent first."""

    frequent: "NDArray[np.int32]"
    """Ids of the target tokens, most frequent first, without `<pad>`, `<bos>` and `<eos>`."""
    candidates: "NDArray[np.int32]"
    """Ids of the candidates of all source tokens, one token after the other."""
    ends: "NDArray[np.int64]"
    """For each source token, the end of its candidates in `candidates`."""
    target_size: int
    """Number of target tokens."""
    _rows: "NDArray[np.int32]" = field(init=False, repr=False)
    """A row of candidates for each source token. All rows have equal length; a shorter row repeats a candidate."""

    def __post_init__(self) -> None:
        """Arrange the candidates in rows."""
        sizes = np.diff(self.ends, prepend=0)
        inside = np.arange(sizes.max(initial=0)) < sizes[:, None]
        rows = np.full(inside.shape, self.frequent[0] if len(self.frequent) else 0, np.int32)
        if len(self.candidates) == inside.sum():  # otherwise, the file is damaged, which `load` reports
            rows[inside] = self.candidates
        object.__setattr__(self, "_rows", rows)

    @classmethod
    def aligned(cls, examples: Examples, source: Tokenizer, target: Tokenizer) -> "Shortlist":
        """Return the shortlist of a training corpus; `examples` are its pairs, encoded with these tokenizers."""
        sources, targets = (_sample(examples, side) for side in ("source", "target"))
        counts = np.bincount(np.concatenate([*targets, [0]]), minlength=len(target))
        ranked = np.argsort(-counts, kind="stable")
        frequent = ranked[~np.isin(ranked, [target.pad_id, target.bos_id, target.eos_id])]
        suggesting, suggested, chances = _translations(sources, targets, len(target))
        own = _own(source, target)
        suggesting, suggested = np.concatenate([own[0], suggesting]), np.concatenate([own[1], suggested])
        chances = np.concatenate([np.full(len(own[0]), np.inf), chances])
        order = np.lexsort((suggested, -chances, suggesting))
        keys = suggesting[order] * len(target) + suggested[order]
        # Drops duplicates: a token that is its own candidate may also be aligned to itself.
        order = order[np.sort(np.unique(keys, return_index=True)[1])]
        sizes = np.bincount(suggesting[order], minlength=len(source))
        ranks = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return cls(
            frequent=frequent.astype(np.int32),
            candidates=suggested[order][ranks < SUGGESTED].astype(np.int32),
            ends=np.cumsum(np.minimum(sizes, SUGGESTED)),
            target_size=len(target),
        )

    def of(self, source: Sequence[int], count: int, always: Iterable[int]) -> tuple[int, ...]:
        """Return the ascending ids of the tokens that may be in the output for a source.

        Args:
            source: ids of the source.
            count: number of frequent tokens.
            always: ids that are candidates for any source.
        """
        chosen = np.zeros(self.target_size, bool)
        chosen[self.frequent[:count]] = True
        chosen[[*always]] = True
        chosen[self._rows[[*source]]] = True
        return tuple(np.flatnonzero(chosen).tolist())

    def lines(self, count: int, source: Sequence[str], target: Sequence[str]) -> Iterator[str]:
        """Yield the lines of CTranslate2's vocabulary map: a source token, a tab, and its candidates.

        The first line, without a source token, has the frequent tokens.

        Raises:
            ConfigError: a token contains white space, where CTranslate2 would split it.
        """
        for token in (*source, *target):
            if not token or token.split() != [token]:
                raise ConfigError(
                    f"decoding.shortlist: expected 0 with CTranslate2, whose vocabulary map cannot express the token "
                    f"{quoted(token)}, got {count}; set 0, or use the engine torch"
                )
        yield "\t" + " ".join(target[id] for id in self.frequent[:count].tolist())
        for token, begin, end in zip(source, [0, *self.ends.tolist()], self.ends.tolist(), strict=False):
            if end > begin:
                ids = self.candidates[begin:end].tolist()
                yield f"{token}\t" + " ".join(target[id] for id in ids)

    def save(self, path: Path) -> None:
        """Write the shortlist into a file. Equal shortlists give equal files.

        Raises:
            CheckpointError: the file cannot be written.
        """
        from safetensors.numpy import save

        content = save({name: getattr(self, name) for name in _TENSORS}, metadata=_FORMAT)
        write_safely(path, lambda temporary: temporary.write_bytes(content))

    @classmethod
    def load(cls, path: Path, source_size: int, target_size: int) -> "Shortlist":
        """Return the shortlist in a file; `source_size` and `target_size` are the sizes of the run's vocabularies.

        Raises:
            CheckpointError: the file is missing or damaged, or belongs to a run with different vocabularies.
        """
        from safetensors import SafetensorError, safe_open

        check_regular(path)
        if not path.exists():
            command = f"glassformer calibrate {shlex.quote(str(path.parent))} --set decoding.shortlist=N"
            raise CheckpointError(f"{path} does not exist; `{command}` makes the file from the training corpus")
        try:
            with safe_open(path, framework="np") as file:
                kind, tensors = file.metadata(), {name: file.get_tensor(name) for name in _TENSORS}
        except (SafetensorError, OSError, MemoryError, TypeError) as error:
            reason = shortened(str(error).partition("\n")[0])
            raise CheckpointError(f"{path} is damaged or cut short: {reason}; copy it again, or delete it") from error
        found = cls(**tensors, target_size=target_size)
        if kind != _FORMAT or not found._fits(source_size):
            raise CheckpointError(
                f"{path}: expected a shortlist for {source_size:,} source and {target_size:,} target tokens, got a "
                "different file; copy the file again, or delete it"
            )
        return found

    def _fits(self, source_size: int) -> bool:
        """Return whether the tensors have the types, the sizes and the values of a shortlist."""
        every, ends = (self.frequent, self.candidates), self.ends
        if any(one.dtype != np.int32 or one.ndim != 1 for one in every) or ends.dtype != np.int64:
            return False
        ids = np.concatenate(every)
        rising = np.diff(ends, prepend=0, append=len(self.candidates))
        in_range = len(self.frequent) > 0 and ids.min() >= 0 and ids.max() < self.target_size
        return bool(in_range and ends.shape == (source_size,) and rising.min() >= 0 and rising[-1] == 0)


def _sample(examples: Examples, side: str) -> list[Any]:
    """Return the ids of one side of the training pairs, without `<eos>`; for a large corpus, only every n-th pair."""
    sides = examples.source, examples.target
    probe = range(0, len(examples), max(1, len(examples) // 1000))
    links = sum(len(sides[0][place]) * len(sides[1][place]) for place in probe) * len(examples) / max(len(probe), 1)
    step = max(1, round(links / MOST_LINKS))
    ids = getattr(examples, side)
    return [np.asarray(ids[place], np.int64)[:-1] for place in range(0, len(examples), step)]


def _own(source: Tokenizer, target: Tokenizer) -> tuple[Any, Any]:
    """Return the source ids of the tokens that both vocabularies have, and the target ids of the same tokens."""
    written = {token: id for id, token in enumerate(target.tokens(range(len(target))))}
    both = [(id, written[token]) for id, token in enumerate(source.tokens(range(len(source)))) if token in written]
    pairs = np.array(both, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _translations(sources: Sequence[Any], targets: Sequence[Any], target_size: int) -> tuple[Any, Any, Any]:
    """Return three arrays from IBM model 1: source tokens, target tokens that they generate, and the probabilities.

    Row 0 of the model generates the target tokens that no source token generates.
    """
    rows = [np.concatenate([[0], source + 1]) for source in sources]
    links = [np.add.outer(target, row * target_size).ravel() for row, target in zip(rows, targets, strict=True)]
    sizes = np.concatenate([np.full(len(target), len(row)) for row, target in zip(rows, targets, strict=True)])
    keys, kind = np.unique(np.concatenate(links), return_inverse=True)
    generating, generated = np.divmod(keys, target_size)
    first = np.cumsum(sizes) - sizes
    chances = np.ones(len(keys))
    for _ in range(MODEL_1_ROUNDS):
        shares = chances[kind]
        shares /= np.repeat(np.add.reduceat(shares, first), sizes)
        counts = np.bincount(kind, shares, len(keys))
        chances = counts / np.bincount(generating, counts)[generating]
    of_tokens = generating > 0
    return generating[of_tokens] - 1, generated[of_tokens], chances[of_tokens]
