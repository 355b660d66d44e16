"""Read and write Protocol Buffers, the format of sentencepiece models and ONNX files, as lists of numbered fields."""

import struct
from collections.abc import Iterator

__all__ = ["field", "fields", "float_of"]

VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5
"""The kinds of fields, by their numbers in the format."""
SEVEN_BITS, MORE = 0x7F, 0x80
WORD = 2**64


def field(number: int, value: int | float | str | bytes) -> bytes:
    """Return one encoded field of a message. Bytes are raw data or another message; a float is written in 32 bits."""
    match value:
        case int():
            return _varint(number << 3 | VARINT) + _varint(value % WORD)
        case float():
            return _varint(number << 3 | FOUR_BYTES) + struct.pack("<f", value)
        case str():
            return field(number, value.encode())
        case bytes():
            return _varint(number << 3 | LENGTH) + _varint(len(value)) + value


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and the value of each field. A value is an integer or bytes; `float_of` decodes a float's bytes.

    Raises:
        ValueError: the bytes are not a message.
    """
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        kind = key & 7
        if kind == VARINT:
            value, place = _read_varint(message, place)
            yield key >> 3, value
            continue
        size = {EIGHT_BYTES: 8, FOUR_BYTES: 4}.get(kind)
        if kind == LENGTH:
            size, place = _read_varint(message, place)
        if size is None or place + size > len(message):
            raise ValueError("not a Protocol Buffers message")
        yield key >> 3, message[place : place + size]
        place += size


def float_of(value: int | bytes) -> float:
    """Return a float, given the four bytes that `fields` yields.

    Raises:
        ValueError: the field is not a float.
    """
    if not isinstance(value, bytes) or len(value) != 4:
        raise ValueError("expected a float of 32 bits")
    [number] = struct.unpack("<f", value)
    return float(number)


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > SEVEN_BITS:
        written.append(value & SEVEN_BITS | MORE)
        value >>= 7
    written.append(value)
    return bytes(written)


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(message) and shift < 70:
        byte = message[place]
        value |= (byte & SEVEN_BITS) << shift
        place, shift = place + 1, shift + 7
        if not byte & MORE:
            return value, place
    raise ValueError("not a Protocol Buffers message")
