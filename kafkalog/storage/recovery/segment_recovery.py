"""What a broker makes of a segment's file when it loads a log: how far it reads batches, what it
checks of them, and the indexes it rebuilds. Rules: docs/format.md F113 to F116."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import FIRST_BYTES, MAGIC_POSITION, NO_VALUE, BatchHeader
from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.format.side_files.indexes import AbortedTransaction, OffsetEntry, TimeEntry
from kafkalog.format.side_files.leader_epochs import EpochStart, with_epoch
from kafkalog.format.transaction_marker import ABORT, COMMIT, TransactionMarker, read_marker
from kafkalog.storage.recovery.framing import LATEST_FORMAT, Frame, Readable, check_sum, frames
from kafkalog.storage.recovery.producer_state import (
    BrokerStartError,
    ProducerState,
    refuse_unreadable,
)

LARGEST_RELATIVE_OFFSET = 2**31 - 1


class InvalidOffsetError(Exception):
    """Offsets that cannot go into an index: a broker then empties the segment."""


class OffsetOverflowError(Exception):
    """An offset too far from the segment's base for its index: a broker splits the segment."""


@dataclass(slots=True)
class SegmentRecovery:
    """A segment after its recovery. `stop` says what ended it before the end of the file;
    `producers_end` is the offset up to which batches of format 2 went."""

    base_offset: int
    size: int
    valid_bytes: int = 0
    batches: int = 0
    next_offset: int | None = None
    producers_end: int | None = None
    stop: str | None = None
    latest: TimeEntry | None = None
    offset_entries: list[OffsetEntry] = field(default_factory=list)
    time_entries: list[TimeEntry] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)

    @property
    def truncated_bytes(self) -> int:
        return self.size - self.valid_bytes


def recover_segment(
    file: Readable,
    base_offset: int,
    producers: ProducerState,
    epochs: list[EpochStart],
    *,
    index_interval_bytes: int = INDEX_INTERVAL_BYTES,
) -> SegmentRecovery:
    """Recover a segment as a broker does; `producers` and `epochs` are brought up to date.

    Raises InvalidOffsetError where the broker would empty the segment, OffsetOverflowError where it
    would split it, and BrokerStartError where it would not start.
    """
    found = SegmentRecovery(base_offset, file.size)
    last_index_position = 0
    try:
        for frame in frames(file):
            header = frame.header
            check_sum(file, frame)
            _check_range(header, base_offset)
            latest_ms = found.latest.timestamp_ms if found.latest else NO_VALUE
            if header.max_timestamp_ms > latest_ms:
                found.latest = TimeEntry(header.max_timestamp_ms, header.last_offset)
            if frame.position - last_index_position > index_interval_bytes:
                _add_index_entries(found, frame)
                last_index_position = frame.position
            found.valid_bytes = frame.end
            found.batches += 1
            found.next_offset = header.last_offset + 1
            if header.magic >= LATEST_FORMAT:
                _add_epoch(epochs, header)
                aborted = add_to_producers(file, frame, producers)
                if aborted is not None:
                    found.aborted.append(aborted)
                found.producers_end = header.last_offset + 1
        if found.truncated_bytes:
            found.stop = "the file ends inside a batch"
    except CorruptDataError as error:
        refuse_unreadable(error)
        found.stop = f"{error.fault}: {error.detail}"
    if found.latest is not None:
        _add_time_entry(found, found.latest)
    return found


def _check_range(header: BatchHeader, base_offset: int) -> None:
    relative = header.last_offset - base_offset
    if relative < 0:
        raise BrokerStartError(
            f"a batch that ends at offset {header.last_offset} in the segment of {base_offset}"
        )
    if relative > LARGEST_RELATIVE_OFFSET:
        raise OffsetOverflowError(
            f"offset {header.last_offset} is too far from the segment's base {base_offset}"
        )


def _add_index_entries(found: SegmentRecovery, frame: Frame) -> None:
    offset = frame.header.last_offset
    if found.offset_entries and offset <= found.offset_entries[-1].offset:
        raise InvalidOffsetError(
            f"offset {offset} at position {frame.position} after {found.offset_entries[-1].offset}"
        )
    found.offset_entries.append(OffsetEntry(offset, frame.position))
    if found.latest is not None:
        _add_time_entry(found, found.latest)


def _add_time_entry(found: SegmentRecovery, latest: TimeEntry) -> None:
    entries = found.time_entries
    if entries and latest.offset < entries[-1].offset:
        raise InvalidOffsetError(f"offset {latest.offset} after {entries[-1].offset}")
    if latest.timestamp_ms > (entries[-1].timestamp_ms if entries else NO_VALUE):
        entries.append(latest)


def _add_epoch(epochs: list[EpochStart], header: BatchHeader) -> None:
    latest = epochs[-1].epoch if epochs else NO_VALUE
    if header.leader_epoch > latest:
        epochs[:] = with_epoch(epochs, EpochStart(header.leader_epoch, header.base_offset))


def add_to_producers(
    file: Readable, frame: Frame, producers: ProducerState
) -> AbortedTransaction | None:
    """Take note of a batch of format 2 or later; the transaction that it aborts, if it does.

    Raises as `recover_segment` does, and CorruptDataError for a control batch without a marker.
    """
    # Whatever the magic, a broker takes such a batch for one of format 2.
    header = replace(frame.header, magic=LATEST_FORMAT)
    if header.producer_id <= NO_VALUE:
        return None
    if not header.is_control:
        producers.add_data_batch(header)
    elif header.records_count:
        return producers.add_marker(header, _read_marker(file, frame))
    return None


def _read_marker(file: Readable, frame: Frame) -> TransactionMarker:
    data = file.read(frame.position, frame.header.size)
    known = data[:MAGIC_POSITION] + bytes([LATEST_FORMAT]) + data[FIRST_BYTES:]
    try:
        marker = read_marker(known)
    except CorruptDataError as error:
        if error.fault in ("codec", "compression"):
            raise BrokerStartError(f"control batch at {frame.position}: {error.detail}") from error
        raise
    if marker.type not in (ABORT, COMMIT):
        raise BrokerStartError(
            f"control batch of producer {frame.header.producer_id} at position {frame.position} "
            f"with a record of type {marker.type}"
        )
    return marker
