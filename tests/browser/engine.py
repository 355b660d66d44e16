"""The engine of a model in a page of its own, to be compared with PyTorch."""

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

import glassformer as gf
from glassformer.explorer.module import joined
from glassformer.explorer.payload import pack, rounded

START = """async ([code, text]) => {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  globalThis.module = await import(url);
  globalThis.payload = JSON.parse(text);
  globalThis.engine = await module.createEngine(payload, globalThis.host ?? null);
  globalThis.base64 = ({ buffer, byteOffset, byteLength }) => {
    let text = "";
    for (const byte of new Uint8Array(buffer, byteOffset, byteLength)) text += String.fromCharCode(byte);
    return btoa(text);
  };
}"""
TRACE = """async (asked) => {
  const trace = await engine.trace(asked);
  const values = await Promise.all(trace.names.map((name) => trace.get(name)));
  return values.map(({ shape, data }, i) => ({ name: trace.names[i], shape, data: base64(data) }));
}"""
FIRST = """async ([before, after]) => module.firstDifference(await engine.trace(before), await engine.trace(after))"""

Decoded = dict[str, Tensor]


def words(count: int) -> dict[str, Any]:
    """Return a tokenizer with so many words."""
    return {"kind": "words", "tokens": ["<pad>", "<bos>", "<eos>", "<unk>", *(f"w{id}" for id in range(4, count))]}


def payload_of(model: gf.Transformer) -> dict[str, Any]:
    """Return what a page gets of a model without a run."""
    return {
        "config": model.config.to_dict(),
        "decoding": {"beam_size": 4, "length_penalty": 0.6},
        "source": words(model.config.source_vocab_size),
        "target": words(model.config.target_vocab_size),
        "weights": pack(dict(model.named_parameters()), "float16"),
        "checkpoints": [],
        "trace": None,
    }


def halved(make_model: Callable[..., gf.Transformer], **settings: Any) -> gf.Transformer:
    """Return a random model in float32 whose weights are halves, as the page gets them."""
    return rounded(make_model(**settings))


class PageEngine:
    """An engine in a page."""

    def __init__(self, page: Any, payload: dict[str, Any]) -> None:
        self.page = page
        page.evaluate(START, [joined("engine.js"), json.dumps(payload)])

    def trace(self, source: Sequence[int], target: Sequence[int], **changes: Any) -> Decoded:
        """Return all points, by name, in the page's order."""
        return {one["name"]: decoded(one) for one in self.page.evaluate(TRACE, asked(source, target, changes))}

    def search(self, source: Sequence[int], **options: Any) -> dict[str, Any]:
        """Return what the search finds."""
        result: dict[str, Any] = self.page.evaluate(
            "(asked) => engine.search(asked)", {"sourceIds": list(source), **options}
        )
        return result

    def first_difference(self, source: Sequence[int], target: Sequence[int], **changes: Any) -> str | None:
        """Return the first point that the changes change."""
        first: str | None = self.page.evaluate(FIRST, [asked(source, target, {}), asked(source, target, changes)])
        return first


def asked(source: Sequence[int], target: Sequence[int], changes: dict[str, Any]) -> dict[str, Any]:
    return {"sourceIds": list(source), "targetIds": list(target), "changes": changes}


def decoded(point: dict[str, Any]) -> Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(point["data"]), "<f4").copy()).view(point["shape"])


@torch.no_grad()
def python_trace(model: gf.Transformer, source: Sequence[int], target: Sequence[int]) -> Decoded:
    """Return PyTorch's points of one sentence, without the batch's axis."""
    with gf.record(model) as trace:
        model(torch.tensor([list(source)]), torch.tensor([list(target)]))
    return {name: value if name.endswith(".positions") else value.squeeze(0) for name, value in trace.items()}


def assert_same(got: Decoded, expected: Decoded) -> None:
    """Check that two traces have the same points and, to 1e-4, the same numbers."""
    assert list(got) == list(expected)
    shapes = {name: (got[name].shape, expected[name].shape) for name in got}
    assert not [name for name, (one, other) in shapes.items() if one != other]
    differences = {name: (got[name] - expected[name]).abs().max().item() for name in got}
    assert not {name: one for name, one in differences.items() if not one <= 1e-4}
