"""ONNX files contain the graphs, with ONNX's numbers of fields; tests/clients reads the files with onnxruntime."""

import numpy as np
import pytest

from glassformer.errors import ConfigError
from glassformer.interop.onnx import graph as module
from glassformer.interop.onnx.graph import FLOAT, Constants, Graph, Port, Value, model_file
from glassformer.system.protobuf import fields


def found(message: bytes, *numbers: int) -> list[object]:
    """Return the values of a nested field of a message; `numbers` are the field numbers from the outside in."""
    messages = [message]
    for number in numbers:
        messages = [value for one in messages for place, value in fields(one) if place == number]
    return messages


def doubled() -> Graph:
    graph = Graph(Constants())
    two = graph.constants.number(2.0, "float32")
    graph.name(graph("Mul", Value("x"), two), "y")
    graph.name(graph("Softmax", graph("Mul", Value("x"), two), axis=-1), "z")
    return graph


PORTS = (
    [Port("x", FLOAT, ("batch_size", 3))],
    [Port("y", FLOAT, ("batch_size", 3)), Port("z", FLOAT, ("batch_size", 3))],
)


def test_a_file_holds_operations_constants_and_ports():
    file = model_file(doubled(), *PORTS)
    assert found(file, 7, 1, 4) == [b"Mul", b"Identity", b"Mul", b"Softmax", b"Identity"]
    assert found(file, 7, 1, 5, 3) == [2**64 - 1]  # −1 as an unsigned number: the last axis
    assert found(file, 7, 11, 1) == [b"x"]
    assert found(file, 7, 12, 1) == [b"y", b"z"]
    assert found(file, 7, 11, 2, 1, 2, 1, 2) == [b"batch_size"]
    assert found(file, 7, 11, 2, 1, 2, 1, 1) == [3]
    assert found(file, 8, 2) == [17]


def test_a_constant_is_written_once():
    [two] = found(model_file(doubled(), *PORTS), 7, 5)
    assert found(two, 9) == [np.float32(2).tobytes()]


def test_a_file_that_would_be_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_FILE", 3)
    with pytest.raises(ConfigError, match="expected weights of at most 3 bytes, the limit of an ONNX file, got 4; use"):
        model_file(doubled(), *PORTS)
