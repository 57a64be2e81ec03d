"""What damage stays in what a broker serves once it has started, and where consumers stop at it.

A broker that was stopped cleanly checks nothing, and any other only what lies after the recovery
point; records it never checks. What it serves, consumers check. Rule: docs/format.md F128.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafkalog.columns.batches.byte_ranges import VALID, ByteRange
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import MAGICS, V2_HEADER_BYTES
from kafkalog.format.faults import Fault, Severity
from kafkalog.format.record_batch import MAX_BATCH_BYTES, decompressed_payload, read_batch
from kafkalog.format.records import consumed_records
from kafkalog.storage.partition_log import SegmentFile
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.recovery.framing import Frame, Readable, check_sum, frames

# Findings of `kafkalog check`, as it lists them by default.
_COUNTED = (Severity.ERROR.name.lower(), Severity.WARNING.name.lower())
# Consumers take offsets as they come, and a batch however large.
_NO_HINDRANCE = {
    fault.label
    for fault in (Fault.OFFSET_RANGE, Fault.OFFSET_ORDER, Fault.RECORD_OFFSETS, Fault.TOO_LARGE)
}


@dataclass(frozen=True, slots=True)
class ServedSegment:
    """A segment's file up to where the broker has it once it runs, and the ranges of it."""

    segment: SegmentFile
    end: int
    ranges: list[ByteRange]

    def faults(self, log_start: int) -> list[ByteRange]:
        """Return the ranges with findings that hold, or may hold, offsets from the log start on."""
        following: object = self.segment.next_base_offset
        found: list[ByteRange] = []
        for row in reversed(self.ranges):
            is_sound = row["verdict"] == VALID
            # Of a damaged batch its own header is part of what cannot be believed.
            end = int(str(row["last_offset"])) + 1 if is_sound and row["length"] else following
            if row.get("severity") in _COUNTED and (end is None or int(str(end)) > log_start):
                found.append(row)
            if is_sound and row["length"]:
                following = row["base_offset"]
        return found[::-1]


def cleaning_stops_at(served: Sequence[ServedSegment], log_start: int) -> str | None:
    """Return the first damage at which the cleaner gives a log up: in the frame of a batch, and not
    in the last segment, which it does not clean. It verifies no checksum. Rule: docs/format.md
    F1196."""
    for each in served[:-1]:
        for row in each.faults(log_start):
            is_hindrance = row["verdict"] != VALID and row["kind"] not in _NO_HINDRANCE
            if is_hindrance and row["kind"] != Fault.CHECKSUM.label:
                return f"{each.segment.path}: {row['kind']} at position {row['position']}"
    return None


def consumers_stop_at(
    served: Sequence[ServedSegment], log_start: int, log_end: int | None
) -> int | None:
    """Return the offset that no consumer gets past; None if all get to the end of the log."""
    for each in served:
        faulty = [
            row
            for row in each.faults(log_start)
            if row["verdict"] != VALID and row["kind"] not in _NO_HINDRANCE
        ]
        if not faulty:
            continue
        with opened_segment(each.segment) as file:
            walk = _Walk(file, each.end, log_start)
            stop = walk.stop(faulty)
        is_last = each is served[-1]
        if stop is None and is_last and log_end is not None and walk.next_offset < log_end:
            # The broker finds no whole batch, nor a segment to go on with: the consumer waits.
            stop = walk.next_offset
        if stop is not None:
            return max(stop, log_start)
    return None


class _Walk:
    """Goes through a segment's batches as a broker frames them and a consumer checks them."""

    def __init__(self, file: Readable, end: int, log_start: int) -> None:
        self._file = file
        self._end = end
        self._log_start = log_start
        self.next_offset = 0

    def stop(self, faulty: Iterable[ByteRange]) -> int | None:
        """Return where a consumer stops, from the first of these ranges on; None if it gets to the
        end of what the broker finds in the segment."""
        first = next(iter(faulty))
        self.next_offset = int(str(first["expected_offset"]))
        try:
            for frame in frames(self._file, int(str(first["position"])), self._end):
                if frame.header.last_offset >= self._log_start:
                    unread = self._first_unread(frame)
                    if unread is not None:
                        return unread
                self.next_offset = frame.header.last_offset + 1
        except CorruptDataError:
            return self.next_offset
        return None

    def _first_unread(self, frame: Frame) -> int | None:
        header = frame.header
        if header.magic not in MAGICS or (header.magic == 2 and header.size < V2_HEADER_BYTES):
            return self.next_offset
        check_sum(self._file, frame)
        if header.size > MAX_BATCH_BYTES:
            return None
        data = self._file.read(frame.position, header.size)
        try:
            if header.magic == 2:
                unread = consumed_records(decompressed_payload(data, 0), header).stop
                return None if unread is None else max(unread, self.next_offset)
            read_batch(data, 0, expected_offset=self.next_offset)
        except CorruptDataError as error:
            return None if error.fault in _NO_HINDRANCE else self.next_offset
        return None
