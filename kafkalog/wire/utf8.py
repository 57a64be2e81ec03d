"""Text as Java's decoder and so a consumer gives it. Rule: docs/format.md F23."""

from __future__ import annotations

import codecs

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
