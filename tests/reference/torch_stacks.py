"""PyTorch's own encoder and decoder stacks, with the weights of a glassformer model.

`nn.Transformer` always ends its stacks with a norm, so the stacks are built one by one, with a final norm only if the
model has a final norm. The stacks stay in training mode (with dropout 0), because PyTorch then takes no fast path. In
PyTorch's boolean masks, True means the opposite of glassformer's masks: may *not* be attended to.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

import glassformer as gf


class TorchStacks(nn.Module):
    """A model, and PyTorch's two stacks with the model's weights."""

    def __init__(self, model: gf.Transformer) -> None:
        super().__init__()
        c = model.config
        choices = {"dropout": 0.0, "batch_first": True, "norm_first": c.norm == "pre"}
        choices["activation"] = getattr(nn.functional, c.activation)
        final = [nn.LayerNorm(c.d_model) if c.final_norm else None for _ in range(2)]
        encoder_layer = nn.TransformerEncoderLayer(c.d_model, c.heads, c.d_ff, **choices)
        decoder_layer = nn.TransformerDecoderLayer(c.d_model, c.heads, c.d_ff, **choices)
        self.encoder = nn.TransformerEncoder(encoder_layer, c.encoder_layers, final[0], enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder_layer, c.decoder_layers, final[1])
        with torch.no_grad():
            for ours, theirs in self.counterparts(model):
                theirs.copy_(ours)

    def encode(self, x: Tensor, real: Tensor) -> Tensor:
        """Return the memory of embedded sources; `real` (B, S) is False at padding."""
        return self.encoder(x, src_key_padding_mask=~real)

    def decode(self, x: Tensor, real: Tensor, memory: Tensor, memory_real: Tensor) -> Tensor:
        """Return the decoder's output of embedded targets."""
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return self.decoder(
            x, memory, tgt_mask=future, tgt_key_padding_mask=~real, memory_key_padding_mask=~memory_real
        )

    def counterparts(self, model: gf.Transformer) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each parameter of the model's stacks with the corresponding parameter of PyTorch's stacks."""
        for ours, theirs in self._modules_side_by_side(model):
            yield from zip(ours.parameters(), theirs.parameters(), strict=True)

    def _modules_side_by_side(self, model: gf.Transformer) -> Iterator[tuple[nn.Module, nn.Module]]:
        for ours, theirs in ((model.encoder, self.encoder), (model.decoder, self.decoder)):
            if theirs.norm is not None:
                yield ours.norm, theirs.norm
            for layer, torch_layer in zip(ours.layers, theirs.layers, strict=True):
                yield layer.self_attention, torch_layer.self_attn
                yield layer.self_attention_residual.norm, torch_layer.norm1
                yield layer.feed_forward.expand, torch_layer.linear1
                yield layer.feed_forward.contract, torch_layer.linear2
                if ours is model.encoder:
                    yield layer.feed_forward_residual.norm, torch_layer.norm2
                else:
                    yield layer.cross_attention, torch_layer.multihead_attn
                    yield layer.cross_attention_residual.norm, torch_layer.norm2
                    yield layer.feed_forward_residual.norm, torch_layer.norm3
