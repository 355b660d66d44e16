"""Snapshots: a model's weights at several steps of its training, in half precision, to replay the training.

    snapshots/step-00000256.safetensors

Snapshots are taken at powers of two. A model learns most at the beginning, so these steps show more than equally spaced
steps would. The latest few snapshots span a training run of any length.
"""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from glassformer.bundle import write_tensors
from glassformer.system.files import write_safely

__all__ = ["SNAPSHOTS", "Snapshots"]

SNAPSHOTS = "snapshots"
"""The folder of the snapshots in a run's folder."""

FIRST_SNAPSHOT = 8
"""The first step with a snapshot."""


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The snapshots of a run. Only the latest `keep` snapshots are kept; with `keep` = 0, no snapshots are taken."""

    folder: Path
    keep: int

    def due(self, step: int) -> bool:
        """Return whether to take a snapshot at this step: at each power of two from 8 on."""
        return self.keep > 0 and step >= FIRST_SNAPSHOT and step.bit_count() == 1

    def save(self, model: nn.Module, step: int) -> Path:
        """Write the model's weights as float16, delete the oldest surplus snapshot, and return the new snapshot's file.

        A matrix shared by several parts is written once, under its first name.

        Raises:
            CheckpointError: the snapshot cannot be written; the earlier snapshots are kept.
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
        """Delete the snapshots after the step at which a run resumes, because training may now continue differently."""
        for later, path in self.paths().items():
            if later > step:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(f"step-{'[0-9]' * 8}.safetensors"))
