"""The encoding of Kafka's types in messages, big-endian. Rule: docs/format.md F185."""

from __future__ import annotations

import base64
import binascii
from struct import Struct

from kafkalog.errors import SchemaError

FIXED_WIDTH = {
    "bool": Struct(">?"),
    "int8": Struct(">b"),
    "int16": Struct(">h"),
    "uint16": Struct(">H"),
    "int32": Struct(">i"),
    "uint32": Struct(">I"),
    "int64": Struct(">q"),
    "float64": Struct(">d"),
}
# The length in front of a value in messages that are not flexible; -1 is null.
STRING_LENGTH = FIXED_WIDTH["int16"]
BYTES_LENGTH = ARRAY_LENGTH = FIXED_WIDTH["int32"]
LONGEST_STRING = 2**15 - 1
UUID_BYTES = 16


def uuid_text(data: bytes) -> str:
    """Return a uuid as Kafka prints it: base64 for URLs without padding, 22 characters."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of a uuid that Kafka printed. Raises SchemaError."""
    try:
        data = base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        data = b""
    if len(data) != UUID_BYTES:
        raise SchemaError(f"not a uuid of 22 base64 characters, as Kafka prints it: {text!r}")
    return data
