"""Tensors as text: joined into one base64 text of numbers, with a list of their names, shapes and offsets."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from numpy.typing import NDArray
from torch import Tensor

from glassformer.explorer.remote import number_bytes

__all__ = ["Dtype", "as_base64", "pack"]

Dtype = Literal["float16", "float32"]


def pack(tensors: Mapping[str, Tensor], dtype: Dtype) -> dict[str, Any]:
    """Return tensors as one base64 text of little-endian numbers, with each tensor's offset, counted in numbers."""
    layout, offset = [], 0
    for name, tensor in tensors.items():
        layout.append({"name": name, "shape": list(tensor.shape), "offset": offset})
        offset += tensor.numel()
    arrays = (tensor.detach().cpu().numpy().astype(dtype) for tensor in tensors.values())
    return {"dtype": dtype, "tensors": layout, "data": as_base64(arrays)}


def as_base64(arrays: Iterable[NDArray[Any]]) -> str:
    """Return the numbers of all arrays, one after another, as base64 text."""
    return base64.b64encode(b"".join(map(number_bytes, arrays))).decode("ascii")
