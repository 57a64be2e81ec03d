"""Kafka's variable-length integers: Protobuf's base-128 groups over a zig-zag mapping.

Integers of flexible messages are unsigned and not mapped. Readers take `(data, position)` and
return `(value, size)`. Rules: docs/format.md F20 and F185.
"""

from __future__ import annotations

from collections.abc import Sequence

VARINT_BYTES = 5
VARLONG_BYTES = 10


class VarintError(ValueError):
    """A variable-length integer that never ends, or ends after the data does."""


def _read_unsigned(data: Sequence[int], position: int, end: int, longest: int) -> tuple[int, int]:
    value = 0
    for index in range(longest):
        if position + index >= end:
            raise VarintError(f"the data ends inside a variable-length integer at {position}")
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, index + 1
    raise VarintError(f"a variable-length integer of more than {longest} bytes at {position}")


def _zig_zag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def read_varint(data: Sequence[int], position: int, end: int) -> tuple[int, int]:
    """Return a signed 32-bit integer and its size. Bits beyond the 32nd are dropped, as Kafka
    does."""
    value, size = _read_unsigned(data, position, end, VARINT_BYTES)
    return _zig_zag(value & 0xFFFFFFFF), size


def read_unsigned_varint(data: Sequence[int], position: int, end: int) -> tuple[int, int]:
    """Return an unsigned 32-bit integer and its size. Bits beyond the 32nd are dropped."""
    value, size = _read_unsigned(data, position, end, VARINT_BYTES)
    return value & 0xFFFFFFFF, size


def read_varlong(data: Sequence[int], position: int, end: int) -> tuple[int, int]:
    """Return a signed 64-bit integer and its size. Bits beyond the 64th are dropped, as Kafka
    does."""
    value, size = read_unsigned_varlong(data, position, end)
    return _zig_zag(value), size


def read_unsigned_varlong(data: Sequence[int], position: int, end: int) -> tuple[int, int]:
    """Return an unsigned 64-bit integer and its size. Bits beyond the 64th are dropped, as
    Protobuf does."""
    value, size = _read_unsigned(data, position, end, VARLONG_BYTES)
    return value & 0xFFFFFFFFFFFFFFFF, size


def write_varint(value: int) -> bytes:
    """Return the bytes of a signed 32- or 64-bit integer."""
    return write_unsigned_varint(((value << 1) ^ (value >> 63)) & 0xFFFFFFFFFFFFFFFF)


def write_unsigned_varint(value: int) -> bytes:
    """Return the bytes of an integer that is not negative, without zig-zag."""
    remaining = value
    groups = bytearray()
    while remaining >= 0x80:
        groups.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    groups.append(remaining)
    return bytes(groups)
