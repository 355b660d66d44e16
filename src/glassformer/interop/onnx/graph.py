"""Build and write ONNX graphs: operators that compute values from other values, and the constant arrays of a model.

A graph is written as ONNX's message ModelProto, with the field numbers from onnx.proto3.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import ConfigError
from glassformer.system.protobuf import field

__all__ = ["BOOL", "FLOAT", "INT64", "Branch", "Constants", "Graph", "Port", "Value", "model_file"]

OPSET, IR_VERSION = 17, 8
"""The first versions of ONNX with LayerNormalization. Every onnxruntime since 2022 can read these versions."""
LARGEST_FILE = 2**31 - 1
"""Maximum size of a file in bytes; Protocol Buffers sets this limit."""

FLOAT, UINT8, INT32, INT64, BOOL = 1, 2, 6, 7, 9
"""ONNX's numbers for number formats."""
_TYPES = {"float32": FLOAT, "uint8": UINT8, "int32": INT32, "int64": INT64}

_Array = NDArray[Any]


class Value(str):
    """The name of a value in a graph: an input or output of operators."""

    __slots__ = ()


class Port(NamedTuple):
    """An input or output of a graph: its name, number format and shape. In a shape, a name stands for any length."""

    name: str
    type: int
    shape: Sequence[int | str]


class Constants:
    """The constant arrays of a model, each written once, and the names of its values."""

    def __init__(self) -> None:
        self.arrays: dict[str, _Array] = {}
        self.values = 0

    def put(self, name: str, array: _Array) -> Value:
        """Add an array under a name, if the name is new; return the array's value."""
        self.arrays.setdefault(name, array)
        return Value(name)

    def number(self, value: float | int | Sequence[int], type: str = "int64") -> Value:
        """Return the value of a constant number, or of a constant list of integers."""
        return self.put(f"{type} {value}", np.asarray(value, type))

    def fresh(self) -> Value:
        """Return a name for a new value."""
        self.values += 1
        return Value(f"v{self.values}")


class Graph:
    """A graph under construction: a list of operations. Branches of a condition are graphs with the same constants."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.nodes: list[bytes] = []

    def __call__(self, operator: str, *inputs: Value, **attributes: Any) -> Value:
        """Add an operation with one output; return the output's value."""
        [output] = self.several(operator, 1, *inputs, **attributes)
        return output

    def several(self, operator: str, count: int, *inputs: Value, **attributes: Any) -> list[Value]:
        """Add an operation with `count` outputs; return the values of the outputs."""
        outputs = [self.constants.fresh() for _ in range(count)]
        self.node(operator, inputs, outputs, **attributes)
        return outputs

    def node(self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Add an operation whose outputs have these names."""
        parts = [field(1, name) for name in inputs] + [field(2, name) for name in outputs]
        parts += [field(3, outputs[0]), field(4, operator)]
        parts += [field(5, _attribute(name, value)) for name, value in attributes.items()]
        self.nodes.append(b"".join(parts))

    def name(self, value: Value, name: str) -> None:
        """Make a value an output of the graph, under this name."""
        self.node("Identity", [value], [name])

    def message(self, inputs: Sequence[Port], outputs: Sequence[Port], arrays: Mapping[str, _Array]) -> bytes:
        """Return the graph as ONNX's GraphProto."""
        parts = [field(1, one) for one in self.nodes] + [field(2, "glassformer")]
        parts += [field(5, _tensor(name, array)) for name, array in arrays.items()]
        parts += [field(11, _port(one)) for one in inputs] + [field(12, _port(one)) for one in outputs]
        return b"".join(parts)

    def branch(self, outputs: Sequence[Port]) -> "Branch":
        """Return this graph as a branch of the operator If; a branch has no inputs and no constants of its own."""
        return Branch(self.message((), outputs, {}))


class Branch(bytes):
    """A graph that is an attribute of the operator If."""

    __slots__ = ()


def model_file(graph: Graph, inputs: Sequence[Port], outputs: Sequence[Port]) -> bytes:
    """Return the bytes of an ONNX file with a graph and its constants.

    Raises:
        ConfigError: the model is too large for one file.
    """
    size = sum(array.nbytes for array in graph.constants.arrays.values())
    if size > LARGEST_FILE:
        raise ConfigError(
            f"the model: expected weights of at most {LARGEST_FILE} bytes, the limit of an ONNX file, got {size}; use "
            "--quantization int8 or --to ctranslate2"
        )
    message = graph.message(inputs, outputs, graph.constants.arrays)
    opset = field(1, "") + field(2, OPSET)
    return field(1, IR_VERSION) + field(2, "glassformer") + field(8, opset) + field(7, message)


def _attribute(name: str, value: Any) -> bytes:
    """Return an attribute as ONNX's AttributeProto; field 20 is the type, which decides which field holds the value."""
    match value:
        case Branch():
            return field(1, name) + field(6, bytes(value)) + field(20, 5)
        case int():
            return field(1, name) + field(3, value) + field(20, 2)
        case float():
            return field(1, name) + field(2, value) + field(20, 1)
        case _:
            return field(1, name) + b"".join(field(8, int(one)) for one in value) + field(20, 7)


def _tensor(name: str, array: _Array) -> bytes:
    """Return an array as ONNX's TensorProto."""
    ordered = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    sizes = b"".join(field(1, size) for size in array.shape)
    return sizes + field(2, _TYPES[array.dtype.name]) + field(8, name) + field(9, ordered.tobytes())


def _port(port: Port) -> bytes:
    """Return an input or output as ONNX's ValueInfoProto."""
    sizes = (field(2, size) if isinstance(size, str) else field(1, size) for size in port.shape)
    shape = b"".join(field(1, size) for size in sizes)
    return field(1, port.name) + field(2, field(1, field(1, port.type) + field(2, shape)))
