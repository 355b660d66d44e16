"""Hugging Face Transformers: MarianMTModel, the library's own model of this architecture.

The loss is the Trainer's loss with label smoothing. With `smoothing=False`, the loss is the model's own loss, which is
cheaper because it leaves out work that the other peers do. The optimiser is the Trainer's fused AdamW. Attention has no
dropout unless `all_dropouts` is set, because the fused kernel does not support dropout.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel
from transformers.trainer_pt_utils import LabelSmoother

from benchmarks.peers.task import BOS, EOS, PAD, WEIGHTS, Task, read_weights
from benchmarks.peers.torch_peer import TorchPeer, begin, longest_output, until

IGNORED = -100


def make(
    folder: Path, precision: str, *, attention: str = "sdpa", smoothing: bool = True, all_dropouts: bool = False
) -> TorchPeer:
    task = begin(folder)
    model = MarianMTModel._from_config(_config(task, all_dropouts), attn_implementation=attention)
    if (folder / WEIGHTS).exists():
        _load(model, folder, task)
    smoother = LabelSmoother(epsilon=task.smoothing)

    def loss(source: Tensor, target_input: Tensor, target_output: Tensor) -> Tensor:
        labels = target_output.masked_fill(target_output == PAD, IGNORED)
        inputs = {"input_ids": source, "attention_mask": (source != PAD).long(), "decoder_input_ids": target_input}
        if not smoothing:
            mean: Tensor = model(**inputs, labels=labels).loss
            return mean
        smoothed: Tensor = smoother(model(**inputs), labels)
        return smoothed

    def decode(source: Tensor, beam_size: int) -> list[list[int]]:
        found = model.generate(
            input_ids=source,
            attention_mask=(source != PAD).long(),
            num_beams=beam_size,
            max_new_tokens=longest_output(source),
            do_sample=False,
        )
        return [until(ids, EOS) for ids in found[:, 1:].tolist()]

    optimiser = torch.optim.AdamW(
        model.parameters(), lr=task.learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True
    )
    return TorchPeer(precision, model, optimiser, loss, decode, ["transformers"])


def _config(task: Task, all_dropouts: bool) -> MarianConfig:
    return MarianConfig(
        vocab_size=task.vocabulary,
        d_model=task.d_model,
        encoder_layers=task.encoder_layers,
        decoder_layers=task.decoder_layers,
        encoder_attention_heads=task.heads,
        decoder_attention_heads=task.heads,
        encoder_ffn_dim=task.d_ff,
        decoder_ffn_dim=task.d_ff,
        dropout=task.dropout,
        attention_dropout=task.dropout if all_dropouts else 0.0,
        activation_dropout=task.dropout if all_dropouts else 0.0,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        forced_eos_token_id=None,
        decoder_start_token_id=BOS,
        max_position_embeddings=task.max_length,
        tie_word_embeddings=True,
        share_encoder_decoder_embeddings=True,
    )


@torch.no_grad()
def _load(model: nn.Module, folder: Path, task: Task) -> None:
    """Load the weights of the glassformer model, with positions in halves and tied matrices."""
    weights = {name: torch.from_numpy(weight) for name, weight in read_weights(folder).items()}
    taken = {name: weight for ours, weight in weights.items() for name, weight in renamed(ours, weight, task)}
    embedding = weights["source.tokens.weight"]
    shared = {name: embedding for name in model.state_dict() if name.endswith(("embed_tokens.weight", "shared.weight"))}
    missing, unexpected = model.load_state_dict({**taken, **shared, "lm_head.weight": embedding}, strict=False)
    computed = {name for name in missing if "embed_positions" in name or name == "final_logits_bias"}
    if unexpected or set(missing) - computed:
        raise ValueError(f"the weights do not fit: missing {sorted(set(missing) - computed)}, unexpected {unexpected}")


NAMES = {
    "self_attention.output_projection": "self_attn.out_proj",
    "cross_attention.output_projection": "encoder_attn.out_proj",
    "self_attention_residual.norm": "self_attn_layer_norm",
    "cross_attention_residual.norm": "encoder_attn_layer_norm",
    "feed_forward.expand": "fc1",
    "feed_forward.contract": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}
PROJECTIONS = {"self_attention.input_projection": "self_attn", "cross_attention.input_projection": "encoder_attn"}


def renamed(name: str, weight: Tensor, task: Task) -> list[tuple[str, Tensor]]:
    """Return Marian's names and weights for a weight of a glassformer layer.

    A joint weight of queries, keys and values becomes three weights.
    """
    if name.startswith(("source.", "target.", "output.")):
        return []
    side, layers, number, *rest, kind = name.split(".")
    prefix, part = f"model.{side}.{layers}.{number}", ".".join(rest)
    if part in NAMES:
        return [(f"{prefix}.{NAMES[part]}.{kind}", weight)]
    parts = zip(("q_proj", "k_proj", "v_proj"), weight.split(task.d_model), strict=True)
    return [(f"{prefix}.{PROJECTIONS[part]}.{name}.{kind}", one) for name, one in parts]
