"""The forward pass as ONNX graphs: encoder, decoder, and the decoder's next step with a cache.

The graphs compute the same as `glassformer.model`, with ONNX's operators; their inputs and outputs have the names that
transformers.js and optimum expect. With 8-bit matrices, products with weights are computed in integers; each product's
input has a scale, and each row of the weight matrix has a scale of its own.

Axes: B batch · S source positions · T target positions · P past target positions · D d_model · H heads · K width of a
head's query and key · W width of a head's value · V vocabulary.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glassformer.interop.ctranslate2.model import EPSILON, position_table, positions_of
from glassformer.interop.onnx.graph import BOOL, FLOAT, INT64, Constants, Graph, Port, Value, model_file
from glassformer.model.config import ModelConfig

__all__ = ["FILES", "graph_files"]

_Weights = Mapping[str, NDArray[np.float32]]

FILES = ("encoder_model", "decoder_model", "decoder_with_past_model", "decoder_model_merged")
"""The file names of the graphs, as runtimes expect them."""

BATCH, SOURCE, TARGET, PAST, TOTAL = (
    # transformers.js recognises the batch axis by this name when it creates an empty cache, and uses 0 for other names
    "batch_size",
    "encoder_sequence_length",
    "decoder_sequence_length",
    "past_decoder_sequence_length",
    "total_decoder_sequence_length",
)
HIDDEN = -1e9
"""The number added to a masked score. The weight of the score becomes exactly 0, and a row of only masked scores stays
finite."""
CENTRE = 128
"""The 8-bit number that stands for a weight of 0. Weights are stored as unsigned numbers, because products of two
unsigned numbers are exact on every processor. With signed weights, processors without VNNI add pairs of products in 16
bits."""


class _Cached(NamedTuple):
    """A layer's cached keys (B, H, positions, K) and values (B, H, positions, W)."""

    key: Value
    value: Value


class _Mask(NamedTuple):
    """A mask of an attention: the numbers to add to its scores, and the factors to multiply its weights by."""

    added: Value
    kept: Value | None = None


def graph_files(weights: _Weights, config: ModelConfig, *, narrow: bool) -> dict[str, bytes]:
    """Return the bytes of a model's files, by the names in `FILES`; `narrow` stores the matrices in 8 bits.

    Raises:
        ConfigError: the model is too large for an ONNX file.
    """
    makers = (_encoder_file, _decoder_file, _next_step_file, _merged_file)
    return {
        name: make(_Network(Graph(Constants()), weights, config, narrow))
        for name, make in zip(FILES, makers, strict=True)
    }


# The files


def _encoder_file(network: "_Network") -> bytes:
    ids, mask = Port("input_ids", INT64, (BATCH, SOURCE)), Port("attention_mask", INT64, (BATCH, SOURCE))
    memory = Port("last_hidden_state", FLOAT, (BATCH, SOURCE, network.config.d_model))
    network.graph.name(network.encode(Value(ids.name), Value(mask.name)), memory.name)
    return model_file(network.graph, [ids, mask], [memory])


def _decoder_file(network: "_Network") -> bytes:
    outputs = _results(network.config)
    _name_all(network.graph, network.first_step(), outputs)
    return model_file(network.graph, [_MASK, _IDS, _memory(network.config)], outputs)


def _next_step_file(network: "_Network") -> bytes:
    results = zip(_results(network.config), network.next_step(), strict=True)
    # The keys and values of the source do not change from step to step, so they are not outputs.
    kept = [(port, value) for port, value in results if ".encoder." not in port.name]
    _name_all(network.graph, [value for _, value in kept], [port for port, _ in kept])
    return model_file(network.graph, [_MASK, _IDS, *_pasts(network.config)], [port for port, _ in kept])


def _merged_file(network: "_Network") -> bytes:
    """Return a graph that computes later steps if its input `use_cache_branch` is true, or else the first step."""
    outputs, branches = _results(network.config), []
    for name, step in (("next", _Network.next_step), ("first", _Network.first_step)):
        branch = network.in_branch()
        ports = [one._replace(name=f"{one.name} {name}") for one in outputs]
        _name_all(branch.graph, step(branch), ports)
        branches.append(branch.graph.branch(ports))
    condition = Port("use_cache_branch", BOOL, (1,))
    names = [one.name for one in outputs]
    network.graph.node("If", [condition.name], names, then_branch=branches[0], else_branch=branches[1])
    inputs = [_MASK, _IDS, _memory(network.config), *_pasts(network.config), condition]
    return model_file(network.graph, inputs, outputs)


def _name_all(graph: Graph, values: Sequence[Value], ports: Sequence[Port]) -> None:
    for value, port in zip(values, ports, strict=True):
        graph.name(value, port.name)


_MASK = Port("encoder_attention_mask", INT64, (BATCH, SOURCE))
_IDS = Port("input_ids", INT64, (BATCH, TARGET))


def _memory(config: ModelConfig) -> Port:
    return Port("encoder_hidden_states", FLOAT, (BATCH, SOURCE, config.d_model))


def _pasts(config: ModelConfig) -> list[Port]:
    return _caches(config, "past_key_values", PAST)


def _results(config: ModelConfig) -> list[Port]:
    logits = Port("logits", FLOAT, (BATCH, TARGET, config.target_vocab_size))
    return [logits, *_caches(config, "present", TOTAL)]


def _caches(config: ModelConfig, name: str, length: str) -> list[Port]:
    """Return the ports of each layer's cache: keys and values of the target so far, and then of the source."""
    return [
        Port(f"{name}.{layer}.{side}.{part}", FLOAT, (BATCH, config.heads, positions, width))
        for layer in range(config.decoder_layers)
        for side, positions in (("decoder", length), ("encoder", SOURCE))
        for part, width in (("key", config.d_k), ("value", config.d_v))
    ]


# The forward pass


class _Network:
    """The parts of the forward pass; each method adds its operations to the graph and returns their result."""

    def __init__(self, graph: Graph, weights: _Weights, config: ModelConfig, narrow: bool) -> None:
        self.graph, self.weights, self.config, self.narrow = graph, weights, config, narrow
        self.number = graph.constants.number

    def in_branch(self) -> "_Network":
        """Return the same network for a branch of the graph."""
        return _Network(Graph(self.graph.constants), self.weights, self.config, self.narrow)

    def first_step(self) -> list[Value]:
        """Return the results of `decode` for the first step, which gets the memory as an input."""
        memory = Value("encoder_hidden_states")
        return self.decode([self.memory_cache(number, memory) for number in range(self.config.decoder_layers)], None)

    def next_step(self) -> list[Value]:
        """Return the results of `decode` for a later step, which gets the caches as inputs."""
        names = [Value(one.name) for one in _pasts(self.config)]
        pairs = [_Cached(*names[i : i + 2]) for i in range(0, len(names), 2)]
        return self.decode(memory=pairs[1::2], past=pairs[::2])

    def encode(self, ids: Value, attention_mask: Value) -> Value:
        """Return the memory (B, S, D)."""
        mask = self.padding(attention_mask)
        x = self.embed("source", ids)
        for number in range(self.config.encoder_layers):
            name = f"encoder.layers.{number}"
            y = self.enter(f"{name}.self_attention", x)
            query, key, value = self.query_key_value(f"{name}.self_attention", y)
            attended = self.attend(f"{name}.self_attention", query, _Cached(key, value), mask)
            x = self.leave(f"{name}.self_attention", x, attended)
            x = self.feed_forward(f"{name}.feed_forward", x)
        return self.final_norm("encoder", x)

    def decode(self, memory: Sequence[_Cached], past: Sequence[_Cached] | None) -> list[Value]:
        """Return the logits (B, T, V), then each layer's keys and values of the target and of the source."""
        ids = Value(_IDS.name)
        mask = self.padding(Value(_MASK.name))
        begin = self.length(past[0].key, 2) if past else self.number([0])
        causal = self.causal(begin, self.length(ids, 1))
        x = self.embed("target", ids, begin)
        presents: list[Value] = []
        for number in range(self.config.decoder_layers):
            name = f"decoder.layers.{number}"
            y = self.enter(f"{name}.self_attention", x)
            query, *newest = self.query_key_value(f"{name}.self_attention", y)
            target = self.extended(past[number], newest) if past else _Cached(*newest)
            attended = self.attend(f"{name}.self_attention", query, target, causal)
            x = self.leave(f"{name}.self_attention", x, attended)
            y = self.enter(f"{name}.cross_attention", x)
            query = self.heads(
                self.linear(f"{name}.cross_attention.input_projection", y, self.queries), self.config.d_k
            )
            x = self.leave(
                f"{name}.cross_attention", x, self.attend(f"{name}.cross_attention", query, memory[number], mask)
            )
            x = self.feed_forward(f"{name}.feed_forward", x)
            presents += [*target, *memory[number]]
        return [self.logits(self.final_norm("decoder", x)), *presents]

    def memory_cache(self, number: int, memory: Value) -> _Cached:
        """Return a decoder layer's keys and values of the source."""
        rows = slice(self.queries.stop, None)
        both = self.linear(f"decoder.layers.{number}.cross_attention.input_projection", memory, rows)
        key, value = self.split(both, self.config.d_k, self.config.d_v)
        return _Cached(self.heads(key, self.config.d_k), self.heads(value, self.config.d_v))

    def extended(self, past: _Cached, newest: Sequence[Value]) -> _Cached:
        """Return a cache with the newest positions appended."""
        return _Cached(*(self.graph("Concat", *pair, axis=2) for pair in zip(past, newest, strict=True)))

    # Embeddings and logits

    def embed(self, side: str, ids: Value, begin: Value | None = None) -> Value:
        """Return the vectors (B, T, D) of tokens; the first token is at position `begin`, or at 0 without `begin`."""
        name = self.first(f"{side}.tokens.weight", "source.tokens.weight")
        rows = self.graph("Mul", self.rows(name, ids), self.number(math.sqrt(self.config.d_model), "float32"))
        if self.config.positions == "none":
            return rows
        begin = begin or self.number([0])
        end = self.graph("Add", begin, self.length(ids, 1))
        return self.graph("Add", rows, self.graph("Slice", self.positions(side), begin, end, self.number([0])))

    def positions(self, side: str) -> Value:
        """Return the position table; in every export, its length is fixed."""
        match self.config.positions:
            case "learned":
                name = f"{side}.positions.table"
                return self.put(name, self.weights[name])
            case "interleaved" | "halves" | "none" as kind:
                return self.put("positions", position_table(kind, positions_of(self.config), self.config.d_model))

    def rows(self, name: str, ids: Value) -> Value:
        """Return the rows of a matrix (V, D) for these ids."""
        if not self.narrow:
            return self.graph("Gather", self.put(name, self.weights[name]), ids)
        numbers, scales = self.narrowed(name)
        rows = self.graph("Cast", self.graph("Gather", numbers, ids), to=FLOAT)
        centred = self.graph("Sub", rows, self.number(float(CENTRE), "float32"))
        return self.graph("Mul", centred, self.graph("Unsqueeze", self.graph("Gather", scales, ids), self.number([-1])))

    def logits(self, x: Value) -> Value:
        """Return the logits (B, T, V); if the output matrix is tied, it is the embedding."""
        name = self.first("output.weight", "target.tokens.weight", "source.tokens.weight")
        if self.narrow:
            numbers, scales = self.narrowed(name)
            product = self.narrow_product(x, self.graph("Transpose", numbers, perm=(1, 0)), scales)
        else:
            matrix = self.put(name, self.weights[name])
            product = self.graph("MatMul", x, self.graph("Transpose", matrix, perm=(1, 0)))
        if not self.config.output_bias:
            return product
        return self.graph("Add", product, self.put("output.bias", self.weights["output.bias"]))

    # Sub-layers

    def enter(self, name: str, x: Value) -> Value:
        """Return the input of a sub-layer: the residual stream, normalised if the model is pre-norm."""
        match self.config.norm:
            case "post":
                return x
            case "pre":
                return self.norm(f"{name}_residual.norm", x)

    def leave(self, name: str, x: Value, share: Value) -> Value:
        """Return the residual stream plus a sub-layer's output (`share`), normalised if the model is post-norm."""
        added = self.graph("Add", x, share)
        match self.config.norm:
            case "post":
                return self.norm(f"{name}_residual.norm", added)
            case "pre":
                return added

    def final_norm(self, stack: str, x: Value) -> Value:
        """Return the output of a stack: x, normalised if the model has final norms."""
        return self.norm(f"{stack}.norm", x) if self.config.final_norm else x

    def norm(self, name: str, x: Value) -> Value:
        """Return the layer norm."""
        scale, bias = (self.put(f"{name}.{part}", self.weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.graph("LayerNormalization", x, scale, bias, axis=-1, epsilon=EPSILON)

    def feed_forward(self, name: str, x: Value) -> Value:
        """Return the residual stream after the feed-forward network."""
        hidden = self.linear(f"{name}.expand", self.enter(name, x))
        return self.leave(name, x, self.linear(f"{name}.contract", self.activated(hidden)))

    def activated(self, x: Value) -> Value:
        """Return the activation of each number."""
        graph = self.graph
        match self.config.activation:
            case "relu":
                return graph("Relu", x)
            case "silu":
                return graph("Mul", x, graph("Sigmoid", x))
            case "gelu":
                erf = graph("Erf", graph("Mul", x, self.number(math.sqrt(0.5), "float32")))
                half = graph("Mul", x, self.number(0.5, "float32"))
                return graph("Mul", half, graph("Add", erf, self.number(1.0, "float32")))

    # Attention

    @property
    def queries(self) -> slice:
        """The rows of an attention's input projection that give the queries."""
        return slice(0, self.config.heads * self.config.d_k)

    def query_key_value(self, name: str, x: Value) -> list[Value]:
        """Return the queries, keys and values of x, split into heads."""
        widths = (self.config.d_k, self.config.d_k, self.config.d_v)
        parts = self.split(self.linear(f"{name}.input_projection", x), *widths)
        return [self.heads(part, width) for part, width in zip(parts, widths, strict=True)]

    def attend(self, name: str, query: Value, cached: _Cached, mask: _Mask) -> Value:
        """Return the output of an attention: the heads' weighted values, joined and projected."""
        graph = self.graph
        scaled = graph("Mul", query, self.number(1 / math.sqrt(self.config.d_k), "float32"))
        scores = graph("MatMul", scaled, graph("Transpose", cached.key, perm=(0, 1, 3, 2)))
        weights = graph("Softmax", graph("Add", scores, mask.added), axis=-1)
        # positions that may attend to nothing, because the source is only padding, get zeros, as in our model
        if mask.kept is not None:
            weights = graph("Mul", weights, mask.kept)
        heads = graph("Transpose", graph("MatMul", weights, cached.value), perm=(0, 2, 1, 3))
        width = self.config.heads * self.config.d_v
        return self.linear(f"{name}.output_projection", graph("Reshape", heads, self.number([0, 0, width])))

    def heads(self, x: Value, width: int) -> Value:
        """Return a projection split into heads: (B, T, H·K) -> (B, H, T, K)."""
        parted = self.graph("Reshape", x, self.number([0, 0, self.config.heads, width]))
        return self.graph("Transpose", parted, perm=(0, 2, 1, 3))

    def split(self, x: Value, *widths: int) -> list[Value]:
        """Return the parts of a projection; the size of each part is the number of heads times a width."""
        sizes = self.number([self.config.heads * width for width in widths])
        return self.graph.several("Split", len(widths), x, sizes, axis=-1)

    def padding(self, attention_mask: Value) -> _Mask:
        """Return the mask (B, 1, 1, S) that hides padding."""
        kept = self.graph("Cast", self.graph("Unsqueeze", attention_mask, self.number([1, 2])), to=FLOAT)
        hidden = self.graph("Sub", self.number(1.0, "float32"), kept)
        return _Mask(self.graph("Mul", hidden, self.number(HIDDEN, "float32")), kept)

    def causal(self, begin: Value, length: Value) -> _Mask:
        """Return the mask (T, P + T) that hides later positions from `length` positions, which begin at `begin`."""
        graph, one = self.graph, self.number(1)
        first, end = (graph("Squeeze", value) for value in (begin, graph("Add", begin, length)))
        rows = graph("Unsqueeze", graph("Range", first, end, one), self.number([1]))
        allowed = graph("LessOrEqual", graph("Range", self.number(0), end, one), rows)
        return _Mask(graph("Where", allowed, self.number(0.0, "float32"), self.number(HIDDEN, "float32")))

    # Products

    def linear(self, name: str, x: Value, rows: slice = slice(None)) -> Value:
        """Return x Wᵀ + b, or only the columns that belong to these rows of W and b."""
        suffix = "" if rows == slice(None) else f" {rows.start}:{rows.stop}"
        bias = self.put(f"{name}.bias{suffix}", self.weights[f"{name}.bias"][rows])
        if self.narrow:
            numbers, scales = self.narrowed(f"{name}.weight", rows, suffix, transposed=True)
            return self.graph("Add", self.narrow_product(x, numbers, scales), bias)
        matrix = self.put(f"{name}.weight{suffix}", self.weights[f"{name}.weight"][rows].T)
        return self.graph("Add", self.graph("MatMul", x, matrix), bias)

    def narrow_product(self, x: Value, matrix: Value, scales: Value) -> Value:
        """Return the product of x and a matrix of 8-bit numbers, computed in integers."""
        graph = self.graph
        numbers, scale, zero = graph.several("DynamicQuantizeLinear", 3, x)
        product = graph("Cast", graph("MatMulInteger", numbers, matrix, zero, self.number(CENTRE, "uint8")), to=FLOAT)
        return graph("Mul", product, graph("Mul", scale, scales))

    def narrowed(
        self, name: str, rows: slice = slice(None), suffix: str = "", *, transposed: bool = False
    ) -> tuple[Value, Value]:
        """Return a matrix in 8 bits, transposed on request, and the scale of each row of the original matrix."""
        weight = self.weights[name][rows]
        scale = np.maximum(np.abs(weight).max(axis=1), np.finfo(np.float32).tiny) / (CENTRE - 1)
        numbers = (np.rint(weight / scale[:, None]) + CENTRE).astype(np.uint8)
        stored = self.put(f"{name}{suffix} numbers", numbers.T if transposed else numbers)
        return stored, self.put(f"{name}{suffix} scales", scale.astype(np.float32))

    def put(self, name: str, array: NDArray[Any]) -> Value:
        """Add an array of weights to the constants; return its value."""
        return self.graph.constants.put(name, array)

    def first(self, *names: str) -> str:
        """Return the first of these names under which there is a weight; a shared matrix has only one name."""
        return next(name for name in names if name in self.weights)

    def length(self, value: Value, axis: int) -> Value:
        """Return the length of an axis, as a list of one integer."""
        return self.graph("Shape", value, start=axis, end=axis + 1)
