"""Read and write the work of all peers. Every peer imports this module, so it needs numpy only.

B: pairs of a batch · S: source positions · T: target positions.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TASK, BATCHES, EXAMPLES, WEIGHTS, TOKENIZER = (
    "task.json",
    "batches.npz",
    "examples.npz",
    "weights.npz",
    "tokenizer.model",
)
PAD, BOS, EOS, UNK = range(4)

Ids = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Task:
    """Sizes and training settings of the reference model."""

    vocabulary: int = 8000
    d_model: int = 256
    heads: int = 4
    d_ff: int = 1024
    encoder_layers: int = 3
    decoder_layers: int = 3
    max_length: int = 1100
    """Number of positions, for peers that keep positions in a table."""
    dropout: float = 0.1
    smoothing: float = 0.1
    learning_rate: float = 3e-4
    batch_tokens: int = 4096
    """Maximum number of target (or source) tokens in a batch, including padding."""
    seed: int = 1


class Batch(NamedTuple):
    """Sentence pairs, padded with id 0."""

    source: Ids
    """(B, S) source ids; each row ends with `<eos>`, then padding."""
    target_input: Ids
    """(B, T) `<bos>`, then the target without `<eos>`, then padding."""
    target_output: Ids
    """(B, T) the target with `<eos>`, then padding."""

    @property
    def target_tokens(self) -> int:
        """Number of target ids without padding."""
        return int(np.count_nonzero(self.target_output != PAD))


def read_task(folder: Path) -> Task:
    """Return the task in this folder."""
    return Task(**json.loads((folder / TASK).read_text()))


def write_task(task: Task, folder: Path) -> None:
    """Write the task into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TASK).write_text(json.dumps(asdict(task), indent=2))


def read_batches(path: Path) -> list[Batch]:
    """Return the list of batches that `write_batches` wrote."""
    with np.load(path) as file:
        return [Batch(*(file[f"{number}-{name}"] for name in Batch._fields)) for number in range(int(file["count"]))]


def write_batches(batches: Sequence[Batch], path: Path) -> None:
    """Write the list of batches."""
    arrays = {
        f"{number}-{name}": ids
        for number, batch in enumerate(batches)
        for name, ids in zip(Batch._fields, batch, strict=True)
    }
    _save(path, {**arrays, "count": np.array(len(batches))})


def read_weights(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Return the weights of the glassformer model by name."""
    with np.load(folder / WEIGHTS) as file:
        return dict(file)


def write_weights(weights: Mapping[str, NDArray[np.float32]], folder: Path) -> None:
    """Write the weights of the glassformer model by name."""
    _save(folder / WEIGHTS, dict(weights))


def read_sentences(path: Path) -> tuple[list[Ids], list[Ids]]:
    """Return the source and target sentences that `write_sentences` wrote."""
    with np.load(path) as file:
        sides = (np.split(file[side], np.cumsum(file[f"{side}-lengths"])[:-1]) for side in ("source", "target"))
        source, target = sides
    return source, target


def write_sentences(source: Sequence[Ids], target: Sequence[Ids], path: Path) -> None:
    """Write sentence pairs."""
    sides = {"source": source, "target": target}
    arrays = {name: np.concatenate(list(side)) for name, side in sides.items()}
    _save(path, arrays | {f"{name}-lengths": np.array(list(map(len, side))) for name, side in sides.items()})


def _save(path: Path, arrays: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
