"""Producer snapshots: what a partition knew of its idempotent producers at an offset, `.snapshot`.

Rules: docs/format.md F105 and F106.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafkalog.errors import CorruptDataError
from kafkalog.wire.checksums import crc32c

SNAPSHOT_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_ENTRIES_START = _HEAD.size + _COUNT.size


class ProducerEntry(NamedTuple):
    """A producer's last batch and open transaction; -1 where there is none.

    `first_sequence` and `first_offset` of the batch follow from the last and the delta.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    transaction_first_offset: int


def read_producer_snapshot(data: bytes) -> list[ProducerEntry]:
    """Return the entries in the order of the file. Raises as `producer_entries` does."""
    return list(producer_entries(data))


def producer_entries(data: bytes) -> Iterator[ProducerEntry]:
    """Yield the same, one after the other.

    Raises CorruptDataError where the file is cut, its version unknown or its checksum wrong.
    """
    if len(data) < _ENTRIES_START:
        detail = f"{len(data)} bytes, a snapshot has {_ENTRIES_START} at least"
        raise CorruptDataError("truncated", detail, position=0)
    version, crc = _HEAD.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise CorruptDataError("version", f"version {version}, known is 1", position=0)
    computed = crc32c(data[_HEAD.size :])
    if computed != crc:
        detail = f"stored {crc:#010x}, computed {computed:#010x}"
        raise CorruptDataError("checksum", detail, position=_HEAD.size)
    (count,) = _COUNT.unpack_from(data, _HEAD.size)
    if len(data) != _ENTRIES_START + count * _ENTRY.size:
        detail = f"{count} entries announced in {len(data)} bytes"
        raise CorruptDataError("record_count", detail, position=_HEAD.size)
    for fields in _ENTRY.iter_unpack(memoryview(data)[_ENTRIES_START:]):
        yield ProducerEntry(*fields)


def write_producer_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """Return the bytes of a snapshot, entries in the order given."""
    packed = [_ENTRY.pack(*entry) for entry in entries]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(SNAPSHOT_VERSION, crc32c(body)) + body
