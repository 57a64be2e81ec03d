"""Layouts of fixed-size structures, declared field by field."""

from __future__ import annotations

from struct import Struct, calcsize


class Layout:
    """Big-endian fields in sequence. Declare each once, in order: `field` returns where the field
    begins, and `struct` reads and writes all of them."""

    def __init__(self) -> None:
        self._codes = ">"

    def field(self, code: str) -> int:
        """Add a field, by its code in module `struct`, and return its position."""
        position = calcsize(self._codes)
        self._codes += code
        return position

    @property
    def struct(self) -> Struct:
        return Struct(self._codes)

    @property
    def size(self) -> int:
        """Return the bytes of all fields declared so far."""
        return calcsize(self._codes)
