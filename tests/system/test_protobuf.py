"""Messages of Protocol Buffers are read as they were written."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.system.protobuf import field, fields, float_of

VALUES = st.integers(0, 2**64 - 1) | st.binary(max_size=300)


@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), VALUES)))
def test_fields_are_read_as_written(message):
    assert list(fields(b"".join(field(*one) for one in message))) == message


@given(st.floats(width=32, allow_nan=False))
def test_floats_are_read_as_written(number):
    [(place, value)] = fields(field(7, number))
    assert (place, float_of(value)) == (7, number)


def test_the_bytes_are_those_of_the_documentation():
    assert field(1, 150) == b"\x08\x96\x01"
    assert field(2, "testing") == b"\x12\x07testing"
    assert field(1, -2) == b"\x08\xfe" + 8 * b"\xff" + b"\x01"


@given(st.binary(max_size=50))
def test_any_bytes_are_read_or_refused(message):
    with suppress(ValueError):
        list(fields(message))


@pytest.mark.parametrize("message", [b"\x12\x07test", b"\x08", b"\x0b", b"\xff" * 20])
def test_a_cut_message_is_refused(message):
    with pytest.raises(ValueError, match="not a Protocol Buffers message"):
        list(fields(message))
