"""The Transformers of three tutorials, with the tutorials' names of weights; rewritten, as short as possible."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.model.positions import sinusoids

PAD = 1
"""Id of `<pad>`: the tutorials have `<unk>`, `<pad>`, `<bos>` and `<eos>` = 0, 1, 2, 3."""


def seeing(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return masks of the positions to attend to: in the source (B, 1, 1, S) and in the target (B, 1, T, T)."""
    causal = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril()
    return (source != PAD)[:, None, None], (target != PAD)[:, None, None] & causal


class Table(nn.Module):
    """A buffer with positions."""

    def __init__(self, name: str, table: Tensor) -> None:
        super().__init__()
        self.register_buffer(name, table)


class Scaled(nn.Module):
    """An embedding × √d_model, under a name of choice."""

    def __init__(self, name: str, size: int, width: int) -> None:
        super().__init__()
        self.name, self.factor = name, math.sqrt(width)
        setattr(self, name, nn.Embedding(size, width))

    def forward(self, ids: Tensor) -> Tensor:
        return getattr(self, self.name)(ids) * self.factor


class TorchTutorial(nn.Module):
    """PyTorch's tutorial on translation: `nn.Transformer` between embeddings and a generator."""

    def __init__(self, source: int, target: int, width: int = 24, heads: int = 3, **choices: object) -> None:
        super().__init__()
        self.transformer = nn.Transformer(width, heads, 2, 3, 37, dropout=0.0, batch_first=True, **choices)
        self.generator = nn.Linear(width, target)
        self.src_tok_emb = Scaled("embedding", source, width)
        self.tgt_tok_emb = Scaled("embedding", target, width)
        self.positional_encoding = Table("pos_embedding", sinusoids(50, width)[:, None])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        table = self.positional_encoding.pos_embedding[:, 0]
        output = self.transformer(
            self.src_tok_emb(source) + table[: source.shape[1]],
            self.tgt_tok_emb(target) + table[: target.shape[1]],
            tgt_mask=torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1),
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.generator(output)


class SeparateAttention(nn.Module):
    """An attention with four linear layers; `name` gives the names of these layers."""

    def __init__(self, width: int, heads: int, name: str, letters: str) -> None:
        super().__init__()
        self.heads = heads
        linears = [nn.Linear(width, width) for _ in letters]
        if name:
            setattr(self, name, nn.ModuleList(linears))
        else:
            for letter, linear in zip(letters, linears, strict=True):
                setattr(self, f"fc_{letter}", linear)
        self.parts = lambda: linears

    def forward(self, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        query, key, value, output = self.parts()
        split = [
            linear(one).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for linear, one in ((query, x), (key, y), (value, y))
        ]
        return output(F.scaled_dot_product_attention(*split, attn_mask=mask).transpose(1, 2).flatten(2))


class Trevett(nn.Module):
    """Ben Trevett's tutorial on sequence-to-sequence models: post-norm, learned positions."""

    def __init__(self, source: int, target: int, width: int = 24, heads: int = 3, positions: int = 20) -> None:
        super().__init__()
        self.factor = math.sqrt(width)
        self.encoder = self._stack(source, width, heads, positions, 2, cross=False)
        self.decoder = self._stack(target, width, heads, positions, 3, cross=True)
        self.decoder.fc_out = nn.Linear(width, target)

    def _stack(self, size: int, width: int, heads: int, positions: int, layers: int, *, cross: bool) -> nn.Module:
        stack = nn.Module()
        stack.tok_embedding, stack.pos_embedding = nn.Embedding(size, width), nn.Embedding(positions, width)
        stack.layers = nn.ModuleList()
        for _ in range(layers):
            layer = nn.Module()
            layer.self_attn_layer_norm, layer.ff_layer_norm = nn.LayerNorm(width), nn.LayerNorm(width)
            layer.self_attention = SeparateAttention(width, heads, "", "qkvo")
            if cross:
                layer.enc_attn_layer_norm = nn.LayerNorm(width)
                layer.encoder_attention = SeparateAttention(width, heads, "", "qkvo")
            layer.positionwise_feedforward = nn.Module()
            layer.positionwise_feedforward.fc_1 = nn.Linear(width, 37)
            layer.positionwise_feedforward.fc_2 = nn.Linear(37, width)
            stack.layers.append(layer)
        return stack

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        source_mask, target_mask = seeing(source, target)
        memory = self._through(self.encoder, source, source_mask)
        return self.decoder.fc_out(self._through(self.decoder, target, target_mask, memory, source_mask))

    def _through(self, stack: nn.Module, ids: Tensor, mask: Tensor, *memory: Tensor) -> Tensor:
        x = stack.tok_embedding(ids) * self.factor + stack.pos_embedding.weight[: ids.shape[1]]
        for layer in stack.layers:
            x = layer.self_attn_layer_norm(x + layer.self_attention(x, x, mask))
            if memory:
                x = layer.enc_attn_layer_norm(x + layer.encoder_attention(x, *memory))
            feed_forward = layer.positionwise_feedforward
            x = layer.ff_layer_norm(x + feed_forward.fc_2(feed_forward.fc_1(x).relu()))
        return x


class AnnotatedNorm(nn.Module):
    """The Annotated Transformer's layer norm: a · (x − mean) / (deviation with n − 1, + 1e-6) + b."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.a_2, self.b_2 = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.a_2 * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + self.b_2


class Annotated(nn.Module):
    """The Annotated Transformer: pre-norm, with a layer norm of its own."""

    def __init__(self, source: int, target: int, width: int = 24, heads: int = 3) -> None:
        super().__init__()
        tables = [Table("pe", sinusoids(50, width)[None]) for _ in range(2)]
        self.src_embed = nn.Sequential(Scaled("lut", source, width), tables[0])
        self.tgt_embed = nn.Sequential(Scaled("lut", target, width), tables[1])
        self.encoder = self._stack(width, heads, 2, cross=False)
        self.decoder = self._stack(width, heads, 3, cross=True)
        self.generator = nn.Module()
        self.generator.proj = nn.Linear(width, target)

    def _stack(self, width: int, heads: int, layers: int, *, cross: bool) -> nn.Module:
        stack = nn.Module()
        stack.norm, stack.layers = AnnotatedNorm(width), nn.ModuleList()
        for _ in range(layers):
            layer = nn.Module()
            layer.self_attn = SeparateAttention(width, heads, "linears", "0123")
            if cross:
                layer.src_attn = SeparateAttention(width, heads, "linears", "0123")
            layer.feed_forward = nn.Module()
            layer.feed_forward.w_1, layer.feed_forward.w_2 = nn.Linear(width, 37), nn.Linear(37, width)
            layer.sublayer = nn.ModuleList()
            for _ in range(3 if cross else 2):
                sublayer = nn.Module()
                sublayer.norm = AnnotatedNorm(width)
                layer.sublayer.append(sublayer)
            stack.layers.append(layer)
        return stack

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        source_mask, target_mask = seeing(source, target)
        memory = self._through(self.encoder, self.src_embed, source, source_mask)
        output = self._through(self.decoder, self.tgt_embed, target, target_mask, memory, source_mask)
        return self.generator.proj(output)

    def _through(self, stack: nn.Module, embed: nn.Module, ids: Tensor, mask: Tensor, *memory: Tensor) -> Tensor:
        x = embed[0](ids) + embed[1].pe[:, : ids.shape[1]]
        for layer in stack.layers:
            norms = iter([one.norm for one in layer.sublayer])
            normed = next(norms)(x)
            x = x + layer.self_attn(normed, normed, mask)
            if memory:
                x = x + layer.src_attn(next(norms)(x), *memory)
            x = x + layer.feed_forward.w_2(layer.feed_forward.w_1(next(norms)(x)).relu())
        return stack.norm(x)
