"""Write a CTranslate2 model in a binary version before 6, with the names and attributes of that version."""

import re
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from glassformer.interop.ctranslate2.folder import read_ctranslate2

_TYPES = ("float32", "int8", "int16", "int32", "float16")
_OPENNMT_TF = (
    (r"^", "transformer/"),
    (r"embeddings_0/weight|embeddings/weight", "w_embs"),
    (r"projection", "dense"),
    (r"layer_norm", "LayerNorm"),
    (r"linear_0", "conv1d"),
    (r"linear_", "conv1d_"),
    (r"weight$", "kernel"),
    (r"(decoder/layer_\d+/)self_attention", r"\1masked_multi_head"),
    (r"(decoder/layer_\d+/)attention", r"\1multi_head"),
    (r"self_attention", "multi_head"),
    (r"$", ":0"),
)
"""Patterns in today's names → the names of OpenNMT-tf, which version 1 used."""


def write_earlier(
    today: Path,
    folder: Path,
    version: int,
    specification: str = "",
    revision: int = 1,
    attributes: Mapping[str, Any] | None = None,
    change: Callable[[dict[str, Any]], dict[str, Any]] = lambda variables: variables,
) -> Path:
    """Write the model of a folder of version 6 again, with these attributes instead of its own and `config.json`."""
    files = read_ctranslate2(today)
    variables: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    first: dict[int, str] = {}
    for name, variable in files.variables.items():
        if not variable.shape and not name.endswith("weight_scale"):
            continue  # an attribute, not a weight
        name = name.replace("embeddings_0", "embeddings")
        if revision == 1:
            for pattern, former in _OPENNMT_TF:
                name = re.sub(pattern, former, name, count=1)
        if version >= 3 and first.setdefault(id(variable), name) != name:
            aliases |= {} if name.endswith("_scale") else {name: first[id(variable)]}
        else:
            variables[name] = variable.numbers
    folder.mkdir(parents=True)
    _serialize(
        folder / "model.bin", version, specification, revision, change(variables) | dict(attributes or {}), aliases
    )
    sides = (
        {"shared": files.source} if files.source == files.target else {"source": files.source, "target": files.target}
    )
    for side, tokens in sides.items():
        (folder / f"{side}_vocabulary.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    return folder


def text(value: str) -> Any:
    """Return a text in the form of an attribute's value."""
    return np.frombuffer(value.encode(), np.int8)


def _serialize(
    path: Path, version: int, specification: str, revision: int, variables: dict[str, Any], aliases: dict[str, str]
) -> None:
    content = [struct.pack("<I", version)]

    def name(value: str) -> bytes:
        return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"

    if version >= 2:
        content += [name(specification), struct.pack("<I", revision)]
    content.append(struct.pack("<I", len(variables)))
    for key, value in sorted(variables.items()):
        array = np.asarray(value)
        size = (_TYPES.index(array.dtype.name), array.nbytes) if version >= 4 else (array.itemsize, array.size)
        content += [name(key), struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape), struct.pack("<BI", *size)]
        content.append(array.tobytes())
    if version >= 3:
        content.append(struct.pack("<I", len(aliases)))
        content += [name(alias) + name(of) for alias, of in aliases.items()]
    path.write_bytes(b"".join(content))
