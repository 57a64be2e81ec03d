"""What instances of Kafka Streams commit with an offset: how far they are in the time of records.

Rule: docs/format.md F1254.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import NamedTuple

_FRONT = struct.Struct(">bq")
_INT32, _INT64 = struct.Struct(">i"), struct.Struct(">q")
_WITHOUT_PROCESSORS, _WITH_PROCESSORS = 1, 2
_UNKNOWN_TIME = -1


class StreamsCommit(NamedTuple):
    """The largest timestamp of the records that an instance had read of a partition, None where it
    had read none, and the times that its processors keep, by the names of these."""

    stream_time_ms: int | None
    processor_times: dict[str, int]


def read_streams_commit(metadata: str | None) -> StreamsCommit | None:
    """Return what the metadata of a commit says; None where they are not of Kafka Streams: any
    consumer can commit any text."""
    if not metadata or len(metadata) % 4 or metadata[0] != "A":
        return None
    try:
        data = base64.b64decode(metadata, validate=True)
        version, time_ms = _FRONT.unpack_from(data)
        times = _processor_times(data[_FRONT.size :])
    except (binascii.Error, ValueError, struct.error):
        return None
    has_more = len(data) > _FRONT.size
    known = (_WITH_PROCESSORS,) if has_more else (_WITHOUT_PROCESSORS, _WITH_PROCESSORS)
    if version not in known or time_ms < _UNKNOWN_TIME:
        return None
    return StreamsCommit(None if time_ms == _UNKNOWN_TIME else time_ms, times)


def _processor_times(data: bytes) -> dict[str, int]:
    """Return the times by name. Raises ValueError or struct.error for bytes of another form."""
    if not data:
        return {}
    (count,) = _INT32.unpack_from(data)
    position = _INT32.size
    times: dict[str, int] = {}
    for _ in range(min(count, len(data))):
        (size,) = _INT32.unpack_from(data, position)
        if size < 0:
            raise ValueError(f"a name of {size} bytes")
        name = data[position + _INT32.size : position + _INT32.size + size]
        position += _INT32.size + size
        (times[name.decode()],) = _INT64.unpack_from(data, position)
        position += _INT64.size
    if position != len(data) or len(times) != count:
        raise ValueError(f"{len(data)} bytes of {count} times")
    return times
