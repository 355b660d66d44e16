"""The common part of all PyTorch peers: an update of the weights, and decoding in batches."""

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.peers.task import PAD, Batch, Task, read_task

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""A function that returns the mean loss, given source (B, S), target input (B, T) and target output (B, T)."""
Decode = Callable[[Tensor, int], list[list[int]]]
"""A function that returns the output ids, without special ids, given source (B, S) and a beam size."""


class TorchPeer:
    """A model with its optimiser, loss and search."""

    def __init__(
        self,
        precision: str,
        model: torch.nn.Module,
        optimiser: torch.optim.Optimizer,
        loss: Loss,
        decode: Decode,
        packages: Sequence[str] = (),
    ) -> None:
        self.model, self.optimiser, self.loss, self.decode = model.train(), optimiser, loss, decode
        self.bf16, self.packages = precision == "bf16", packages

    def update(self, batch: Batch, number: int, rate: float | None) -> float:  # noqa: ARG002
        """Update the weights as in an ordinary PyTorch training loop; bf16 uses autocast."""
        self.model.train()
        if rate is not None:
            for group in self.optimiser.param_groups:
                group["lr"] = rate
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bf16):
            loss = self.loss(*map(torch.from_numpy, batch))
        loss.backward()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return float(loss.detach())

    def translate(self, sources: Sequence[Sequence[int]], beam_size: int, batch_size: int) -> list[list[int]]:
        """Decode in batches, longest sentences first."""
        self.model.eval()
        found: list[list[int]] = [[] for _ in sources]
        places = sorted(range(len(sources)), key=lambda place: -len(sources[place]))
        with torch.inference_mode():
            for begin in range(0, len(places), batch_size):
                batch = places[begin : begin + batch_size]
                for place, ids in zip(
                    batch, self.decode(padded([sources[place] for place in batch]), beam_size), strict=True
                ):
                    found[place] = ids
        return found

    def versions(self) -> dict[str, str]:
        """Return the versions of Python, PyTorch and the peer."""
        packages = {name: version(name) for name in ("torch", *self.packages)}
        return {"python": sys.version.split()[0], **packages}


def begin(folder: Path) -> Task:
    """Seed the random numbers from the task; return the task."""
    task = read_task(folder)
    torch.manual_seed(task.seed)
    return task


def adam(model: torch.nn.Module, task: Task) -> torch.optim.Adam:
    """Return Adam with the paper's settings and PyTorch's default implementation."""
    return torch.optim.Adam(model.parameters(), lr=task.learning_rate, betas=(0.9, 0.98), eps=1e-9)


def cross_entropy(task: Task) -> Callable[[Tensor, Tensor], Tensor]:
    """Return PyTorch's loss for logits (B, T, V) and target output (B, T)."""
    loss = torch.nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=task.smoothing)
    return lambda logits, output: loss(logits.flatten(0, 1), output.flatten())


def padded(sentences: Sequence[Sequence[int]]) -> Tensor:
    """Return the ids as (B, S), padded at the end."""
    rows = [torch.tensor(ids) for ids in sentences]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def until(ids: Sequence[int], eos: int) -> list[int]:
    """Return the ids before the first `<eos>`."""
    found = list(ids)
    return found[: found.index(eos)] if eos in found else found


def sinusoids(length: int, width: int) -> Tensor:
    """Return the paper's positions (length, width) in halves: first all sines, then all cosines."""
    angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def longest_output(source: Any) -> int:
    """Return the maximum output length: 50 tokens more than the source, as in the paper (§6.1)."""
    return int(source.shape[1]) + 50
