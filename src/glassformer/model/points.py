"""The named points of the forward pass, each described once: name, shape, formula and meaning.

To add a point, add a row here and pass the value through a tap in each forward pass: the module in `model/`,
`watch/inspection/reference.py`, and the explorer's `web/engine/forward.ts`. Optionally, add the point's arithmetic to
`web/engine/arithmetic.ts` and the Chinese translation of the row's sentence `about` to `watch/explorer/strings.json`;
without a translation, the page shows the English sentence.

Axes: B batch · S source positions · T target positions · D d_model · F d_ff · H heads · K width of a head's query and
key · W width of a head's value · V target vocabulary.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from glassformer.model.config import ModelConfig, NormPlace

__all__ = [
    "ATTENTION",
    "DECODER",
    "EMBEDDING",
    "ENCODER",
    "FEED_FORWARD",
    "RESIDUAL",
    "TRANSFORMER",
    "Point",
    "descriptions",
    "named_points",
    "names",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One named point of the forward pass."""

    name: str
    """The name used by the module's tap; in the result of `named_points`, the full name."""
    shape: str
    """The axes, as letters. In the tables below, T stands for the part's own positions; in attention, S stands for the
    positions of the keys. `named_points` replaces both by the letter of source or target positions."""
    formula: str
    """How the value is computed, in at most 29 characters."""
    about: str
    """What the value is, in one sentence, with its section in the paper."""
    suspect: str
    """What to check in a model whose first wrong number is at this point."""
    place: str = ""
    """The place of the point, such as "encoder layer 0, self-attention"; set by `named_points`."""
    part: str = ""
    """The kind of part that has this point, such as "attention"; set by the tables below."""

    @property
    def has_heads(self) -> bool:
        """Whether the tensor has one matrix per head."""
        return "H" in self.shape.split()


def _rows(part: str, *points: Point) -> tuple[Point, ...]:
    return tuple(replace(point, part=part) for point in points)


EMBEDDING = _rows(
    "embedding",
    Point(
        name="embedding",
        shape="B T D",
        formula="rows of the matrix × √d_model",
        about="A row of the embedding matrix for each token, times √d_model (§3.4).",
        suspect="the embedding: its factor √d_model, or the rows that are looked up",
    ),
    Point(
        name="positions",
        shape="T D",
        formula="each position's pattern",
        about="The pattern of each position: sines and cosines of falling frequency (§3.5).",
        suspect="the table of positions",
    ),
    Point(
        name="input",
        shape="B T D",
        formula="embedding + positions",
        about="The sum of embedding and positions, which enters the first layer (§3.5).",
        suspect="the sum of embedding and position",
    ),
)
ATTENTION = _rows(
    "attention",
    Point(
        name="query",
        shape="B H T K",
        formula="x W_Q: what is looked for",
        about="x W_Q: what each position looks for (§3.2.2).",
        suspect="W_Q, its bias, or the split into heads",
    ),
    Point(
        name="key",
        shape="B H S K",
        formula="x W_K: what is offered",
        about="x W_K: what each position offers (§3.2.2).",
        suspect="W_K, its bias, its input, or the split into heads",
    ),
    Point(
        name="value",
        shape="B H S W",
        formula="x W_V: what is handed over",
        about="x W_V: what each position hands over (§3.2.2).",
        suspect="W_V, its bias, its input, or the split into heads",
    ),
    Point(
        name="scores",
        shape="B H T S",
        formula="query · key / √d_k",
        about="Query · key / √d_k, before the mask (§3.2.1).",
        suspect="the product of queries and keys, or its divisor",
    ),
    Point(
        name="weights",
        shape="B H T S",
        formula="softmax of the scores",
        about="Softmax of the allowed scores: each row sums to 1 (§3.2.1).",
        suspect="the mask or the softmax",
    ),
    Point(
        name="heads",
        shape="B H T W",
        formula="weighted sum of the values",
        about="Weights · values: what each head gathers (§3.2.1).",
        suspect="the weighted sum of the values",
    ),
    Point(
        name="joined",
        shape="B T H·W",
        formula="the heads side by side",
        about="The heads side by side (§3.2.2).",
        suspect="the order in which the heads are joined",
    ),
    Point(
        name="output",
        shape="B T D",
        formula="joined · W_O + b_O",
        about="The joined heads times W_O: what attention adds to the stream (§3.2.2).",
        suspect="W_O or its bias",
    ),
)
FEED_FORWARD = _rows(
    "feed_forward",
    Point(
        name="hidden",
        shape="B T F",
        formula="x W_1 + b_1",
        about="x W_1 + b_1 (§3.3).",
        suspect="W_1 or its bias",
    ),
    Point(
        name="activated",
        shape="B T F",
        formula="after the activation",
        about="After the activation: ReLU leaves no negative values (§3.3).",
        suspect="the activation",
    ),
    Point(
        name="output",
        shape="B T D",
        formula="activated · W_2 + b_2",
        about="Activated · W_2 + b_2: what the feed-forward network adds to the stream (§3.3).",
        suspect="W_2 or its bias",
    ),
)
RESIDUAL = _rows(
    "residual",
    Point(
        name="input",
        shape="B T D",
        formula="x, the sub-layer's input",
        about="The residual stream as it enters the sub-layer.",
        suspect="the value handed over from the part before",
    ),
    Point(
        name="added",
        shape="B T D",
        formula="residual: input + output",
        about="The residual sum: input + output (§3.1).",
        suspect="the residual sum: dropout, or a stream other than the sub-layer's input",
    ),
    Point(
        name="normed",
        shape="B T D",
        formula="layer norm of added",
        about="Layer norm: mean 0, variance 1, then γ and β (§3.1).",
        suspect="the layer norm: its eps (10⁻⁵, inside the root), its deviation (biased), its gain or bias",
    ),
)
ENCODER = _rows(
    "encoder",
    Point(
        name="output",
        shape="B T D",
        formula="the memory, for the decoder",
        about="The memory: one vector for each source position, read by the decoder (§3.1).",
        suspect="the norm at the encoder's end",
    ),
)
DECODER = _rows(
    "decoder",
    Point(
        name="output",
        shape="B T D",
        formula="output of the last layer",
        about="The stream after the last layer, from which the next token is predicted (§3.1).",
        suspect="the norm at the decoder's end",
    ),
)
TRANSFORMER = _rows(
    "transformer",
    Point(
        name="logits",
        shape="B T V",
        formula="scores of all words",
        about="A score for every word of the vocabulary (§3.4).",
        suspect="the output matrix, or the matrix with which it is shared",
    ),
    Point(
        name="log_probs",
        shape="B T V",
        formula="log softmax of the logits",
        about="Softmax of the logits, as a logarithm: how probable each next word is (§3.4).",
        suspect="the softmax over the vocabulary",
    ),
)


def names(*tables: tuple[Point, ...]) -> tuple[str, ...]:
    """Return the names of the points in these tables."""
    return tuple(point.name for points in tables for point in points)


def named_points(config: ModelConfig) -> dict[str, Point]:
    """Return every point of a configuration's forward pass by its full name, in the order of computation.

    Each point's `place` is set, and its shape uses the letters of that place: an encoder's scores are "B H S S". To
    describe models of any depth, use a configuration with one layer, and replace ".0." in the names by ".{i}.".
    """
    return {point.name: point for point in _all_points(config)}


def descriptions() -> dict[str, str]:
    """Return each point's sentence `about`, by part and name, such as "attention.scores"."""
    tables = (EMBEDDING, ATTENTION, FEED_FORWARD, RESIDUAL, ENCODER, DECODER, TRANSFORMER)
    return {f"{point.part}.{point.name}": point.about for points in tables for point in points}


def _all_points(config: ModelConfig) -> Iterator[Point]:
    attention, feed_forward = (_sublayer(inner, config.norm) for inner in (ATTENTION, FEED_FORWARD))
    decoder = [f"decoder.layers.{layer}" for layer in range(config.decoder_layers)]
    yield from _at("source", "source embedding", EMBEDDING, "S")
    for layer in range(config.encoder_layers):
        path, place = f"encoder.layers.{layer}", f"encoder layer {layer}"
        yield from _at(f"{path}.self_attention", f"{place}, self-attention", attention, "S")
        yield from _at(f"{path}.feed_forward", f"{place}, feed-forward", feed_forward, "S")
    yield from _at("encoder", "end of the encoder", ENCODER, "S")
    yield from _at("target", "target embedding", EMBEDDING, "T")
    of_memory = tuple(point for point in attention if point.name in ("key", "value"))
    of_target = tuple(point for point in attention if point not in of_memory)
    # the keys and values of the memory are computed once, before the first layer
    for layer, path in enumerate(decoder):
        yield from _at(f"{path}.cross_attention", f"decoder layer {layer}, cross-attention", of_memory, "T", "S")
    for layer, path in enumerate(decoder):
        place = f"decoder layer {layer}"
        yield from _at(f"{path}.self_attention", f"{place}, self-attention", attention, "T")
        yield from _at(f"{path}.cross_attention", f"{place}, cross-attention", of_target, "T", "S")
        yield from _at(f"{path}.feed_forward", f"{place}, feed-forward", feed_forward, "T")
    yield from _at("decoder", "end of the decoder", DECODER, "T")
    yield from _at("", "output", TRANSFORMER, "T")


def _sublayer(inner: tuple[Point, ...], norm: NormPlace) -> tuple[Point, ...]:
    """Return a sub-layer's points, enclosed by the points of its residual connection."""
    entering, added, normed = RESIDUAL
    match norm:
        case "post":
            return (entering, *inner, added, normed)
        case "pre":
            return (entering, replace(normed, formula="layer norm of input: new x"), *inner, added)


def _at(path: str, place: str, points: tuple[Point, ...], own: str, keys: str = "") -> Iterator[Point]:
    """Yield the points of one part of the model, with their full names, their place and the letters of their shapes."""
    letters = str.maketrans({"T": own, "S": keys or own})
    for point in points:
        name = f"{path}.{point.name}" if path else point.name
        yield replace(point, name=name, place=place, shape=point.shape.translate(letters))
