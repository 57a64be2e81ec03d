"""What is wrong with a range of bytes, in words and with how much it matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import COMPRESSION_BITS, USED_ATTRIBUTES
from kafkalog.format.faults import Fault, Severity
from kafkalog.format.records import MOST_HEADERS
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import RecordedEnd, recorded_end, with_files

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

    def line(self, path: str) -> str:
        """Return a line about the range of the file at a path."""
        place = f"{path}: position {self.position}, {self.length} bytes"
        return f"{place}: {self.fault.label}: {self.detail}"


def _count(row: _Row) -> str:
    if row[column.MAGIC] < 2:
        return "a compressed message without inner messages"
    announced = f"the header announces {row[column.RECORDS_COUNT]} records"
    if row[column.RECORDS_COUNT] < 0:
        return announced
    return f"{announced}, the payload holds another number"


def _offsets(row: _Row) -> str:
    return f"offsets {row[column.BASE_OFFSET]} to {row[column.LAST_OFFSET]}"


_DETAILS: dict[Fault, Callable[[_Row], str]] = {
    Fault.TRUNCATED: lambda row: "the file ends inside a batch",
    Fault.ZEROS: lambda row: "zero bytes: preallocated, or a block that was never written",
    Fault.GARBAGE: lambda row: "bytes that are not a batch",
    Fault.LENGTH: lambda row: "the length of the batch leads nowhere",
    Fault.MAGIC: lambda row: "a batch of unknown magic; no checksum covers that byte",
    Fault.CHECKSUM: lambda row: (
        f"stored {row[column.CRC]:#010x}, computed {row[column.COMPUTED_CRC]:#010x}"
    ),
    Fault.TOO_LARGE: lambda row: (
        "larger than maxBatchBytes, stored or decompressed, or a record with more than "
        f"{MOST_HEADERS} headers"
    ),
    Fault.CODEC: lambda row: (
        f"compression codec {row[column.ATTRIBUTES] & COMPRESSION_BITS} "
        f"in format {row[column.MAGIC]}"
    ),
    Fault.COMPRESSION: lambda row: "the checksum is right and the payload cannot be decompressed",
    Fault.RECORD_COUNT: _count,
    Fault.RECORDS: lambda row: "the checksum is right and a record in the batch is malformed",
    Fault.RECORD_OFFSETS: lambda row: "offsets inside the batch go back or leave it",
    Fault.INNER_CHECKSUM: lambda row: "an inner message does not match its own checksum",
    Fault.OFFSET_RANGE: lambda row: f"{_offsets(row)} do not belong into this segment",
    Fault.OFFSET_ORDER: lambda row: (
        f"{_offsets(row)} overlap or go back; {row[column.EXPECTED_OFFSET]} or later was due"
    ),
    Fault.TRANSACTION: lambda row: (
        f"{_offsets(row)} are of a transaction of producer {row[column.PRODUCER_ID]}, "
        "and damage further on may hide whether it was aborted"
    ),
}


def faulty_range(row: _Row, unreadable: UnreadableRanges, *, ends_log: bool) -> FaultyRange:
    """Return the fault of a batch table's row, as a list of integers, whose FAULT is set.

    `unreadable` are the file's bytes that could not be read.
    `ends_log`: the range reaches the end of the last segment. A batch that is cut short there, or
    zeros, are what a broker leaves when it stops while writing, or preallocates: no damage.
    """
    fault = Fault(row[column.FAULT])
    severity = fault.severity
    if ends_log and fault in (Fault.TRUNCATED, Fault.ZEROS):
        severity = Severity.INFORMATION
    if fault is Fault.UNREADABLE:
        detail = unreadable.words(row[column.POSITION], row[column.POSITION] + row[column.SIZE])
    else:
        detail = _DETAILS[fault](row)
    return _range(row, fault, severity, detail)


def missing_end(next_offset: int, file_size: int, end: RecordedEnd | None) -> FaultyRange | None:
    """Return what is missing where a log ends at `next_offset`, and had gone on further by the
    checkpoints beside it, by indexes or by producer snapshots; None if nothing is. Rules:
    docs/format.md F76 and F922."""
    if end is None:
        return None
    end = with_files(end, next_offset)
    next_offset = max(next_offset, end.snapshot_end)
    if next_offset >= end.offset:
        return None
    source = "indexes or producer snapshots" if end.is_by_files else "checkpoints"
    return FaultyRange(
        position=file_size,
        length=0,
        fault=Fault.MISSING_END,
        severity=Severity.ERROR if end.is_clean else Severity.WARNING,
        detail=f"offsets {next_offset} to {end.offset - 1} are missing: the {source} beside the "
        f"log say that it went on to {end.offset}",
        expected_offset=next_offset,
        base_offset=next_offset,
        last_offset=end.offset - 1,
    )


def lost_end(log: PartitionLog, log_end: int) -> CorruptDataError | None:
    """Return the error for a log that ends at `log_end`, if that is damage: after a clean stop the
    records up to the recorded end were there."""
    return lost_records(log, log_end, Severity.ERROR)


def lost_records(
    log: PartitionLog, log_end: int, least: Severity = Severity.WARNING
) -> CorruptDataError | None:
    """Return the error for what is missing after `log_end` by the files beside a log; None if
    nothing is, or if that is milder than `least`."""
    last = log.segments[-1] if log.segments else None
    missing = missing_end(log_end, last.size if last else 0, recorded_end(log))
    if missing is None or missing.severity < least:
        return None
    path = last.path if last else log.path
    return CorruptDataError(
        missing.fault.label, missing.detail, position=missing.position, path=path
    )


def segment_hole(
    next_offset: int, next_base: int | None, file_size: int, *, is_compacted: bool
) -> FaultyRange | None:
    """Return the offsets between the end of a segment and the next one's base, None being no next
    one; None if there are none. Rule: docs/format.md F73."""
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


def has_remark(table: LongArray) -> BoolArray:
    """Return which rows of a batch table are odd, so that `remark` has something to say about
    them."""
    unused = ~np.array(USED_ATTRIBUTES)[table[:, column.MAGIC]]
    odd: BoolArray = (table[:, column.LEADER_EPOCH_FAULT] != 0) | (
        table[:, column.ATTRIBUTES] & unused != 0
    )
    return odd


def remark(row: _Row) -> FaultyRange:
    """Return what is odd about a sound batch, the weightier thing first."""
    details: list[str] = []
    fault = Fault.RESERVED_ATTRIBUTES
    if row[column.LEADER_EPOCH_FAULT]:
        fault = Fault.LEADER_EPOCH
        details.append(
            f"leader epoch {row[column.LEADER_EPOCH]} is out of order; no checksum covers it"
        )
    if row[column.ATTRIBUTES] & ~USED_ATTRIBUTES[row[column.MAGIC]]:
        attributes = row[column.ATTRIBUTES] & 0xFFFF
        details.append(f"attributes {attributes:#06x} with bits that Kafka gives no meaning")
    return _range(row, fault, fault.severity, "; ".join(details))


def _range(row: _Row, fault: Fault, severity: Severity, detail: str) -> FaultyRange:
    is_batch = bool(row[column.IS_BATCH])
    has_crc = is_batch and row[column.COMPUTED_CRC] >= 0
    return FaultyRange(
        position=row[column.POSITION],
        length=row[column.SIZE],
        fault=fault,
        severity=severity,
        detail=detail,
        expected_offset=row[column.EXPECTED_OFFSET],
        base_offset=row[column.BASE_OFFSET] if is_batch else None,
        last_offset=row[column.LAST_OFFSET] if is_batch else None,
        stored_crc=row[column.CRC] if is_batch else None,
        computed_crc=row[column.COMPUTED_CRC] if has_crc else None,
    )
