"""JoeyNMT: the model from a JoeyNMT configuration, JoeyNMT's loss, Adam, and JoeyNMT's greedy and beam search."""

from pathlib import Path
from typing import Any

from joeynmt.model import build_model
from joeynmt.search import beam_search, greedy
from torch import Tensor, ones_like

from benchmarks.peers.task import BOS, EOS, PAD, UNK, Task
from benchmarks.peers.torch_peer import TorchPeer, adam, begin, longest_output, until


class Vocabulary:
    """A vocabulary as JoeyNMT's model needs it: a size and the special ids."""

    pad_index, bos_index, eos_index, unk_index, sep_index = PAD, BOS, EOS, UNK, None
    lang_tags: tuple[int, ...] = ()
    specials = (PAD, BOS, EOS, UNK)

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def lookup(self, token: int) -> int:
        """Return the id of a special token; here, tokens are ids already."""
        return token


def make(folder: Path, precision: str) -> TorchPeer:
    task = begin(folder)
    vocabulary = Vocabulary(task.vocabulary)
    model: Any = build_model(_configuration(task), src_vocab=vocabulary, trg_vocab=vocabulary)
    model.loss_function = ("crossentropy", task.smoothing)

    def loss(source: Tensor, target_input: Tensor, target_output: Tensor) -> Tensor:
        mask = (source != PAD).unsqueeze(1)
        summed, *_ = model(
            return_type="loss",
            src=source,
            trg_input=target_input,
            trg=target_output,
            src_mask=mask,
            trg_mask=(target_input != PAD).unsqueeze(1),
            src_length=mask.sum(-1)[:, 0],
        )
        mean: Tensor = summed / (target_output != PAD).sum()
        return mean

    def decode(source: Tensor, beam_size: int) -> list[list[int]]:
        mask = (source != PAD).unsqueeze(1)
        output, hidden, _, _ = model(
            return_type="encode", src=source, src_length=mask.sum(-1)[:, 0], src_mask=mask, trg_mask=ones_like(mask)
        )
        given = {"encoder_output": output, "encoder_hidden": hidden, "src_mask": mask, "model": model}
        longest = longest_output(source)
        if beam_size == 1:
            found, *_ = greedy(max_output_length=longest, **given)
        else:
            found, *_ = beam_search(beam_size=beam_size, alpha=1.0, max_output_length=longest, **given)
        return [until([id for id in row if id != PAD], EOS) for row in found.tolist()]

    return TorchPeer(precision, model, adam(model, task), loss, decode, ["joeynmt"])


def _configuration(task: Task) -> dict[str, Any]:
    def side(layers: int) -> dict[str, Any]:
        return {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": task.heads,
            "hidden_size": task.d_model,
            "ff_size": task.d_ff,
            "dropout": task.dropout,
            "layer_norm": "post",
            "activation": "relu",
            "embeddings": {"embedding_dim": task.d_model, "scale": True, "dropout": task.dropout},
        }

    return {
        "encoder": side(task.encoder_layers),
        "decoder": side(task.decoder_layers),
        "tied_embeddings": True,
        "tied_softmax": True,
        "initializer": "xavier_uniform",
        "embed_initializer": "xavier_uniform",
        "init_gain": 1.0,
        "embed_init_gain": 1.0,
    }
