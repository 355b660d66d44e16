"""x-transformers: its encoder–decoder wrapper with its learned positions and its loss without smoothing."""

from pathlib import Path

from torch import Tensor, cat
from x_transformers import XTransformer

from benchmarks.peers.task import BOS, EOS, PAD
from benchmarks.peers.torch_peer import TorchPeer, adam, begin, longest_output, until


def make(folder: Path, precision: str, *, flash: bool = False) -> TorchPeer:
    task = begin(folder)
    sides = {
        "attn_dim_head": task.d_model // task.heads,
        "heads": task.heads,
        "num_tokens": task.vocabulary,
        "attn_dropout": task.dropout,
        "ff_dropout": task.dropout,
        "attn_flash": flash,
    }
    model = XTransformer(
        dim=task.d_model,
        tie_token_emb=True,
        ignore_index=PAD,
        pad_value=PAD,
        **{f"{side}_{name}": value for side in ("enc", "dec") for name, value in sides.items()},
        enc_depth=task.encoder_layers,
        dec_depth=task.decoder_layers,
        enc_max_seq_len=task.max_length,
        dec_max_seq_len=task.max_length + 1,
    )

    def loss(source: Tensor, target_input: Tensor, target_output: Tensor) -> Tensor:
        whole = cat([target_input[:, :1], target_output], dim=1)
        found: Tensor = model(source, whole, mask=source != PAD)
        return found

    def decode(source: Tensor, beam_size: int) -> list[list[int]]:
        if beam_size > 1:
            raise NotImplementedError("x-transformers has no beam search")
        start = source.new_full((len(source), 1), BOS)
        found = model.generate(
            source, start, longest_output(source), mask=source != PAD, eos_token=EOS, temperature=0.0
        )
        return [until([id for id in row if id != PAD], EOS) for row in found.tolist()]

    return TorchPeer(precision, model, adam(model, task), loss, decode, ["x-transformers"])
