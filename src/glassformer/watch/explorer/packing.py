"""Pack tensors for a page: their numbers as bytes or base64 text, and a list of names, shapes and offsets."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Dtype", "as_base64", "dequantised", "layout_of", "number_bytes", "pack", "quantised"]

Dtype = Literal["float16", "float32"]


def pack(tensors: Mapping[str, Tensor], dtype: Dtype) -> dict[str, Any]:
    """Return tensors as one base64 text of little-endian numbers, with their layout (see `layout_of`)."""
    arrays = (tensor.detach().cpu().numpy().astype(dtype) for tensor in tensors.values())
    return {"dtype": dtype, "tensors": layout_of(tensors), "data": as_base64(arrays)}


def layout_of(tensors: Mapping[str, Tensor]) -> list[dict[str, Any]]:
    """Return the name, shape and offset of each tensor; an offset is the count of numbers in all earlier tensors."""
    layout, offset = [], 0
    for name, tensor in tensors.items():
        layout.append({"name": name, "shape": list(tensor.shape), "offset": offset})
        offset += tensor.numel()
    return layout


def as_base64(arrays: Iterable[NDArray[Any]]) -> str:
    """Return the numbers of all arrays, one after another, as base64 text."""
    return base64.b64encode(b"".join(map(number_bytes, arrays))).decode("ascii")


def number_bytes(array: NDArray[Any]) -> bytes:
    """Return an array's numbers as bytes, row by row, little-endian."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def quantised(weights: NDArray[Any]) -> list[NDArray[Any]]:
    """Return weights in a quarter of their float32 size: a matrix becomes int8 numbers with a float32 scale per row.

    The largest number of a row becomes ±127. A tensor that is not a matrix is stored in half precision.
    """
    if weights.ndim != 2:
        return [weights.astype("float16")]
    scale = np.abs(weights).max(1, keepdims=True).astype("float32") / np.float32(127)
    return [scale, np.rint(weights / np.where(scale == 0, 1, scale)).astype("int8")]


def dequantised(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the float32 weights that a page computes from the result of `quantised`."""
    if len(parts) == 1:
        return parts[0].astype("float32")
    scale, numbers = parts
    weights: NDArray[Any] = numbers.astype("float32") * scale
    return weights
