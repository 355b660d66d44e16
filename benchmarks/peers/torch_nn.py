"""torch.nn.Transformer, with embeddings, positions, masks, a tied projection, a loss and Adam added."""

import math
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.peers.task import BOS, EOS, PAD, Task
from benchmarks.peers.torch_peer import TorchPeer, adam, begin, cross_entropy, longest_output, sinusoids, until


class Model(nn.Module):
    """The reference model around `torch.nn.Transformer`."""

    positions: Tensor

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.embedding = nn.Embedding(task.vocabulary, task.d_model, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=task.d_model**-0.5)
        self.transformer = nn.Transformer(
            task.d_model,
            task.heads,
            task.encoder_layers,
            task.decoder_layers,
            task.d_ff,
            task.dropout,
            batch_first=True,
        )
        self.dropout = nn.Dropout(task.dropout)
        self.register_buffer("positions", sinusoids(task.max_length, task.d_model))

    def embed(self, ids: Tensor) -> Tensor:
        scaled = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        embedded: Tensor = self.dropout(scaled + self.positions[: ids.shape[1]])
        return embedded

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        length = target_input.shape[1]
        hidden = self.transformer(
            self.embed(source),
            self.embed(target_input),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target_input == PAD,
            memory_key_padding_mask=source == PAD,
            tgt_is_causal=True,
        )
        return nn.functional.linear(hidden, self.embedding.weight)


def make(folder: Path, precision: str) -> TorchPeer:
    task = begin(folder)
    model, entropy = Model(task), cross_entropy(task)

    def loss(source: Tensor, target_input: Tensor, target_output: Tensor) -> Tensor:
        return entropy(model(source, target_input), target_output)

    def decode(source: Tensor, beam_size: int) -> list[list[int]]:
        return greedy(model, source, beam_size)

    return TorchPeer(precision, model, adam(model, task), loss, decode)


def greedy(model: nn.Module, source: Tensor, beam_size: int) -> list[list[int]]:
    """Decode greedily, without a cache: the model has neither a cache nor a search of its own."""
    if beam_size > 1:
        raise NotImplementedError("torch.nn.Transformer has no beam search")
    ids = torch.full((len(source), 1), BOS)
    for _ in range(longest_output(source)):
        ids = torch.cat([ids, model(source, ids)[:, -1:].argmax(-1)], dim=1)
        if (ids == EOS).any(dim=1).all():
            break
    return [until(row, EOS) for row in ids[:, 1:].tolist()]
