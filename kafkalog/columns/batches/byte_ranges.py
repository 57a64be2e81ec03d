"""The account of a segment's bytes: view `byte_ranges`, schemas/tables/byte_ranges.json.

Every byte of the file is in exactly one row: a run of sound batches, or one damaged range. A sound
batch with an oddity has a row of its own; a hole up to the next segment, or up to where
the log had come, is a row of length 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.fault_details import (
    FaultyRange,
    faulty_range,
    has_remark,
    missing_end,
    remark,
    segment_hole,
)
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.faults import Fault
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.storage.reading.log_bounds import RecordedEnd
from kafkalog.words import counted

LEAST_TIME, LARGEST_TIME = "least_timestamp_ms", "max_timestamp_ms"
VALID, FAULTY, TRAILING = "valid", "faulty", "trailing"
_SUMS = ("length", "batches", "records")
_TAILS = (Fault.TRUNCATED, Fault.ZEROS, Fault.GARBAGE)

ByteRange = dict[str, object]


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What is known of a segment beside its bytes."""

    file_size: int
    unreadable: UnreadableRanges
    base_offset: int | None = None
    next_base_offset: int | None = None
    is_compacted: bool = False
    recorded_end: RecordedEnd | None = None


class ByteRanges:
    """Collects the ranges of one segment, chunk by chunk."""

    def __init__(self, segment: SegmentFacts) -> None:
        self._segment = segment
        self._run: ByteRange | None = None  # sound batches, to which more may be added
        self._tail: list[ByteRange] = []  # damage that is a tail if nothing follows
        self._next_offset = segment.base_offset

    def rows(self, table: LongArray) -> Iterator[ByteRange]:
        """Yield the ranges that are complete once these rows of the batch table are known."""
        odd = np.flatnonzero((table[:, column.FAULT] != 0) | has_remark(table))
        start = 0
        for index in [*odd.tolist(), len(table)]:
            if start < index:
                yield from self._settled_tail(FAULTY)
                self._extend_run(table[start:index])
            if index < len(table):
                yield from self._odd(table[index : index + 1])
            start = index + 1

    @property
    def run(self) -> ByteRange | None:
        """The sound batches to which more may be added; None after damage, and without any."""
        return None if self._tail else self._run

    def add_run(self, run: ByteRange) -> None:
        """Add sound batches that another walk has found right after the ones before."""
        last_offset = run["last_offset"]
        if self._run is not None:
            sums = {name: self._run[name] + run[name] for name in _SUMS}  # type: ignore[operator]
            run = {**self._run, **sums, "last_offset": last_offset, **united_times(self._run, run)}
        self._run = run
        self._next_offset = last_offset + 1  # type: ignore[operator]

    def last_rows(self) -> Iterator[ByteRange]:
        """Yield what is left at the end of the file."""
        yield from self._settled_run()
        yield from self._settled_tail(TRAILING)
        if self._segment.file_size == 0:
            yield {"position": 0, "length": 0, "verdict": VALID, "batches": 0, "records": 0}
        if self._next_offset is not None:
            yield from self._hole(self._next_offset)
        yield from missing_end_rows(
            self._next_offset or 0, self._segment.file_size, self._segment.recorded_end
        )

    def _extend_run(self, batches: LongArray) -> None:
        self.add_run(
            {
                "position": int(batches[0, column.POSITION]),
                "verdict": VALID,
                "base_offset": int(batches[0, column.BASE_OFFSET]),
                "expected_offset": int(batches[0, column.EXPECTED_OFFSET]),
                "length": int(batches[:, column.SIZE].sum()),
                "batches": len(batches),
                "records": int(batches[:, column.RECORDS_COUNT].sum()),
                "last_offset": int(batches[-1, column.LAST_OFFSET]),
                **_times(batches),
            }
        )

    def _odd(self, batch: LongArray) -> Iterator[ByteRange]:
        row = batch[0].tolist()
        yield from self._settled_run()
        if row[column.FAULT] == 0:
            yield from self._settled_tail(FAULTY)
            self._next_offset = row[column.LAST_OFFSET] + 1
            sound = _byte_range(remark(row), VALID, records=row[column.RECORDS_COUNT], batches=1)
            yield sound | _times(batch)
            return
        ends_file = row[column.POSITION] + row[column.SIZE] == self._segment.file_size
        # Without a batch, or a name with an offset, nothing shows that it is the end of a log.
        is_last = self._segment.next_base_offset is None and self._next_offset is not None
        damage = faulty_range(row, self._segment.unreadable, ends_log=ends_file and is_last)
        if damage.fault in _TAILS:
            self._tail.append(_byte_range(damage, FAULTY, records=0, batches=0))
            return
        yield from self._settled_tail(FAULTY)
        yield _byte_range(damage, FAULTY, records=0, batches=row[column.IS_BATCH])

    def _settled_run(self) -> Iterator[ByteRange]:
        if self._run is not None:
            yield self._run
        self._run = None

    def _settled_tail(self, verdict: str) -> Iterator[ByteRange]:
        for row in self._tail:
            yield {**row, "verdict": verdict}
        self._tail.clear()

    def _hole(self, next_offset: int) -> Iterator[ByteRange]:
        segment = self._segment
        hole = segment_hole(
            next_offset,
            segment.next_base_offset,
            segment.file_size,
            is_compacted=segment.is_compacted,
        )
        if hole is not None:
            yield _byte_range(hole, VALID, records=0, batches=0)


def missing_end_rows(
    next_offset: int, file_size: int, recorded: RecordedEnd | None
) -> Iterator[ByteRange]:
    """Yield a row of length 0 where a log ends at `next_offset` and had gone on further, else
    none."""
    missing = missing_end(next_offset, file_size, recorded)
    if missing is not None:
        yield _byte_range(missing, VALID, records=0, batches=0)


def united_times(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the least and the largest time of two ranges; None where neither has any."""
    found: dict[str, int | None] = {}
    for name, chosen in ((LEAST_TIME, min), (LARGEST_TIME, max)):
        times = [each[name] for each in (one, other) if each.get(name) is not None]
        found[name] = chosen(times, default=None)
    return found


def _times(batches: LongArray) -> ByteRange:
    return {
        LEAST_TIME: column.least_timestamp(batches),
        LARGEST_TIME: column.latest_timestamp(batches),
    }


def _byte_range(fault: FaultyRange, verdict: str, *, records: int, batches: int) -> ByteRange:
    return {
        "position": fault.position,
        "length": fault.length,
        "verdict": verdict,
        "severity": fault.severity.name.lower(),
        "kind": fault.fault.label,
        "detail": fault.detail,
        "batches": batches,
        "records": records,
        "base_offset": fault.base_offset,
        "last_offset": fault.last_offset,
        "expected_offset": fault.expected_offset,
        "stored_crc": fault.stored_crc,
        "computed_crc": fault.computed_crc,
    }


@dataclass
class CheckTotals:
    """How much was checked, and how much of it is damaged. `trailing_bytes` are after the last
    batch of a log and none themselves, `lost_logs` have no segment left; `damaged_snapshots` are
    those of the cluster's metadata with which a broker does not start."""

    segments: int = 0
    partitions: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0
    faulty_bytes: int = 0
    trailing_bytes: int = 0
    faults: int = 0
    warnings: int = 0
    damaged_segments: int = 0
    lost_logs: int = 0
    damaged_snapshots: int = 0

    def words(self) -> str:
        """Return one line: how much was checked, and whether it is sound."""
        checked = (
            f"checked {counted(self.segments, 'segment')} of "
            f"{counted(self.partitions, 'partition')}, {counted(self.bytes, 'byte')}, "
            f"{counted(self.batches, 'batch')}, {counted(self.records, 'record')}"
        )
        remarks = f", {counted(self.warnings, 'warning')}" if self.warnings else ""
        if self.faults:
            return (
                f"DAMAGED: {counted(self.faults, 'fault')} in {self._places()}{remarks}, "
                f"{counted(self.faulty_bytes, 'byte')} faulty, {self.trailing_bytes:,} trailing; "
                f"{checked}"
            )
        tail = f", {counted(self.trailing_bytes, 'byte')} unfinished" if self.trailing_bytes else ""
        return f"sound{remarks}{tail}: {checked}"

    def _places(self) -> str:
        """Return what has faults."""
        places = [counted(self.damaged_segments, "segment")]
        if self.lost_logs:
            places.append(f"{counted(self.lost_logs, 'log')} without one")
        if self.damaged_snapshots:
            places.append(counted(self.damaged_snapshots, "metadata snapshot"))
        return " and ".join(places)
