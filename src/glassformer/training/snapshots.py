"""Snapshots: a model's weights as they were along its training, in half precision, so that it can be played back.

    snapshots/step-00000256.safetensors

They are taken at powers of two. A training learns most at its beginning, so that these steps show more than equal
distances would; and the latest few of them span any training, however long it turns out to be.
"""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from glassformer.bundle import write_tensors
from glassformer.text.storage import write_safely

__all__ = ["SNAPSHOTS", "Snapshots"]

SNAPSHOTS = "snapshots"
"""Their folder in a run."""

FIRST = 8
"""The first step that is worth a snapshot."""


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The snapshots of a run, of which the latest `keep` are kept; 0 = none are taken."""

    folder: Path
    keep: int

    def due(self, step: int) -> bool:
        """Return whether one is to be taken at this step: at each power of two from 8."""
        return self.keep > 0 and step >= FIRST and step.bit_count() == 1

    def save(self, model: nn.Module, step: int) -> Path:
        """Write the model's weights as float16, drop the oldest snapshot, and return the new one's file.

        A matrix that several parts share is written once, under its first name.

        Raises:
            CheckpointError: it could not be written; the earlier ones are still there.
        """
        path = self.folder / f"step-{step:08d}.safetensors"
        weights = {name: weight.detach().half().contiguous() for name, weight in model.named_parameters()}
        write_safely(path, lambda temporary: write_tensors(weights, temporary))
        for old in self._files()[: -self.keep]:
            old.unlink(missing_ok=True)
        return path

    def paths(self) -> dict[int, Path]:
        """Return the files of all snapshots by step, oldest first."""
        return {int(path.stem.removeprefix("step-")): path for path in self._files()}

    def forget_after(self, step: int) -> None:
        """Drop what lies behind the checkpoint from which a run goes on: it will come again, perhaps otherwise."""
        for later, path in self.paths().items():
            if later > step:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(f"step-{'[0-9]' * 8}.safetensors"))
