"""Whole batches of any format: header and payload into records, and records into bytes.

Rules: docs/format.md F10 to F31.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkalog.errors import CorruptDataError
from kafkalog.format import batch_header as layout
from kafkalog.format.batch_header import BatchHeader, read_header, read_length
from kafkalog.format.faults import Fault
from kafkalog.format.message_set import read_inner_messages, read_key_and_value, read_plain_message
from kafkalog.format.records import Record, read_records, write_records
from kafkalog.wire.checksums import crc32c
from kafkalog.wire.compression import (
    CompressionError,
    CompressionType,
    OutputTooSmallError,
    compress,
    decompress_into,
)

# The most bytes that one batch may have, stored or decompressed. Brokers allow 1 MiB by
# default; the limit keeps a hostile batch from taking all memory.
MAX_BATCH_BYTES = 128 * 1024 * 1024
_FIRST_GUESS = 1024 * 1024
_LATEST_COMPRESSION = (CompressionType.LZ4, CompressionType.LZ4, CompressionType.ZSTD)


def framing_fault(data: bytes, position: int) -> tuple[Fault, BatchHeader | None]:
    """Return what keeps the bytes at `position` from being a whole batch, or its header."""
    left = len(data) - position
    if left < layout.FIRST_BYTES:
        return Fault.TRUNCATED, None
    magic = data[position + layout.MAGIC_POSITION]
    if magic not in layout.MAGICS:
        return Fault.MAGIC, None
    length = read_length(data, position)
    if length < layout.LEAST_LENGTH[magic]:
        return Fault.LENGTH, None
    if length > left - layout.LOG_OVERHEAD:
        return Fault.TRUNCATED, None
    return Fault.NONE, read_header(data, position)


def read_batch(
    data: bytes,
    position: int,
    *,
    expected_offset: int = 0,
    check_crcs: bool = True,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> list[Record]:
    """Return the records of the sound batch at `position`, in offset order.

    `check_crcs` concerns the messages inside a compressed message of format 0 or 1; whether the
    batch's own checksum is right is the caller's question. Raises CorruptDataError whose position
    is the batch's.
    """
    header = read_header(data, position)
    try:
        if header.magic < 2 and not header.compression_id:
            return read_plain_message(data, position, header)
        payload = decompressed_payload(data, position, max_batch_bytes=max_batch_bytes)
        if header.magic == 2:
            return read_records(payload, header)
        return read_inner_messages(payload, header, expected_offset, check_crcs=check_crcs)
    except CorruptDataError as error:
        raise CorruptDataError(
            error.fault, error.detail, position=position, base_offset=header.base_offset
        ) from error


def decompressed_payload(
    data: bytes, position: int, *, max_batch_bytes: int = MAX_BATCH_BYTES
) -> bytes:
    """Return the records' bytes of a batch v2, or the inner message set of a wrapper,
    decompressed."""
    header = read_header(data, position)
    end = position + header.size
    if header.magic == 2:
        stored: bytes | None = data[position + layout.V2_HEADER_BYTES : end]
    else:
        _, stored = read_key_and_value(data, position, header)
    if header.magic == 2 and header.records_count < 0:
        detail = f"a record count of {header.records_count}"
        raise CorruptDataError(Fault.RECORD_COUNT.label, detail, position=position)
    if header.magic == 2 and header.records_count == 0:
        return b""  # not looked at, whatever it holds
    if header.compression_id > _LATEST_COMPRESSION[header.magic]:
        detail = f"compression codec {header.compression_id} in format {header.magic}"
        raise CorruptDataError(Fault.CODEC.label, detail, position=position)
    if stored is None:
        detail = "a compressed message without a value"
        raise CorruptDataError(Fault.RECORD_COUNT.label, detail, position=position)
    compression = CompressionType(header.compression_id)
    if compression is CompressionType.NONE:
        return stored
    return _decompressed(compression, header.magic, stored, position, max_batch_bytes)


def _decompressed(
    compression: CompressionType, magic: int, stored: bytes, position: int, limit: int
) -> bytes:
    room = min(max(_FIRST_GUESS, 8 * len(stored)), limit)
    while True:
        output = memoryview(bytearray(room))
        try:
            size = decompress_into(compression, magic, memoryview(stored), output)
            return bytes(output[:size])
        except OutputTooSmallError:
            if room == limit:
                detail = f"decompresses to more than {limit} bytes"
                raise CorruptDataError(Fault.TOO_LARGE.label, detail, position=position) from None
            room = min(4 * room, limit)
        except CompressionError as error:
            raise CorruptDataError(
                Fault.COMPRESSION.label, str(error), position=position
            ) from error


@dataclass(frozen=True, slots=True)
class BatchFields:
    """What a batch v2 says beyond its records. None lets the writer derive the value."""

    leader_epoch: int = 0
    producer_id: int = layout.NO_VALUE
    producer_epoch: int = layout.NO_VALUE
    base_sequence: int = layout.NO_VALUE
    is_transactional: bool = False
    is_control: bool = False
    delete_horizon_ms: int | None = None
    compression: CompressionType = CompressionType.NONE
    timestamp_type: int = 0
    base_offset: int | None = None
    last_offset: int | None = None
    max_timestamp_ms: int | None = None


def write_batch(records: Sequence[Record], fields: BatchFields = BatchFields()) -> bytes:
    """Return a record batch v2. Without records, `fields` must give base and last offset."""
    base_offset = records[0].offset if fields.base_offset is None else fields.base_offset
    last_offset = records[-1].offset if fields.last_offset is None else fields.last_offset
    base_timestamp = records[0].timestamp_ms if records else layout.NO_VALUE
    if fields.delete_horizon_ms is not None:
        base_timestamp = fields.delete_horizon_ms
    max_timestamp = fields.max_timestamp_ms
    if max_timestamp is None:
        max_timestamp = max((record.timestamp_ms for record in records), default=layout.NO_VALUE)
    payload = write_records(records, base_offset, base_timestamp)
    compression = fields.compression if records else CompressionType.NONE
    payload = compress(compression, 2, payload)
    header = layout.V2_HEADER.pack(
        base_offset,
        layout.V2_HEADER_BYTES - layout.LOG_OVERHEAD + len(payload),
        fields.leader_epoch,
        2,
        0,
        _attributes(fields, compression),
        last_offset - base_offset,
        base_timestamp,
        max_timestamp,
        fields.producer_id,
        fields.producer_epoch,
        fields.base_sequence,
        len(records),
    )
    return with_checksum(header + payload)


def emptied_batch(header: BatchHeader) -> bytes:
    """Return what the cleaner leaves of a batch v2 without any of its records: the header, with
    the offsets, the producer's sequence and the largest time that it had. Rules: F247, F1101."""
    fields = BatchFields(
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        timestamp_type=header.timestamp_type,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        max_timestamp_ms=header.max_timestamp_ms,
    )
    return write_batch((), fields)


def _attributes(fields: BatchFields, compression: CompressionType) -> int:
    attributes = int(compression)
    if fields.timestamp_type == layout.LOG_APPEND_TIME:
        attributes |= layout.LOG_APPEND_TIME_BIT
    if fields.is_transactional:
        attributes |= layout.TRANSACTIONAL_BIT
    if fields.is_control:
        attributes |= layout.CONTROL_BIT
    if fields.delete_horizon_ms is not None:
        attributes |= layout.DELETE_HORIZON_BIT
    return attributes


def with_checksum(batch: bytes) -> bytes:
    """Return a batch v2 with its checksum set right."""
    crc = crc32c(batch[layout.V2_CHECKSUM_START :])
    return batch[: layout.CRC_POSITION] + crc.to_bytes(4, "big") + batch[layout.V2_CHECKSUM_START :]
