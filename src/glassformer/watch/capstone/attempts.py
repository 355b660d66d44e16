"""The check of each step: it compares the reader's tensors with the reference's tensors, for random inputs."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.errors import GlassformerError, nearest, quoted
from glassformer.interop.torch.state_dicts import FAMILIES, import_module
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.watch.capstone.comparison import ReadersCase, array, compare_with_reference, tensor, watched
from glassformer.watch.capstone.reading import Mine, RejectedError
from glassformer.watch.inspection.check import check
from glassformer.watch.inspection.mistakes import MISTAKES
from glassformer.watch.inspection.reference import Array, Mask, Reference
from glassformer.watch.inspection.suspects import SUSPECT_OF_MISTAKE, SUSPECTS

__all__ = ["ATTEMPTS"]

_VOCABULARY, _D_MODEL, _HEADS, _D_FF, _LAYERS = 13, 12, 3, 20, 2
_FIRST_SYMBOL, _LENGTH, _UNSEEN, _EXACT = 3, 11, 200, 0.99
_IDS = {"pad_id": 0, "bos_id": 1, "eos_id": 2}
_CONFIG = ModelConfig(
    vocab_size=_VOCABULARY,
    d_model=_D_MODEL,
    heads=_HEADS,
    d_ff=_D_FF,
    encoder_layers=_LAYERS,
    decoder_layers=_LAYERS,
    dropout=0.0,
    tie_embeddings=False,
    tie_output=False,
    output_bias=True,
)
_SOURCE = torch.tensor([[2, 7, 3, 9, 4, 0], [5, 11, 10, 0, 0, 0]])
_TARGET = torch.tensor([[1, 4, 8, 0, 0, 0], [1, 6, 10, 2, 7, 0]])
_LONGER = torch.tensor([[1, 4, 8, 5, 3, 2, 9, 0], [1, 6, 10, 2, 7, 0, 0, 0]])

Attempt = Callable[[Mine], str]
"""A function that checks one step of a file. The function returns a sentence about what is right, or raises
`RejectedError`."""


def _attention(mine: Mine) -> str:
    query, key, value = _random(2, _HEADS, 5, 4), _random(2, _HEADS, 7, 4), _random(2, _HEADS, 7, 6)
    cells = torch.arange(2)[:, None, None] + torch.arange(5)[:, None] + torch.arange(7)
    mask = (cells % 3 != 0)[:, None]  # every row and every column has both True and False, …
    mask[1, :, 3] = False  # … except one row: a query that may not attend to any key
    _set_scores(query, key, mask)
    line = mine.line("attention")
    result = mine.make("attention", query, key, value, mask)
    if not isinstance(result, tuple) or len(result) != 2:
        raise RejectedError(f"attention: expected (output, weights), got {quoted(type(result).__name__)}", line)
    output, weights = result
    tensor(weights, "weights", line, (2, _HEADS, 5, 7))
    tensor(output, "output", line, (2, _HEADS, 5, 6))

    def run(reference: Reference, item: int) -> None:
        scores = reference.scores(array(query[item]), array(key[item]))
        reference.see("weights", reference.attention(scores, _mask(mask[item])))
        reference.see("output", reference.points["weights"] @ array(value[item]))

    compare_with_reference(_CONFIG, _weights(), _cases({"weights": weights, "output": output}, run), line)
    return "its weights and its output are the reference's"


def _set_scores(query: Tensor, key: Tensor, mask: Tensor) -> None:
    """Change two rows of scores in the first head of the first item, so that only a real mask hides the right keys.

    In row 0, an allowed score is 0. In row 1, hidden scores are about 200 and allowed scores about −200, so that a
    hidden score of −100 would take all the weight.
    """
    allowed, queries, keys = mask[0, 0], query[0, 0], key[0, 0]
    queries[0] = torch.eye(queries.shape[1])[0]
    keys[int(allowed[0].nonzero()[0]), 0] = 0.0
    queries[1, 1] = 200 * queries.shape[1] ** 0.5
    keys[:, 1] = torch.where(allowed[1], -1.0, 1.0)


def _heads(mine: Mine) -> str:
    line, name = mine.line("MultiHeadAttention"), "encoder.layers.0.self_attention"
    part = _module(mine, "MultiHeadAttention", _D_MODEL, _HEADS)
    weights = _copied(part, "encoder", "self_attention", line, "MultiHeadAttention")
    x, memory = _random(2, 5, _D_MODEL), _random(2, 7, _D_MODEL)
    mask = torch.ones(2, 1, 5, 7, dtype=torch.bool)
    mask[1, :, :, 5:] = False
    with watched(mine, part, name) as seen:
        tensor(mine.call("MultiHeadAttention", part, x, memory, mask), "output", line, (2, 5, _D_MODEL))

    def run(reference: Reference, item: int) -> None:
        query = reference.project(name, "query", array(x[item]))
        reference.attend(name, query, *reference.key_value(name, array(memory[item])), _mask(mask[item]))

    compare_with_reference(_CONFIG, weights, _cases(seen, run), line, _short(name))
    return f"with {_HEADS} heads, its output is the reference's"


def _positions(mine: Mine) -> str:
    line = mine.line("positions")
    table = tensor(mine.make("positions", 7, _D_MODEL), "positions", line, (7, _D_MODEL))

    def run(reference: Reference) -> None:
        reference.see("positions", reference.positions("source", 7))

    compare_with_reference(_CONFIG, _weights(), [ReadersCase({"positions": array(table)}, run)], line)
    return "its table is the reference's"


def _feed_forward(mine: Mine) -> str:
    line, name = mine.line("FeedForward"), "encoder.layers.0.feed_forward"
    part = _module(mine, "FeedForward", _D_MODEL, _D_FF)
    weights = _copied(part, "encoder", "feed_forward", line, "FeedForward")
    x = _random(2, 5, _D_MODEL)
    with watched(mine, part, name):
        output = tensor(mine.call("FeedForward", part, x), "output", line, (2, 5, _D_MODEL))

    def run(reference: Reference, item: int) -> None:
        reference.feed_forward(name, array(x[item]))

    compare_with_reference(_CONFIG, weights, _cases({f"{name}.output": output}, run), line, _short(name))
    return "its output is the reference's"


def _encoder_layer(mine: Mine) -> str:
    line, name = mine.line("EncoderLayer"), "encoder.layers.0"
    part = _module(mine, "EncoderLayer", _D_MODEL, _HEADS, _D_FF)
    weights = _copied(part, "encoder", "", line, "EncoderLayer")
    x, mask = _random(2, 5, _D_MODEL), torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    with watched(mine, part, name) as seen:
        seen[f"{name}.end"] = tensor(mine.call("EncoderLayer", part, x, mask), "output", line, (2, 5, _D_MODEL))

    def run(reference: Reference, item: int) -> None:
        reference.see(f"{name}.end", reference.encoder_layer(name, array(x[item]), _mask(mask[item])))

    compare_with_reference(_CONFIG, weights, _cases(seen, run), line, _short(name))
    return "both sub-layers, residuals and norms are the reference's"


def _decoder_layer(mine: Mine) -> str:
    line, name = mine.line("DecoderLayer"), "decoder.layers.0"
    part = _module(mine, "DecoderLayer", _D_MODEL, _HEADS, _D_FF)
    weights = _copied(part, "decoder", "", line, "DecoderLayer")
    # If the reader's code takes keys from the wrong side, the code only works for equal lengths. The result for equal
    # lengths shows which mistake it is.
    for length in (5, 7):
        x, memory = _random(2, 5, _D_MODEL), _random(2, length, _D_MODEL)
        mask = torch.ones(2, 1, 5, 5, dtype=torch.bool).tril()
        memory_mask = torch.ones(2, 1, 1, length, dtype=torch.bool)
        memory_mask[1, ..., 4:] = False
        with watched(mine, part, name) as seen:
            output = mine.call("DecoderLayer", part, x, memory, mask, memory_mask)
            seen[f"{name}.end"] = tensor(output, "output", line, (2, 5, _D_MODEL))

        def run(
            reference: Reference,
            item: int,
            given: tuple[Tensor, ...] = (x, memory, mask, memory_mask),
        ) -> None:
            y, memory, mask, memory_mask = (one[item] for one in given)
            keys = reference.key_value(f"{name}.cross_attention", array(memory))
            end = reference.decoder_layer(name, array(y), _mask(mask), keys, _mask(memory_mask))
            reference.see(f"{name}.end", end)

        compare_with_reference(_CONFIG, weights, _cases(seen, run), line, _short(name))
    return "all three sub-layers are the reference's"


def _masks(mine: Mine) -> str:
    for name, ids in (("source_mask", _SOURCE), ("target_mask", _TARGET)):
        line, (batch, length) = mine.line(name), ids.shape
        shape = (batch, 1, length if name == "target_mask" else 1, length)
        mask = tensor(mine.make(name, ids), name, line, shape)
        if mask.dtype != torch.bool:
            raise RejectedError(f"{name}: expected torch.bool, True = may attend, got {mask.dtype}", line, name)

        def run(reference: Reference, item: int, name: str = name, ids: Tensor = ids) -> None:
            born = reference.padding if name == "source_mask" else reference.target_mask
            reference.see(name, born(ids[item].tolist())[None].astype(np.float64))

        compare_with_reference(_CONFIG, _weights(), _cases({name: mask}, run), line)
    return "they hide padding and the future, and nothing else"


def _transformer(mine: Mine) -> str:
    line = mine.line("Transformer")
    model, reference = _imported(mine)
    weights = {name: array(weight) for name, weight in reference.named_parameters()}
    for target in (_TARGET, _LONGER):
        with watched(mine, model) as seen:
            memory = tensor(mine.call("Transformer", model.encode, _SOURCE), "encode(source)", line)
            logits = mine.call("Transformer", model.decode, target, memory, _SOURCE)
            shape = (*target.shape, _VOCABULARY)
            seen["encoder.output"], seen["logits"] = memory, tensor(logits, "logits", line, shape)
            both = tensor(
                mine.call("Transformer", model, _SOURCE, target), "forward(source, target_input)", line, shape
            )
        if not torch.allclose(both, logits, equal_nan=True):
            raise RejectedError("Transformer: forward and decode give different logits", line, "logits")

        def run(reference: Reference, item: int, target: Tensor = target) -> None:
            reference(_SOURCE[item].tolist(), target[item].tolist())

        compare_with_reference(_CONFIG, weights, _cases(seen, run), line)
    return "with its weights, copied by gf.import_module, the reference has the same logits"


def _loss(mine: Mine) -> str:
    line = mine.line("loss")
    logits, target = (3 * _random(2, 6, _VOCABULARY)).requires_grad_(), _TARGET.roll(-1, 1)
    value = tensor(mine.make("loss", logits, target), "loss", line, ())
    if not value.requires_grad:
        raise RejectedError(
            "loss: the result has no gradient; compute it from the logits, without item() or no_grad", line
        )

    def run(reference: Reference) -> None:
        log_probs = reference.log_probs(array(logits))
        right = np.take_along_axis(log_probs, target.numpy()[..., None], -1)[..., 0]
        counted = np.concatenate([reference.padding(row) for row in target.tolist()])
        reference.see("loss", np.asarray(-right[counted].mean()))

    suspects = {
        MISTAKES["double_softmax"].title: SUSPECT_OF_MISTAKE["double_softmax"],
        "padding counted in the mean": SUSPECTS["padding attended: no padding mask"],
    }
    compare_with_reference(_CONFIG, _weights(), [ReadersCase({"loss": array(value)}, run)], line, suspects=suspects)
    return "its mean over the target's tokens is the reference's"


def _greedy(mine: Mine) -> str:
    line = mine.line("greedy")
    model, source = _Adder(), torch.randint(_FIRST_SYMBOL, _VOCABULARY, (4, _LENGTH))
    written = tensor(mine.make("greedy", model, source, 7), "greedy", line, (4, 7))
    _same_ids("greedy", written, _decoded(model, source, 7), line)
    return "each token is the most probable one after those before it"


class _Adder(nn.Module):
    """A model whose next token depends on all earlier tokens, whereas a random Transformer repeats one token."""

    def encode(self, source: Tensor) -> Tensor:
        """Return the source as a memory of width 1."""
        return source[..., None].double()

    def decode(self, target_input: Tensor, memory: Tensor, _source: Tensor) -> Tensor:
        """Return logits; the largest is at (sum of the tokens so far + the source's token) modulo the vocabulary."""
        length = target_input.shape[1]
        following = (target_input.cumsum(1) + memory[:, :length, 0].long()) % _VOCABULARY
        return nn.functional.one_hot(following, _VOCABULARY).double()

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        """Return the logits of `decode`."""
        return self.decode(target_input, self.encode(source), source)


def _train(mine: Mine) -> str:
    line = mine.line("train")
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(1)
    start = time.monotonic()
    model = mine.make("train")
    seconds = time.monotonic() - start
    if not isinstance(model, nn.Module) or type(model) is not mine.module.Transformer:
        raise RejectedError(f"train: expected a Transformer, got {quoted(type(model).__name__)}", line)
    model.eval()
    chance = torch.Generator().manual_seed(2)
    source = torch.randint(_FIRST_SYMBOL, _VOCABULARY, (_UNSEEN, _LENGTH), generator=chance)
    source[:, -1] = _IDS["eos_id"]
    written = tensor(mine.make("greedy", model, source, _LENGTH), "greedy", line, (_UNSEEN, _LENGTH))
    exact = int((written == source).all(1).sum())
    if exact < _EXACT * _UNSEEN:
        raise RejectedError(
            f"train: expected exact copies of at least {_EXACT:.0%} of {_UNSEEN} unseen sequences, got {exact}; "
            "train longer, or see whether the loss falls",
            line,
        )
    reference = _reference_of(model, line, _heads_of(mine, model, source[:1]))
    _same_ids("train", written, _decoded(reference, source, _LENGTH), line)
    report = check(reference)
    if not report.passed:
        raise RejectedError(
            f"train: gf.check fails on the weights: {', '.join(one.name for one in report.failures)}", line
        )
    return (
        f"{exact} of {_UNSEEN} unseen sequences are copied exactly, after {seconds:.0f} s; gf.Transformer writes the "
        f"same with these weights, and passes the {len(report.checks)} checks of gf.check"
    )


ATTEMPTS: Sequence[Attempt] = (
    _attention,
    _heads,
    _positions,
    _feed_forward,
    _encoder_layer,
    _decoder_layer,
    _masks,
    _transformer,
    _loss,
    _greedy,
    _train,
)
"""The checks, in the order of `EXERCISES`."""


def _random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def _mask(mask: Tensor) -> Mask:
    return cast(Mask, mask.numpy())


def _short(prefix: str) -> Callable[[str], str]:
    """Return a function that turns a point's name into the reader's shorter name within a module."""
    return lambda point: point.removeprefix(f"{prefix}.").replace("end", "output") if prefix else point


def _cases(seen: Mapping[str, Tensor], run: Callable[[Reference, int], None]) -> list[ReadersCase]:
    """Return a case for each of the two items of a batch."""
    batches = {name: array(value) for name, value in seen.items()}
    return [
        ReadersCase({name: value[item] for name, value in batches.items()}, partial(_run_item, run, item))
        for item in (0, 1)
    ]


def _run_item(run: Callable[[Reference, int], None], item: int, reference: Reference) -> None:
    run(reference, item)


def _weights() -> dict[str, Array]:
    """Return random weights of the reference."""
    return {name: array(weight) for name, weight in Transformer(_CONFIG).named_parameters()}


def _module(mine: Mine, name: str, *arguments: Any) -> nn.Module:
    """Return a module of the reader's class with random float64 weights, including gains and biases."""
    part = mine.make(name, *arguments)
    if not isinstance(part, nn.Module):
        raise RejectedError(f"{name}: expected a torch.nn.Module, got {quoted(type(part).__name__)}", mine.line(name))
    part = part.double().eval()
    with torch.no_grad():
        for weight in part.parameters():
            weight.normal_(std=0.5)
    return part


def _copied(part: nn.Module, stack: str, within: str, line: int | None, name: str) -> dict[str, Array]:
    """Return the reference's weights, with those of one part replaced by the weights of the reader's part.

    Raises:
        RejectedError: the part lacks a weight, or has an unknown weight or a weight of a different shape.
    """
    weights, state = _weights(), {f"{within}.{key}".strip("."): value for key, value in part.state_dict().items()}
    expected = dict(_names(stack, within))
    known = [their for theirs in expected.values() for their in theirs]
    for their in known:
        if their not in state:
            own = their.removeprefix(f"{within}.")
            others = [key.removeprefix(f"{within}.") for key in state if key not in known]
            raise RejectedError(f"{name} lacks the weight {quoted(own)}{nearest(own, others)}", line)
    for key, value in state.items():
        if key not in known and value.is_floating_point():
            own = key.removeprefix(f"{within}.")
            raise RejectedError(f"{name} has a weight that the reference lacks: {quoted(own)}", line)
    for ours, theirs in expected.items():
        whole = weights[ours].shape
        rows = (whole[0] // len(theirs), *whole[1:])
        for their in theirs:
            if tuple(state[their].shape) != rows:
                own, got = their.removeprefix(f"{within}."), tuple(state[their].shape)
                raise RejectedError(f"{name}: expected {quoted(own)} with shape {rows}, got {got}", line)
        weights[ours] = np.concatenate([array(state[their]) for their in theirs])
    return weights


def _names(stack: str, within: str) -> list[tuple[str, list[str]]]:
    """Return the reference's and the reader's names of weights, for a layer or for the part `within` it."""
    parts = FAMILIES["capstone"].parts[stack]
    return [
        (f"{stack}.layers.0.{ours}".format(p=kind, n=kind), [one.format(p=kind, n=kind) for one in several])
        for ours, theirs in parts.items()
        for several in [[theirs] if isinstance(theirs, str) else theirs]
        for kind in ("weight", "bias")
        if not within or ours.startswith(f"{within}.")
    ]


def _imported(mine: Mine) -> tuple[Any, Transformer]:
    """Return the reader's model with random weights, and the reference model with copies of these weights."""
    sizes = (_VOCABULARY, _D_MODEL, _HEADS, _D_FF, _LAYERS)
    model, line = _module(mine, "Transformer", *sizes), mine.line("Transformer")
    expected = Transformer(_CONFIG).state_dict()
    reference = _reference_of(model, line, _HEADS)
    for name, weight in reference.state_dict().items():
        if name not in expected or weight.shape != expected[name].shape:
            what = f"shape {tuple(expected[name].shape)}" if name in expected else "no such weight"
            raise RejectedError(
                f"Transformer: expected the sizes {sizes} that it was given, got a model in which the reference's "
                f"{quoted(name)} has shape {tuple(weight.shape)} instead of {what}",
                line,
            )
    if len(reference.decoder.layers) + len(reference.encoder.layers) != 2 * _LAYERS:
        raise RejectedError(f"Transformer: expected {_LAYERS} layers in each stack, got a different number", line)
    return model, reference


def _reference_of(model: nn.Module, line: int | None, heads: int) -> Transformer:
    try:
        return import_module(model, **_IDS, heads=heads, positions="interleaved", dropout=0.0)
    except (GlassformerError, KeyError, IndexError) as error:
        raise RejectedError(f"Transformer: {error}", line) from error


def _heads_of(mine: Mine, model: Any, source: Tensor) -> int:
    """Return the number of heads with which a reader's model calls `attention`."""
    with watched(mine, model) as seen:
        mine.call("Transformer", model.encode, source)
    query = seen.get("encoder.layers.0.self_attention.query")
    if query is None or query.dim() != 4:
        line = mine.line("MultiHeadAttention")
        raise RejectedError("MultiHeadAttention: expected a call of attention with all heads, got none", line)
    return query.shape[1]


@torch.no_grad()
def _decoded(model: Any, source: Tensor, length: int) -> Tensor:
    """Return the greedy output for each source, `length` tokens long."""
    memory = model.encode(source)
    written = torch.full((len(source), 1), _IDS["bos_id"])
    for _ in range(length):
        logits = model.decode(written, memory, source)
        written = torch.cat([written, logits[:, -1:].argmax(-1)], 1)
    return written[:, 1:]


def _same_ids(name: str, got: Tensor, expected: Tensor, line: int | None) -> None:
    if not torch.equal(got, expected):
        item, place = (int(i) for i in (got != expected).nonzero()[0])
        raise RejectedError(
            f"{name}: the first token that differs is at [{item}, {place}]: expected {int(expected[item, place])}, "
            f"got {int(got[item, place])}; token t is the argmax of the logits after <bos> and t tokens",
            line,
            "tokens",
        )
