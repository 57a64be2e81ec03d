"""Kernels that read single numbers: big-endian integers and variable-length ones."""

from __future__ import annotations

from kafkalog.columns.jit.compiled import ByteArray, inlined_kernel, kernel, long


@kernel
def _big_endian(data: ByteArray, index: int, size: int) -> int:
    """Return the unsigned integer in `size` bytes, the signed one in 8 bytes."""
    value = long(0)
    for i in range(size):
        value = (value << 8) | long(data[index + i])
    return value


@kernel
def signed_32(data: ByteArray, index: int) -> int:
    """Return the signed 32-bit integer at `index`."""
    value = _big_endian(data, index, 4)
    return value - ((value >> 31) << 32)


@kernel
def unsigned_32(data: ByteArray, index: int) -> int:
    """Return the unsigned 32-bit integer at `index`."""
    return _big_endian(data, index, 4)


@kernel
def signed_64(data: ByteArray, index: int) -> int:
    """Return the signed 64-bit integer at `index`."""
    return _big_endian(data, index, 8)


@kernel
def signed_16(data: ByteArray, index: int) -> int:
    """Return the signed 16-bit integer at `index`."""
    value = _big_endian(data, index, 2)
    return value - ((value >> 15) << 16)


@kernel
def _long_varint(data: ByteArray, index: int, end: int, longest: int) -> tuple[int, int]:
    value = long(0)
    for i in range(longest):
        if index + i >= end:
            return long(0), long(-1)
        byte = long(data[index + i])
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, index + i + 1
    return long(0), long(-1)


@inlined_kernel
def varint(data: ByteArray, index: int, end: int) -> tuple[int, int]:
    """Return a zig-zag 32-bit integer and the position after it, -1 if it is malformed."""
    if index + 2 <= end:
        first = long(data[index])
        if first < 0x80:
            return (first >> 1) ^ -(first & 1), index + 1
        second = long(data[index + 1])
        if second < 0x80:
            value = (first & 0x7F) | (second << 7)
            return (value >> 1) ^ -(value & 1), index + 2
    value, after = _long_varint(data, index, end, 5)
    value &= 0xFFFFFFFF
    return (value >> 1) ^ -(value & 1), after


@inlined_kernel
def varlong(data: ByteArray, index: int, end: int) -> tuple[int, int]:
    """Return a zig-zag 64-bit integer and the position after it, -1 if it is malformed."""
    if index + 2 <= end:
        first = long(data[index])
        if first < 0x80:
            return (first >> 1) ^ -(first & 1), index + 1
        second = long(data[index + 1])
        if second < 0x80:
            value = (first & 0x7F) | (second << 7)
            return (value >> 1) ^ -(value & 1), index + 2
    value, after = _long_varint(data, index, end, 10)
    return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), after
