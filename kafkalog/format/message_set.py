"""Messages of format 0 and 1, plain and as the inner messages of a compressed wrapper.

Rules: docs/format.md F40 to F48.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafkalog.errors import CorruptDataError
from kafkalog.format import batch_header as layout
from kafkalog.format.batch_header import (
    BatchHeader,
    computed_crc,
    read_header,
    read_length,
    wrapped_int64,
)
from kafkalog.format.faults import Fault
from kafkalog.format.records import Record
from kafkalog.wire.checksums import crc32
from kafkalog.wire.compression import CompressionType, compress

_LENGTH = struct.Struct(">i")
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_CRC = struct.Struct(">I")
_TIMESTAMP = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class _Inner:
    header: BatchHeader
    key: bytes | None
    value: bytes | None
    position: int = 0


def _corrupt(fault: Fault, detail: str, position: int) -> CorruptDataError:
    return CorruptDataError(fault.label, detail, position=position)


def read_key_and_value(
    data: bytes, position: int, header: BatchHeader
) -> tuple[bytes | None, bytes | None]:
    """Return the two fields of the message at `position`; in a wrapper the value is the payload."""
    end = position + header.size
    key, cursor = _read_field(
        data, position + layout.LEGACY_FIELDS_START[header.magic], end, position
    )
    value, cursor = _read_field(data, cursor, end, position)
    if cursor != end:
        detail = f"{end - cursor} bytes of the message belong to nothing"
        raise _corrupt(Fault.RECORDS, detail, position)
    return key, value


def _read_field(data: bytes, cursor: int, end: int, position: int) -> tuple[bytes | None, int]:
    if cursor + _LENGTH.size > end:
        raise _corrupt(Fault.RECORDS, "the message ends inside a length", position)
    (length,) = _LENGTH.unpack_from(data, cursor)
    cursor += _LENGTH.size
    if length < 0:
        return None, cursor
    if cursor + length > end:
        detail = f"a field of {length} bytes, the message has {end - cursor} left"
        raise _corrupt(Fault.RECORDS, detail, position)
    return data[cursor : cursor + length], cursor + length


def read_plain_message(data: bytes, position: int, header: BatchHeader) -> list[Record]:
    """Return the one record of an uncompressed message."""
    key, value = read_key_and_value(data, position, header)
    return [Record(header.base_offset, header.max_timestamp_ms, header.timestamp_type, key, value)]


def read_inner_messages(
    payload: bytes, wrapper: BatchHeader, expected_offset: int, *, check_crcs: bool
) -> list[Record]:
    """Return the records inside a wrapper whose decompressed value is `payload`.

    `expected_offset` is the least that the first of them can have: the end of the batch before.
    """
    messages = _split_inner(payload, check_crcs=check_crcs)
    if not messages:
        raise _corrupt(Fault.RECORD_COUNT, "a compressed message without inner messages", 0)
    base = _base_of_inner_offsets(messages[-1].header.base_offset, wrapper)
    records = [_inner_record(message, base, wrapper) for message in messages]
    previous = expected_offset - 1
    for record in records:
        if record.offset <= previous:
            detail = f"inner offset {record.offset} after {previous}"
            raise _corrupt(Fault.RECORD_OFFSETS, detail, 0)
        previous = record.offset
    if wrapper.magic == 0 and previous != wrapper.base_offset:
        detail = f"last inner offset {previous}, the wrapper says {wrapper.base_offset}"
        raise _corrupt(Fault.RECORD_OFFSETS, detail, 0)
    return records


def inner_message_spans(
    payload: bytes, wrapper: BatchHeader
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the inner messages of a sound wrapper: where each begins and ends in its decompressed
    value, its offset and its time."""
    messages = _split_inner(payload, check_crcs=False)
    base = _base_of_inner_offsets(messages[-1].header.base_offset, wrapper)
    for each in messages:
        record = _inner_record(each, base, wrapper)
        end = each.position + each.header.size
        yield each.position, end, record.offset, record.timestamp_ms


def _split_inner(payload: bytes, *, check_crcs: bool) -> list[_Inner]:
    messages: list[_Inner] = []
    position = 0
    # An incomplete message at the end is dropped, as Java's reader does.
    while len(payload) - position >= layout.LOG_OVERHEAD:
        length = read_length(payload, position)
        if length < layout.LEAST_LENGTH[0]:
            raise _corrupt(Fault.RECORDS, f"an inner message of length {length}", position)
        if length > len(payload) - position - layout.LOG_OVERHEAD:
            break
        magic = payload[position + layout.MAGIC_POSITION]
        if magic > 1 or length < layout.LEAST_LENGTH[magic]:
            detail = f"an inner message of magic {magic} and length {length}"
            raise _corrupt(Fault.RECORDS, detail, position)
        header = read_header(payload, position)
        if header.compression_id:
            raise _corrupt(Fault.RECORDS, "an inner message that is itself compressed", position)
        if check_crcs and computed_crc(payload, position, header) != header.crc:
            detail = f"inner message {len(messages)} does not match its checksum"
            raise _corrupt(Fault.INNER_CHECKSUM, detail, position)
        messages.append(_Inner(header, *read_key_and_value(payload, position, header), position))
        position += header.size
    return messages


def _base_of_inner_offsets(last_inner: int, wrapper: BatchHeader) -> int:
    """Return what to add to an inner offset. Format 1 counts from 0 inside a wrapper that has the
    last offset; wrappers of offset 0 come from old clients and count absolutely."""
    if wrapper.magic == 0 or wrapper.base_offset == 0:
        return 0
    if wrapper.base_offset < last_inner:
        detail = f"inner offset {last_inner} in a wrapper of offset {wrapper.base_offset}"
        raise _corrupt(Fault.RECORD_OFFSETS, detail, 0)
    return wrapped_int64(wrapper.base_offset - last_inner)


def _inner_record(message: _Inner, base: int, wrapper: BatchHeader) -> Record:
    header = message.header
    if header.magic == 0:
        timestamp, timestamp_type = layout.NO_VALUE, layout.NO_TIMESTAMP_TYPE
    elif wrapper.timestamp_type == layout.LOG_APPEND_TIME:
        timestamp, timestamp_type = wrapper.max_timestamp_ms, layout.LOG_APPEND_TIME
    else:
        timestamp, timestamp_type = header.max_timestamp_ms, wrapper.timestamp_type
    offset = wrapped_int64(base + header.base_offset)
    return Record(offset, timestamp, timestamp_type, message.key, message.value)


def write_old_message(
    offset: int,
    magic: int,
    key: bytes | None,
    value: bytes | None,
    *,
    timestamp_ms: int = layout.NO_VALUE,
    attributes: int = 0,
) -> bytes:
    """Return one message of format 0 or 1 with its offset, length and checksum."""
    fields = _TIMESTAMP.pack(timestamp_ms) if magic == 1 else b""
    body = bytes((magic, attributes)) + fields + _write_field(key) + _write_field(value)
    checked = _CRC.pack(crc32(body)) + body
    return _OFFSET_AND_LENGTH.pack(offset, len(checked)) + checked


def _write_field(field: bytes | None) -> bytes:
    return _LENGTH.pack(-1) if field is None else _LENGTH.pack(len(field)) + field


def write_message_set(
    records: Sequence[Record], magic: int, compression: CompressionType = CompressionType.NONE
) -> bytes:
    """Return the records as messages of format 0 or 1; compressed, as one wrapper with the last
    offset.

    A LogAppendTime wrapper has the records' timestamp and its inner messages keep theirs.
    """
    log_append_time = magic == 1 and records[0].timestamp_type == layout.LOG_APPEND_TIME
    attributes = layout.LOG_APPEND_TIME_BIT if log_append_time else 0
    if compression is CompressionType.NONE:
        return b"".join(_write_plain(record, magic, attributes, 0) for record in records)
    base = records[0].offset if magic == 1 else 0
    inner = b"".join(_write_plain(record, magic, 0, base) for record in records)
    return write_old_message(
        records[-1].offset,
        magic,
        None,
        compress(compression, magic, inner),
        timestamp_ms=max(record.timestamp_ms for record in records),
        attributes=attributes | compression & layout.COMPRESSION_BITS,
    )


def _write_plain(record: Record, magic: int, attributes: int, base_offset: int) -> bytes:
    return write_old_message(
        record.offset - base_offset,
        magic,
        record.key,
        record.value,
        timestamp_ms=record.timestamp_ms,
        attributes=attributes,
    )
