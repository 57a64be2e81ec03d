"""What is wrong with a range of bytes, in words and with how much it matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkalog.columns.batches.batch_table import (
    ATTRIBUTES,
    BASE_OFFSET,
    COMPUTED_CRC,
    CRC,
    EXPECTED_OFFSET,
    FAULT,
    IS_BATCH,
    LAST_OFFSET,
    LEADER_EPOCH,
    LEADER_EPOCH_FAULT,
    MAGIC,
    POSITION,
    PRODUCER_ID,
    RECORDS_COUNT,
    SIZE,
)
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import COMPRESSION_BITS, USED_ATTRIBUTES
from kafkalog.format.faults import Fault, Severity
from kafkalog.format.records import MOST_HEADERS
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import RecordedEnd, recorded_end, with_indexes

_Row = list[int]


@dataclass(frozen=True, slots=True)
class FaultyRange:
    """A range of a file that is not an ordinary sound batch. Offsets and checksums are None where
    the range has none."""

    position: int
    length: int
    fault: Fault
    severity: Severity
    detail: str
    expected_offset: int
    base_offset: int | None = None
    last_offset: int | None = None
    stored_crc: int | None = None
    computed_crc: int | None = None


def _count(row: _Row) -> str:
    if row[MAGIC] < 2:
        return "a compressed message without inner messages"
    if row[RECORDS_COUNT] < 0:
        return f"the header announces {row[RECORDS_COUNT]} records"
    return f"the header announces {row[RECORDS_COUNT]} records, the payload holds another number"


_DETAILS: dict[Fault, Callable[[_Row], str]] = {
    Fault.TRUNCATED: lambda row: "the file ends inside a batch",
    Fault.ZEROS: lambda row: "zero bytes: preallocated, or a block that was never written",
    Fault.GARBAGE: lambda row: "bytes that are not a batch",
    Fault.LENGTH: lambda row: "the length of the batch leads nowhere",
    Fault.MAGIC: lambda row: "a batch of unknown magic; no checksum covers that byte",
    Fault.CHECKSUM: lambda row: f"stored {row[CRC]:#010x}, computed {row[COMPUTED_CRC]:#010x}",
    Fault.TOO_LARGE: lambda row: (
        "larger than maxBatchBytes, stored or decompressed, or a record with more than "
        f"{MOST_HEADERS} headers"
    ),
    Fault.CODEC: lambda row: (
        f"compression codec {row[ATTRIBUTES] & COMPRESSION_BITS} in format {row[MAGIC]}"
    ),
    Fault.COMPRESSION: lambda row: "the checksum is right and the payload cannot be decompressed",
    Fault.RECORD_COUNT: _count,
    Fault.RECORDS: lambda row: "the checksum is right and a record in the batch is malformed",
    Fault.RECORD_OFFSETS: lambda row: "offsets inside the batch go back or leave it",
    Fault.INNER_CHECKSUM: lambda row: "an inner message does not match its own checksum",
    Fault.OFFSET_RANGE: lambda row: (
        f"offsets {row[BASE_OFFSET]} to {row[LAST_OFFSET]} do not belong into this segment"
    ),
    Fault.OFFSET_ORDER: lambda row: (
        f"offsets {row[BASE_OFFSET]} to {row[LAST_OFFSET]} overlap or go back; "
        f"{row[EXPECTED_OFFSET]} or later was due"
    ),
    Fault.TRANSACTION: lambda row: (
        f"offsets {row[BASE_OFFSET]} to {row[LAST_OFFSET]} are of a transaction of producer "
        f"{row[PRODUCER_ID]}, and damage further on may hide whether it was aborted"
    ),
}


def faulty_range(row: _Row, unreadable: UnreadableRanges, *, ends_log: bool) -> FaultyRange:
    """The fault of a batch table's row, as a list of integers, whose FAULT is set.

    `unreadable` are the file's bytes that could not be read.
    `ends_log`: the range reaches the end of the last segment. A batch that is cut short there, or
    zeros, are what a broker leaves when it stops while writing, or preallocates: no damage.
    """
    fault = Fault(row[FAULT])
    severity = fault.severity
    if ends_log and fault in (Fault.TRUNCATED, Fault.ZEROS):
        severity = Severity.INFORMATION
    if fault is Fault.UNREADABLE:
        detail = unreadable.words(row[POSITION], row[POSITION] + row[SIZE])
    else:
        detail = _DETAILS[fault](row)
    return _range(row, fault, severity, detail)


def missing_end(next_offset: int, file_size: int, end: RecordedEnd | None) -> FaultyRange | None:
    """What is missing where a log ends at `next_offset`, and had gone on further by the checkpoints
    beside it or by indexes; None if nothing is. Rule: docs/format.md F76."""
    if end is None:
        return None
    end = with_indexes(end, next_offset)
    if next_offset >= end.offset:
        return None
    source = "indexes of the segment" if end.is_by_indexes else "checkpoints beside the log"
    return FaultyRange(
        position=file_size,
        length=0,
        fault=Fault.MISSING_END,
        severity=Severity.ERROR if end.is_clean else Severity.WARNING,
        detail=f"offsets {next_offset} to {end.offset - 1} are missing: the {source} say that it "
        f"went on to {end.offset}",
        expected_offset=next_offset,
        base_offset=next_offset,
        last_offset=end.offset - 1,
    )


def lost_end(log: PartitionLog, log_end: int) -> CorruptDataError | None:
    """Return the error for a log that ends at `log_end`, if that is damage: after a clean stop the
    records up to the recorded end were there."""
    last = log.segments[-1] if log.segments else None
    missing = missing_end(log_end, last.size if last else 0, recorded_end(log))
    if missing is None or missing.severity < Severity.ERROR:
        return None
    path = last.path if last else log.path
    return CorruptDataError(
        missing.fault.label, missing.detail, position=missing.position, path=path
    )


def segment_hole(
    next_offset: int, next_base: int | None, file_size: int, *, is_compacted: bool
) -> FaultyRange | None:
    """The offsets between the end of a segment and the next one's base, None being no next one;
    None if there are none. Rule: docs/format.md F73."""
    if next_base is None or next_offset >= next_base:
        return None
    return FaultyRange(
        position=file_size,
        length=0,
        fault=Fault.SEGMENT_HOLE,
        severity=Severity.INFORMATION if is_compacted else Severity.WARNING,
        detail=f"offsets {next_offset} to {next_base - 1} are in no segment",
        expected_offset=next_offset,
        base_offset=next_offset,
        last_offset=next_base - 1,
    )


def remark(row: _Row) -> FaultyRange:
    """What is odd about a sound batch, the weightier thing first."""
    details: list[str] = []
    fault = Fault.RESERVED_ATTRIBUTES
    if row[LEADER_EPOCH_FAULT]:
        fault = Fault.LEADER_EPOCH
        details.append(f"leader epoch {row[LEADER_EPOCH]} is out of order; no checksum covers it")
    if row[ATTRIBUTES] & ~USED_ATTRIBUTES[row[MAGIC]]:
        attributes = row[ATTRIBUTES] & 0xFFFF
        details.append(f"attributes {attributes:#06x} with bits that Kafka gives no meaning")
    return _range(row, fault, fault.severity, "; ".join(details))


def _range(row: _Row, fault: Fault, severity: Severity, detail: str) -> FaultyRange:
    is_batch = bool(row[IS_BATCH])
    has_crc = is_batch and row[COMPUTED_CRC] >= 0
    return FaultyRange(
        position=row[POSITION],
        length=row[SIZE],
        fault=fault,
        severity=severity,
        detail=detail,
        expected_offset=row[EXPECTED_OFFSET],
        base_offset=row[BASE_OFFSET] if is_batch else None,
        last_offset=row[LAST_OFFSET] if is_batch else None,
        stored_crc=row[CRC] if is_batch else None,
        computed_crc=row[COMPUTED_CRC] if has_crc else None,
    )
