"""A reference forward pass, independent and slow: NumPy in float64, written straight from the paper.

The reference imports only the configuration from `glassformer.model`, so a mistake in that package cannot affect the
reference. The reference runs one sentence at a time. Its points have the same names and order as in `gf.record`, but no
batch axis.

Axes: S source positions · T target positions · D d_model · H heads · K width of a head.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from glassformer.model.config import ModelConfig

__all__ = ["Array", "Mask", "Reference"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_erf = np.vectorize(math.erf, otypes=[np.float64])


class Reference:
    """The paper's Transformer with these weights; `Reference(config, weights)(source, target)` returns all points.

    Each step is a method, so that a subclass can make a mistake in one step (`glassformer.watch.inspection.suspects`).
    """

    def __init__(self, config: ModelConfig, weights: Mapping[str, Array]) -> None:
        self.config = config
        match config.norm:
            case "post":
                self.pre = False
            case "pre":
                self.pre = True
        self.weights = {name: np.asarray(weight, np.float64) for name, weight in weights.items()}
        self.weights.setdefault("target.tokens.weight", self.weights["source.tokens.weight"])  # tied (3.4)
        self.weights.setdefault("output.weight", self.weights["target.tokens.weight"])
        self.points: dict[str, Array] = {}

    def __call__(self, source: Sequence[int], target: Sequence[int]) -> dict[str, Array]:
        """Return every point by name, for a source with `<eos>` and a target with `<bos>`; both may be padded."""
        self.points = {}
        crosses = [f"decoder.layers.{layer}.cross_attention" for layer in range(self.config.decoder_layers)]
        memory = self.encode(source)
        y = self.embed("target", target)
        memories = {cross: self.key_value(cross, memory) for cross in crosses}
        output = self.decode(y, self.target_mask(target), memories, self.memory_mask(source, target))
        logits = self.see("logits", output @ self.weights["output.weight"].T + self.weights.get("output.bias", 0.0))
        self.see("log_probs", self.log_probs(logits))
        return self.points

    def see(self, name: str, value: Array) -> Array:
        """Record a point."""
        self.points[name] = value
        return value

    # The stacks: §3.1, Figure 1

    def encode(self, source: Sequence[int]) -> Array:
        """Return the memory: N × [self-attention, feed-forward]."""
        x, mask = self.embed("source", source), self.padding(source)
        for layer in (f"encoder.layers.{i}" for i in range(self.config.encoder_layers)):
            x = self.encoder_layer(layer, x, mask)
        return self.see("encoder.output", self.end("encoder", x))

    def encoder_layer(self, layer: str, x: Array, mask: Mask) -> Array:
        """Return the output of [self-attention, feed-forward]."""
        x = self.residual(f"{layer}.self_attention", x, lambda name, x: self.self_attention(name, x, mask))
        return self.residual(f"{layer}.feed_forward", x, self.feed_forward)

    def decode(self, y: Array, mask: Mask, memories: dict[str, tuple[Array, Array]], memory_mask: Mask) -> Array:
        """Return the decoder's output: N × [self-attention, cross-attention, feed-forward]."""
        for layer in (f"decoder.layers.{i}" for i in range(self.config.decoder_layers)):
            y = self.decoder_layer(layer, y, mask, memories[f"{layer}.cross_attention"], memory_mask)
        return self.see("decoder.output", self.end("decoder", y))

    def decoder_layer(self, layer: str, y: Array, mask: Mask, memory: tuple[Array, Array], memory_mask: Mask) -> Array:
        """Return the output of [self-attention, cross-attention, feed-forward]."""
        y = self.residual(f"{layer}.self_attention", y, lambda name, y: self.self_attention(name, y, mask))
        cross = f"{layer}.cross_attention"
        y = self.residual(cross, y, lambda name, y: self.cross_attention(name, y, memory, memory_mask))
        return self.residual(f"{layer}.feed_forward", y, self.feed_forward)

    def residual(self, name: str, x: Array, sublayer: Callable[[str, Array], Array]) -> Array:
        """Return Norm(x + Sublayer(x)), or, in pre-norm, x + Sublayer(Norm(x))."""
        self.see(f"{name}.input", x)
        norm = f"{name}_residual.norm"
        past = self.past(norm, x)
        if self.pre:
            return self.see(f"{name}.added", past + sublayer(name, self.see(f"{name}.normed", self.norm(norm, x))))
        return self.see(f"{name}.normed", self.norm(norm, self.see(f"{name}.added", past + sublayer(name, x))))

    def past(self, norm: str, x: Array) -> Array:  # noqa: ARG002 – an overriding mistake uses the norm
        """Return the tensor that is added to the sub-layer's output: x itself."""
        return x

    def end(self, stack: str, x: Array) -> Array:
        """Return the output of a stack, after its final norm if it has one."""
        return self.norm(f"{stack}.norm", x) if self.config.final_norm else x

    def norm(self, name: str, x: Array) -> Array:
        """Return (x − mean) / deviation, with gain and bias."""
        normed: Array = (x - x.mean(-1, keepdims=True)) / self.deviation(x)
        return normed * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def deviation(self, x: Array) -> Array:
        """Return √(variance + 10⁻⁵), with the biased variance."""
        return np.asarray(np.sqrt(x.var(-1, keepdims=True) + 1e-5))

    # Embedding and positions: §3.4, §3.5

    def embed(self, side: str, ids: Sequence[int]) -> Array:
        """Return E[token] · √d_model + position."""
        embedding = self.see(f"{side}.embedding", self.lookup(side, ids))
        return self.see(f"{side}.input", embedding + self.see(f"{side}.positions", self.positions(side, len(ids))))

    def lookup(self, side: str, ids: Sequence[int]) -> Array:
        """Return the tokens' rows of the embedding matrix, times √d_model."""
        return self.weights[f"{side}.tokens.weight"][list(ids)] * math.sqrt(self.config.d_model)

    def positions(self, side: str, length: int) -> Array:
        """Return the sinusoids, interleaved or in halves; or a learned table; or zeros."""
        split = (self.config.d_model + 1) // 2
        match self.config.positions:
            case "none":
                return np.zeros((length, self.config.d_model))
            case "learned":
                return self.weights[f"{side}.positions.table"][:length]
            case "interleaved":
                return self.sinusoids(length, slice(0, None, 2), slice(1, None, 2))
            case "halves":
                return self.sinusoids(length, slice(split), slice(split, None))

    def sinusoids(self, length: int, sines: slice, cosines: slice) -> Array:
        """Return sines and cosines of pos / 10000^exponent in these dimensions."""
        table = np.zeros((length, self.config.d_model))
        position, (sine, cosine) = np.arange(length)[:, None], self.exponents()
        table[:, sines] = np.sin(position / 10000.0**sine)
        table[:, cosines] = np.cos(position / 10000.0**cosine)[:, : self.config.d_model // 2]
        return table

    def exponents(self) -> tuple[Array, Array]:
        """Return the exponents 2i/d_model of the sines, and the same exponents for the cosines."""
        exponents = np.arange(0, self.config.d_model, 2) / self.config.d_model
        return exponents, exponents

    # Attention: §3.2

    def self_attention(self, name: str, x: Array, mask: Mask) -> Array:
        """Return the output of self-attention."""
        query, key, value = (self.project(name, part, x) for part in ("query", "key", "value"))
        return self.attend(name, query, key, value, mask)

    def cross_attention(self, name: str, y: Array, memory: tuple[Array, Array], mask: Mask) -> Array:
        """Return the output of cross-attention; `memory` is the memory's keys and values."""
        return self.attend(name, self.project(name, "query", y), *memory, mask)

    def key_value(self, name: str, memory: Array) -> tuple[Array, Array]:
        """Return the keys and the values of the memory."""
        return self.project(name, "key", memory), self.project(name, "value", memory)

    def project(self, name: str, part: str, x: Array) -> Array:
        """Return x W_Q, x W_K or x W_V, plus the bias, split into heads; one matrix contains all three."""
        width = self.config.heads * self.config.d_k
        rows = {"query": slice(width), "key": slice(width, 2 * width), "value": slice(2 * width, None)}[part]
        weight, bias = (self.weights[f"{name}.input_projection.{kind}"][rows] for kind in ("weight", "bias"))
        return self.see(f"{name}.{part}", self.split(x @ weight.T + bias))

    def split(self, x: Array) -> Array:
        """Return each head's slice: (T, H·K) → (H, T, K)."""
        return x.reshape(len(x), self.config.heads, -1).swapaxes(0, 1)

    def attend(self, name: str, query: Array, key: Array, value: Array, mask: Mask) -> Array:
        """Return softmax(Q Kᵀ / √d_k) V of all heads, concatenated and multiplied by W_O."""
        weights = self.see(f"{name}.weights", self.attention(self.see(f"{name}.scores", self.scores(query, key)), mask))
        heads = self.see(f"{name}.heads", weights @ value)
        joined = self.see(f"{name}.joined", np.concatenate(list(heads), axis=-1))  # (H, T, W) → (T, H·W)
        return self.see(f"{name}.output", self.linear(f"{name}.output_projection", joined))

    def scores(self, query: Array, key: Array) -> Array:
        """Return Q Kᵀ / √d_k."""
        return query @ key.swapaxes(-1, -2) / math.sqrt(self.config.d_k)

    def attention(self, scores: Array, mask: Mask) -> Array:
        """Return the softmax over the keys that the mask allows; a row without allowed keys is zeros."""
        largest = np.where(mask, scores, -np.inf).max(-1, keepdims=True)
        exponentials = np.where(mask, np.exp(np.minimum(scores - largest, 0.0)), 0.0)
        return np.asarray(exponentials / np.maximum(exponentials.sum(-1, keepdims=True), 1e-300))

    def padding(self, ids: Sequence[int]) -> Mask:
        """Return the mask that hides padding."""
        return np.asarray(np.array([ids]) != self.config.pad_id)

    def target_mask(self, target: Sequence[int]) -> Mask:
        """Return the mask that hides padding and the future."""
        return np.asarray(self.padding(target) & np.tri(len(target), dtype=bool))

    def memory_mask(self, source: Sequence[int], target: Sequence[int]) -> Mask:  # noqa: ARG002 – a mistake uses it
        """Return the mask of cross-attention, which hides the source's padding."""
        return self.padding(source)

    # Feed-forward and output: §3.3, §3.4

    def feed_forward(self, name: str, x: Array) -> Array:
        """Return max(0, x W_1 + b_1) W_2 + b_2."""
        hidden = self.see(f"{name}.hidden", self.linear(f"{name}.expand", x))
        return self.see(
            f"{name}.output", self.linear(f"{name}.contract", self.see(f"{name}.activated", self.activation(hidden)))
        )

    def activation(self, x: Array) -> Array:
        """Return ReLU, GELU (x Φ(x)) or SiLU (x σ(x)) of x."""
        match self.config.activation:
            case "relu":
                return np.maximum(x, 0.0)
            case "gelu":
                return np.asarray(x * (1 + _erf(x / math.sqrt(2))) / 2)
            case "silu":
                return np.asarray(x / (1 + np.exp(-x)))

    def linear(self, name: str, x: Array) -> Array:
        """Return x W + b."""
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def log_probs(self, logits: Array) -> Array:
        """Return the log of the softmax."""
        shifted = logits - logits.max(-1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))
