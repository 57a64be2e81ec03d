"""The topics of MirrorMaker: offset syncs, checkpoints and heartbeats.

Rule: docs/format.md F1253.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

Values = dict[str, Any]
OFFSET_SYNC, CHECKPOINT, HEARTBEAT = "offset-sync", "checkpoint", "heartbeat"

_NUMBERS = {
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
}
_STRING = "string"
# The fields of key and value, by what the names of topics are; a version precedes some values.
_KINDS: Sequence[
    tuple[str, re.Pattern[str], Sequence[tuple[str, str]], Sequence[tuple[str, str]]]
] = (
    (
        OFFSET_SYNC,
        re.compile(r"mm2-offset-syncs(\..*)?"),
        (("topic", _STRING), ("partition", "int32")),
        (("upstreamOffset", "int64"), ("offset", "int64")),
    ),
    (
        CHECKPOINT,
        re.compile(r".*\.checkpoints\.internal"),
        (("group", _STRING), ("topic", _STRING), ("partition", "int32")),
        (
            *(("version", "int16"), ("upstreamOffset", "int64"), ("offset", "int64")),
            ("metadata", _STRING),
        ),
    ),
    (
        HEARTBEAT,
        re.compile(r"(.*\.)?heartbeats"),
        (("sourceClusterAlias", _STRING), ("targetClusterAlias", _STRING)),
        (("version", "int16"), ("timestamp", "int64")),
    ),
)


def mirror_kind(topic: str) -> str | None:
    """Return what MirrorMaker keeps in topics with such a name: OFFSET_SYNC, CHECKPOINT or
    HEARTBEAT; None for other names."""
    return next((kind for kind, pattern, _, _ in _KINDS if pattern.fullmatch(topic)), None)


def read_mirror_record(
    topic: str, key: bytes | None, value: bytes | None
) -> tuple[Values, Values | None] | None:
    """Return the fields of key and value, None as the value of a tombstone; None as a whole where
    the bytes have another form: any topic can have such a name."""
    for _, pattern, of_key, of_value in _KINDS:
        if pattern.fullmatch(topic) and key is not None:
            try:
                values = None if value is None else _read(of_value, value)
                return _read(of_key, key), values
            except (ValueError, struct.error):
                return None
    return None


def _read(fields: Sequence[tuple[str, str]], data: bytes) -> Values:
    found: Values = {}
    position = 0
    for name, kind in fields:
        if kind == _STRING:
            (size,) = _NUMBERS["int16"].unpack_from(data, position)
            start, position = position + 2, position + 2 + size
            if size < 0 or position > len(data):
                raise ValueError(f"{name} of {size} bytes")
            found[name] = data[start:position].decode()
        else:
            (found[name],) = _NUMBERS[kind].unpack_from(data, position)
            position += _NUMBERS[kind].size
    if position != len(data):
        raise ValueError(f"{len(data) - position} bytes after the fields")
    return found
