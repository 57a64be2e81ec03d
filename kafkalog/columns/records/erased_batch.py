"""A batch without some of its records, all that is left of it byte for byte as it was.

Rules: docs/erasure.md F1100 to F1104.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from kafkalog.columns.jit.compiled import BoolArray, ByteArray, LongArray, kernel, long
from kafkalog.columns.records.record_kernels import read_record
from kafkalog.errors import CorruptDataError
from kafkalog.format import batch_header as layout
from kafkalog.format.batch_header import BatchHeader, read_header
from kafkalog.format.faults import Fault
from kafkalog.format.message_set import inner_message_spans, read_key_and_value, write_old_message
from kafkalog.format.record_batch import (
    BatchFields,
    decompressed_payload,
    emptied_batch,
    with_checksum,
    write_batch,
)
from kafkalog.wire.compression import CompressionType, compress


class _Span(NamedTuple):
    """Where an inner message lies in a payload, its offset and its time."""

    start: int
    end: int
    offset: int
    timestamp_ms: int


def without_records(batch: bytes, erased: Collection[int]) -> bytes:
    """Return a sound batch of any format without the records of these offsets; b"" where nothing
    of a message of format 0 or 1 is left.

    Raises CorruptDataError for one whose records cannot be read, or that lacks one of the offsets.
    """
    header = read_header(batch, 0)
    if header.magic == 2:
        return _without_records_v2(batch, header, erased)
    if header.compression_id:
        return _wrapper_without(batch, header, erased)
    _refuse_missing([header.base_offset], erased)
    return b""


def offset_holder(offset: int) -> bytes:
    """Return a batch v2 without records that ends at an offset: a log ends where it did although
    its last message of format 0 or 1 is removed. Rule: F1104."""
    no_epoch = layout.NO_VALUE
    return write_batch(
        (),
        BatchFields(
            leader_epoch=no_epoch,
            base_offset=offset,
            last_offset=offset,
            max_timestamp_ms=layout.NO_VALUE,
        ),
    )


def _without_records_v2(batch: bytes, header: BatchHeader, erased: Collection[int]) -> bytes:
    payload = decompressed_payload(batch, 0)
    ends, offsets, times = _record_columns(payload, header)
    _refuse_missing(offsets.tolist(), erased)
    gone = np.isin(offsets, [*erased])
    if gone.all():
        return emptied_batch(header)
    latest_ms = header.max_timestamp_ms
    if header.timestamp_type != layout.LOG_APPEND_TIME:
        latest_ms = int(times[~gone].max())
    compression = CompressionType(header.compression_id)
    stored = compress(compression, header.magic, _without(payload, ends, gone))
    new_header = layout.V2_HEADER.pack(
        header.base_offset,
        layout.V2_HEADER_BYTES - layout.LOG_OVERHEAD + len(stored),
        header.leader_epoch,
        header.magic,
        0,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp_ms,
        latest_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        int((~gone).sum()),
    )
    return with_checksum(new_header + stored)


def _record_columns(payload: bytes, header: BatchHeader) -> tuple[LongArray, LongArray, LongArray]:
    """Return where the records of a batch end, their offsets and their times."""
    columns = np.empty((3, header.records_count), dtype=np.int64)
    # A copy that can be written to: kernels are compiled for such arrays.
    count = _find_records(np.array(np.frombuffer(payload, dtype=np.uint8)), columns)
    if count < header.records_count:
        detail = f"record {count} of {header.records_count} cannot be read"
        raise CorruptDataError(Fault.RECORDS.label, detail, position=0)
    ends, offset_deltas, time_deltas = columns
    return ends, header.base_offset + offset_deltas, header.base_timestamp_ms + time_deltas


@kernel
def _find_records(payload: ByteArray, columns: LongArray) -> int:
    """Set end, offset delta and time delta of each record; return how many can be read."""
    index = 0
    for number in range(columns.shape[1]):
        record = read_record(payload, index, len(payload))
        if record.end < 0:
            return number
        columns[0, number] = index = record.end
        columns[1, number] = record.offset_delta
        columns[2, number] = record.timestamp_delta
    return long(columns.shape[1])


def _without(payload: bytes, ends: LongArray, gone: BoolArray) -> bytes:
    """Return the records that are left."""
    view, pieces, position = memoryview(payload), [], 0
    for number in np.flatnonzero(gone).tolist():
        pieces.append(view[position : ends[number - 1] if number else 0])
        position = ends[number]
    return b"".join([*pieces, view[position : ends[-1]]])


def _wrapper_without(batch: bytes, header: BatchHeader, erased: Collection[int]) -> bytes:
    """Return a compressed message of format 0 or 1 with the inner messages that are left. Their
    offsets count from its own: that is the last one's (F44)."""
    payload = decompressed_payload(batch, 0)
    spans = [_Span(*span) for span in inner_message_spans(payload, header)]
    _refuse_missing([span.offset for span in spans], erased)
    kept = [span for span in spans if span.offset not in erased]
    if not kept:
        return b""
    timestamp_ms = header.max_timestamp_ms
    if header.timestamp_type == layout.CREATE_TIME:
        timestamp_ms = max(span.timestamp_ms for span in kept)
    # One that has offset 0 comes from clients whose inner offsets count absolutely (F44).
    offset = kept[-1].offset if header.base_offset else 0
    key, _ = read_key_and_value(batch, 0, header)
    compression = CompressionType(header.compression_id)
    return write_old_message(
        offset,
        header.magic,
        key,
        compress(compression, header.magic, _joined(payload, kept)),
        timestamp_ms=timestamp_ms,
        attributes=header.attributes,
    )


def _joined(payload: bytes, spans: list[_Span]) -> bytes:
    view = memoryview(payload)
    return b"".join([view[span.start : span.end] for span in spans])


def _refuse_missing(offsets: list[int], erased: Collection[int]) -> None:
    missing = set(erased).difference(offsets)
    if missing:
        detail = f"no record has offset {min(missing)}"
        raise CorruptDataError(Fault.RECORD_OFFSETS.label, detail, position=0)
