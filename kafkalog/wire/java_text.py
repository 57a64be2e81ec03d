"""Text as Java decodes, orders and hashes it. Rule of decoding: docs/format.md F23."""

from __future__ import annotations

import codecs
import re
import struct

_AS_JAVA = "kafkalog.replace_as_java"
_REPLACEMENT = "\ufffd"


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    start, data = error.start, error.object
    # Half of a surrogate pair, encoded on its own: one character to Java, three to Python.
    if data[start] == 0xED and data[start + 1 : start + 2] >= b"\xa0":
        is_whole = b"\x80" <= data[start + 2 : start + 3] <= b"\xbf"
        is_second = data[start + 1] <= 0xBF
        return _REPLACEMENT, start + 1 + is_second + (is_second and is_whole)
    return _REPLACEMENT, error.end


codecs.register_error(_AS_JAVA, _replaced)


def decoded(data: bytes) -> str:
    """Return the text; what is not UTF-8 is replaced."""
    return data.decode("utf-8", errors=_AS_JAVA)


_FACTOR = 31
_BITS = 32
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")


def java_order(text: str) -> bytes:
    """Return a key that sorts texts as Java's `compareTo` does: by their UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def java_integer(text: str, bits: int = _BITS) -> int | None:
    """Return the number that Java parses a text as, of so many bits; None where it is none. It
    takes no spaces."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << (bits - 1)) <= number < 1 << (bits - 1) else None


def java_string_hash(text: str) -> int:
    """Java's `hashCode` of a text, a signed number of 32 bits."""
    units = java_order(text)
    value = 0
    for (unit,) in struct.iter_unpack(">H", units):
        value = (value * _FACTOR + unit) & ((1 << _BITS) - 1)
    return value - (1 << _BITS) if value >> (_BITS - 1) else value
