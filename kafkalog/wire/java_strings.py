"""Java's strings are ordered and hashed by their UTF-16 units."""

from __future__ import annotations

import struct

_FACTOR = 31
_BITS = 32


def java_order(text: str) -> bytes:
    """Return a key that sorts texts as Java's `compareTo` does: by their UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def java_string_hash(text: str) -> int:
    """Java's `hashCode` of a text, a signed number of 32 bits."""
    units = java_order(text)
    value = 0
    for (unit,) in struct.iter_unpack(">H", units):
        value = (value * _FACTOR + unit) & ((1 << _BITS) - 1)
    return value - (1 << _BITS) if value >> (_BITS - 1) else value
