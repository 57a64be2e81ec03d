"""Records of a batch v2: one after another, every number a variable-length integer.

Rules: docs/format.md F20 to F27.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import (
    LOG_APPEND_TIME,
    NO_VALUE,
    BatchHeader,
    wrapped_int64,
    wrapped_sequence,
)
from kafkalog.format.faults import Fault
from kafkalog.wire.java_text import decoded
from kafkalog.wire.varints import VarintError, read_varint, read_varlong, write_varint

RecordHeader = tuple[str, bytes | None]

# The most headers of a record that is read: no more fit into a message of 1 MiB, the largest that
# brokers take by default. Millions of empty ones take no room in a compressed batch.
MOST_HEADERS = 512 * 1024


@dataclass(frozen=True, slots=True)
class Record:
    """One record as a consumer receives it; None is null, b"" is empty.

    `timestamp_ms` is -1 for none; `sequence` is -1 outside idempotent production.
    """

    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()
    sequence: int = NO_VALUE


class _MalformedError(Exception):
    """Why a record cannot be read."""


class _TooManyHeadersError(Exception):
    """A record that has more headers than are read."""


def read_records(payload: bytes, header: BatchHeader) -> list[Record]:
    """Return the records of a decompressed payload. Positions in errors count from its start."""
    records: list[Record] = []
    position = 0
    last_delta = -1
    for index in range(header.records_count):
        if position == len(payload):
            detail = f"{header.records_count} records announced, {index} found"
            raise _corrupt(Fault.RECORD_COUNT, detail, position)
        try:
            record, delta, size = _read_record(payload, position, header)
        except (VarintError, _MalformedError) as error:
            raise _corrupt(Fault.RECORDS, f"record {index}: {error}", position) from error
        except _TooManyHeadersError as error:
            raise _corrupt(Fault.TOO_LARGE, f"record {index}: {error}", position) from error
        if not last_delta < delta <= header.last_offset_delta:
            detail = f"record {index}: offset delta {delta} after {last_delta}"
            detail += f", the batch ends at {header.last_offset_delta}"
            raise _corrupt(Fault.RECORD_OFFSETS, detail, position)
        records.append(record)
        last_delta = delta
        position += size
    if header.records_count and position < len(payload):
        detail = f"{len(payload) - position} bytes after the {header.records_count} records"
        raise _corrupt(Fault.RECORD_COUNT, detail, position)
    return records


class ConsumedRecords(NamedTuple):
    """What a consumer gets of a batch: how many records, and the offset at which reading fails,
    None if it does not."""

    records: int
    stop: int | None


def consumed_records(payload: bytes, header: BatchHeader) -> ConsumedRecords:
    """Return what a consumer gets of a payload's records. Unlike here, consumers take offsets as
    they come, and each record before the next is looked at. Raises CorruptDataError for a record
    with more headers than are read."""
    next_offset, position = header.base_offset, 0
    for index in range(header.records_count):
        try:
            record, _, size = _read_record(payload, position, header)
        except (VarintError, _MalformedError):
            return ConsumedRecords(index, next_offset)
        except _TooManyHeadersError as error:
            raise _corrupt(Fault.TOO_LARGE, f"record {index}: {error}", position) from error
        position += size
        # Bytes that are left are noticed with the last record.
        if index == header.records_count - 1 and position < len(payload):
            return ConsumedRecords(index, record.offset)
        next_offset = record.offset + 1
    return ConsumedRecords(header.records_count, None)


def _corrupt(fault: Fault, detail: str, position: int) -> CorruptDataError:
    return CorruptDataError(fault.label, detail, position=position)


def _read_record(payload: bytes, position: int, header: BatchHeader) -> tuple[Record, int, int]:
    """Return a record, its offset delta, and its size with the length in front of it."""
    body_size, length_size = read_varint(payload, position, len(payload))
    cursor = position + length_size
    end = cursor + body_size
    if body_size < 0 or end > len(payload):
        raise _MalformedError(f"{body_size} bytes long, {len(payload) - cursor} are left")
    cursor += 1  # attributes: no bit of a record's own has a meaning
    timestamp_delta, size = read_varlong(payload, cursor, end)
    cursor += size
    offset_delta, size = read_varint(payload, cursor, end)
    cursor += size
    key, cursor = _read_bytes(payload, cursor, end)
    value, cursor = _read_bytes(payload, cursor, end)
    headers, cursor = _read_headers(payload, cursor, end)
    if cursor != end:
        raise _MalformedError(f"{end - cursor} of its bytes belong to nothing")
    if header.timestamp_type == LOG_APPEND_TIME:
        timestamp = header.max_timestamp_ms
    else:
        timestamp = wrapped_int64(header.base_timestamp_ms + timestamp_delta)
    sequence = NO_VALUE
    if header.base_sequence >= 0:
        sequence = wrapped_sequence(header.base_sequence + offset_delta)
    record = Record(
        offset=wrapped_int64(header.base_offset + offset_delta),
        timestamp_ms=timestamp,
        timestamp_type=header.timestamp_type,
        key=key,
        value=value,
        headers=headers,
        sequence=sequence,
    )
    return record, offset_delta, end - position


def _read_bytes(payload: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    """Length-prefixed bytes, or None for any negative length; and where they end."""
    length, size = read_varint(payload, position, end)
    start = position + size
    if length < 0:
        return None, start
    if start + length > end:
        raise _MalformedError(f"a field of {length} bytes, the record has {end - start} left")
    return payload[start : start + length], start + length


def _read_headers(payload: bytes, position: int, end: int) -> tuple[tuple[RecordHeader, ...], int]:
    count, size = read_varint(payload, position, end)
    position += size
    if not 0 <= count <= end - position:
        raise _MalformedError(f"{count} headers in {end - position} bytes")
    if count > MOST_HEADERS:
        raise _TooManyHeadersError(f"{count} headers, {MOST_HEADERS} is the most that is read")
    headers: list[RecordHeader] = []
    for _ in range(count):
        key, position = _read_bytes(payload, position, end)
        if key is None:
            raise _MalformedError("a header without a key")
        value, position = _read_bytes(payload, position, end)
        headers.append((decoded(key), value))
    return tuple(headers), position


def write_records(records: Sequence[Record], base_offset: int, base_timestamp_ms: int) -> bytes:
    """Return the records' bytes, uncompressed, with deltas from the given bases."""
    return b"".join(_write_record(record, base_offset, base_timestamp_ms) for record in records)


def _write_record(record: Record, base_offset: int, base_timestamp_ms: int) -> bytes:
    parts = [
        b"\x00",
        write_varint(wrapped_int64(record.timestamp_ms - base_timestamp_ms)),
        write_varint(record.offset - base_offset),
        _write_bytes(record.key),
        _write_bytes(record.value),
        write_varint(len(record.headers)),
    ]
    for name, value in record.headers:
        parts += (_write_bytes(name.encode("utf-8")), _write_bytes(value))
    body = b"".join(parts)
    return write_varint(len(body)) + body


def _write_bytes(value: bytes | None) -> bytes:
    return write_varint(-1) if value is None else write_varint(len(value)) + value
