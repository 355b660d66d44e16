"""The engine of a model in a separate page, for comparison with PyTorch."""

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from traces import Trace

START = """async (text) => {
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


class PageEngine:
    """An engine in a page of the fixture `engine_page`."""

    def __init__(self, page: Any, payload: dict[str, Any]) -> None:
        self.page = page
        page.evaluate(START, json.dumps(payload))

    def trace(self, source: Sequence[int], target: Sequence[int], **changes: Any) -> Trace:
        """Return all points of a forward pass by name, in the page's order."""
        return {one["name"]: decoded(one) for one in self.page.evaluate(TRACE, asked(source, target, changes))}

    def search(self, source: Sequence[int], **options: Any) -> dict[str, Any]:
        """Return the result of a search."""
        result: dict[str, Any] = self.page.evaluate(
            "(asked) => engine.search(asked)", {"sourceIds": list(source), **options}
        )
        return result

    def first_difference(self, source: Sequence[int], target: Sequence[int], **changes: Any) -> str | None:
        """Return the name of the first point whose values differ under the changes."""
        first: str | None = self.page.evaluate(FIRST, [asked(source, target, {}), asked(source, target, changes)])
        return first


def asked(source: Sequence[int], target: Sequence[int], changes: dict[str, Any]) -> dict[str, Any]:
    return {"sourceIds": list(source), "targetIds": list(target), "changes": changes}


def decoded(point: dict[str, Any]) -> Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(point["data"]), "<f4").copy()).view(point["shape"])


def assert_same(got: Trace, expected: Trace) -> None:
    """Check that two traces have the same points and, to 1e-4, the same numbers."""
    assert list(got) == list(expected)
    shapes = {name: (got[name].shape, expected[name].shape) for name in got}
    assert not [name for name, (one, other) in shapes.items() if one != other]
    differences = {name: (got[name] - expected[name]).abs().max().item() for name in got}
    assert not {name: one for name, one in differences.items() if not one <= 1e-4}
