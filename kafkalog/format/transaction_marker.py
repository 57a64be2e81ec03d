"""The control record that ends a transaction. Rules: docs/format.md F112 and F210."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import COMPRESSION_BITS, CREATE_TIME, LOG_APPEND_TIME_BIT
from kafkalog.format.record_batch import BatchFields, read_batch, write_batch
from kafkalog.format.records import Record

ABORT, COMMIT = 0, 1

_KEY_BYTES, _VALUE_BYTES = 4, 6
_KEY, _VALUE = struct.Struct(">hh"), struct.Struct(">hi")
_VERSION = 0

# As brokers write it: attributes, both times, the count of records; the record's length,
# attributes, deltas and key length; version and type; the value's length, version, coordinator
# epoch; no headers.
_USUAL = struct.Struct(">21xh4xqq14xi5s2xhc2xic")
_USUAL_RECORD = 1, b"\x20\0\0\0\x08", b"\x0c", b"\0"


@dataclass(frozen=True, slots=True)
class TransactionMarker:
    """`type` is ABORT or COMMIT; no other type ends a transaction."""

    type: int
    coordinator_epoch: int
    timestamp_ms: int


def read_marker(batch: bytes) -> TransactionMarker:
    """Return the marker in a whole control batch of format 2.

    Raises CorruptDataError where the batch cannot be read or its record is too short for one.
    """
    if len(batch) == _USUAL.size:
        # Nothing is read as often in a topic of small transactions.
        attributes, base_ms, max_ms, count, head, kind, value, epoch, end = _USUAL.unpack(batch)
        if (count, head, value, end) == _USUAL_RECORD and not attributes & COMPRESSION_BITS:
            is_append_time = attributes & LOG_APPEND_TIME_BIT
            return TransactionMarker(kind, epoch, max_ms if is_append_time else base_ms)
    record, *_ = read_batch(batch, 0)
    key, value = record.key or b"", record.value or b""
    if len(key) < _KEY_BYTES or len(value) < _VALUE_BYTES:
        detail = f"a control record of {len(key)} and {len(value)} bytes"
        raise CorruptDataError("records", detail, position=0)
    return TransactionMarker(
        int.from_bytes(key[2:4], "big", signed=True),
        int.from_bytes(value[2:6], "big", signed=True),
        record.timestamp_ms,
    )


def write_marker(marker: TransactionMarker, offset: int, fields: BatchFields) -> bytes:
    """Return the control batch of a marker at an offset; `fields` name the producer and its
    epoch."""
    key = _KEY.pack(_VERSION, marker.type)
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    record = Record(offset, marker.timestamp_ms, CREATE_TIME, key, value)
    return write_batch([record], replace(fields, is_transactional=True, is_control=True))
