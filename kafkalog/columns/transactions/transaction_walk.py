"""The transactions of a partition, from its batch headers. Rules: docs/format.md F210 to F215."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.batches.fault_details import faulty_range
from kafkalog.columns.batches.segment_batches import SegmentBatches, SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.transactions.transaction_markers import is_transactional, marker_of
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import CONTROL_BIT, DELETE_HORIZON_BIT, LOG_APPEND_TIME_BIT
from kafkalog.format.faults import Severity
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.producer_snapshot import ProducerEntry
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.log_snapshots import newest_snapshot, snapshot_entries
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.reading.transactions import (
    OpenTransactions,
    PartitionTransaction,
    last_stable_offset,
)


class TransactionWalk:
    """Follows the transactions of a log from `start_offset` on, where `entries` were its producers.
    Of those that begin at `until_offset` or later only the markers count.

    Payloads are not read unless checksums are to be checked. Iterate over `ended()` once. Then
    `still_open` are those without a marker, `log_end` is the offset after the last sound batch,
    `damages` are the places where a marker may be hidden, and `ends_damaged` says that there is
    damage after that batch.
    """

    def __init__(
        self,
        log: PartitionLog,
        start_offset: int = 0,
        entries: Sequence[ProducerEntry] = (),
        *,
        check_crcs: bool = False,
        until_offset: int = LARGEST_OFFSET,
    ) -> None:
        self._log = log
        self._walk_class = SegmentBatches if check_crcs else SegmentHeaders
        self._start_offset = start_offset
        self._until_offset = until_offset
        self.still_open = OpenTransactions(entries)
        self.log_end = log_bounds(log, EndRule.LOG_END).start_offset
        self.damages: list[CorruptDataError] = []
        self.ends_damaged = False

    def ended(self) -> Iterator[PartitionTransaction]:
        """Yield the transactions that have a marker, in the order of their markers."""
        for segment in self._log.segments:
            next_base_offset = segment.next_base_offset
            if next_base_offset is not None and next_base_offset <= self._start_offset:
                continue
            with opened_segment(segment) as file:
                batches = self._walk_class(FileWindow(file), SegmentOptions.of(segment))
                for chunk in batches.chunks():
                    yield from self._in_table(file, chunk.table)
                    self._note_damage(file, segment, chunk.table)
            self.log_end = max(self.log_end, batches.next_offset)

    def _in_table(self, file: InputFile, table: LongArray) -> Iterator[PartitionTransaction]:
        is_data = is_transactional(table, control=False)
        is_data &= table[:, column.LAST_OFFSET] < self._until_offset
        wanted = is_data | is_transactional(table, control=True)
        wanted &= table[:, column.LAST_OFFSET] >= self._start_offset
        for row in table[wanted].tolist():
            if not row[column.ATTRIBUTES] & CONTROL_BIT:
                self._add_data(file, row)
            else:
                try:
                    marker = marker_of(file, row)
                except CorruptDataError as error:
                    self.damages.append(_located(file, row, error.fault, error.detail))
                    continue
                if marker is not None:
                    ended = self.still_open.end(
                        row[column.PRODUCER_ID],
                        row[column.PRODUCER_EPOCH],
                        row[column.BASE_OFFSET],
                        marker,
                    )
                    ended.marker_file = file.path
                    yield ended

    def _add_data(self, file: InputFile, row: list[int]) -> None:
        found = self.still_open.of(row[column.PRODUCER_ID], row[column.PRODUCER_EPOCH])
        if found.first_offset is None:
            found.first_offset, found.file = row[column.BASE_OFFSET], file.path
            found.first_timestamp_ms = _first_timestamp(row)
        found.producer_epoch = row[column.PRODUCER_EPOCH]
        found.last_offset = row[column.LAST_OFFSET]
        found.last_timestamp_ms = row[column.MAX_TIMESTAMP]
        found.batches += 1
        found.records += row[column.RECORDS_COUNT]
        found.bytes += row[column.SIZE]

    def _note_damage(self, file: InputFile, segment: SegmentFile, table: LongArray) -> None:
        # Without its checksum only an end before its beginning shows that a header is damaged.
        is_sound = (table[:, column.FAULT] == 0) & (
            table[:, column.LAST_OFFSET] >= first_offsets(table)
        )
        last_sound = int(np.flatnonzero(is_sound).max(initial=-1))
        if last_sound >= 0:
            self.ends_damaged = False
        for number in np.flatnonzero(~is_sound).tolist():
            row = table[number].tolist()
            is_damage = not row[column.FAULT] or self._is_damage(file, segment, row)
            self.ends_damaged |= is_damage and number > last_sound

    def _is_damage(self, file: InputFile, segment: SegmentFile, row: list[int]) -> bool:
        ends_log = (
            row[column.POSITION] + row[column.SIZE] == file.size
            and segment.next_base_offset is None
        )
        fault = faulty_range(row, file.unreadable, ends_log=ends_log)
        if fault.severity < Severity.ERROR:
            return False
        self.damages.append(_located(file, row, fault.fault.label, fault.detail))
        return True


def _located(file: InputFile, row: list[int], fault: str, detail: str) -> CorruptDataError:
    # Zeros, garbage and unreadable bytes have no offset.
    base_offset = row[column.BASE_OFFSET] if row[column.IS_BATCH] else None
    return CorruptDataError(
        fault, detail, position=row[column.POSITION], path=file.path, base_offset=base_offset
    )


def _first_timestamp(row: list[int]) -> int:
    """Return the first record's timestamp if a header shows it: the base timestamp can differ."""
    has_no_base = row[column.ATTRIBUTES] & (LOG_APPEND_TIME_BIT | DELETE_HORIZON_BIT)
    return row[column.MAX_TIMESTAMP if has_no_base else column.BASE_TIMESTAMP]


@dataclass(frozen=True, slots=True)
class StableOffset:
    """The last stable offset of a log, and what keeps it from `end_offset`.

    That is the high watermark, or the log end where `high_watermark` is None, not being known.
    `holders` are the open transactions, the oldest first. `damage` is the first place after the
    newest sound snapshot that may hide the end of one. `ends_damaged` says that headers show damage
    at the end of the log: it may have continued."""

    offset: int
    end_offset: int
    high_watermark: int | None
    holders: tuple[PartitionTransaction, ...] = ()
    damage: CorruptDataError | None = None
    ends_damaged: bool = False

    @property
    def read_end(self) -> int:
        """Up to where committed records are read: where nothing but damage keeps from the end, as
        far as everybody reads, so that the damage is reported or another replica has what it
        hides."""
        if self.offset < self.end_offset or not self.ends_damaged:
            return self.offset
        return LARGEST_OFFSET if self.high_watermark is None else self.high_watermark


def stable_offset(
    log: PartitionLog, *, looks_for_damage: bool = True, past_end: int | None = None
) -> StableOffset:
    """Return the last stable offset of a log: from the newest sound producer snapshot and the batch
    headers after it, or from all headers if there is no snapshot (F214). To look for damage takes
    another pass with checksums where a transaction is open. With `past_end` it is that of the time
    when the log ended there (F1322)."""
    if past_end is not None:
        return _past_stable_offset(log, past_end)
    start = log_bounds(log, EndRule.LOG_END).start_offset
    high_watermark = log_bounds(log, EndRule.HIGH_WATERMARK).end_offset
    if not log.segments:
        return StableOffset(start, start, high_watermark)
    entries = None if high_watermark is None else snapshot_entries(log, high_watermark)
    if high_watermark is not None and entries is not None:
        # A clean shutdown left the producers as they are at the end.
        return _stable(start, high_watermark, high_watermark, OpenTransactions(entries), [], None)
    # After a snapshot from before the log begins, markers were deleted with their segments; one
    # from above the high watermark has forgotten what ended there.
    first, last = (log.segments[number].base_offset or 0 for number in (0, -1))
    last = last if high_watermark is None else min(last, high_watermark)
    taken = newest_snapshot(log, first, last)
    offset, entries = taken or (0, [])
    walk = TransactionWalk(log, offset, entries)
    above = [
        ended
        for ended in walk.ended()
        if high_watermark is not None and (ended.marker_offset or 0) >= high_watermark
    ]
    end = walk.log_end if high_watermark is None else min(high_watermark, walk.log_end)
    is_held = looks_for_damage and walk.still_open.by_producer
    damage = _first_damage(log, offset) if is_held else None
    stable = _stable(start, end, high_watermark, walk.still_open, above, damage)
    return replace(stable, ends_damaged=walk.ends_damaged)


def _past_stable_offset(log: PartitionLog, end: int) -> StableOffset:
    """Return the last stable offset that a log had when it ended at an offset."""
    if not log.segments:
        return StableOffset(end, end, None)
    first, last = (log.segments[number].base_offset or 0 for number in (0, -1))
    offset, entries = newest_snapshot(log, first, min(last, end)) or (0, [])
    walk = TransactionWalk(log, offset, entries, until_offset=end)
    above = [
        ended
        for ended in walk.ended()
        if ended.first_offset is not None and (ended.marker_offset or 0) >= end
    ]
    holders = [*walk.still_open.by_producer.values(), *above]
    damage = _first_damage(log, offset) if holders else None
    start = log_bounds(log, EndRule.LOG_END).start_offset
    stable = last_stable_offset(end, walk.still_open, above)
    holders.sort(key=lambda found: found.first_offset or 0)
    return StableOffset(max(start, stable), end, None, tuple(holders), damage)


def _first_damage(log: PartitionLog, start_offset: int) -> CorruptDataError | None:
    """Return what checksums show about the place where the end of an open transaction may be."""
    walk = TransactionWalk(log, start_offset, check_crcs=True)
    for _ in walk.ended():
        if walk.damages:
            break
    return walk.damages[0] if walk.damages else None


def _stable(
    start: int,
    end: int,
    high_watermark: int | None,
    still_open: OpenTransactions,
    above: list[PartitionTransaction],
    damage: CorruptDataError | None,
) -> StableOffset:
    holders = sorted(still_open.by_producer.values(), key=lambda found: found.first_offset or 0)
    offset = max(start, last_stable_offset(end, still_open, above))
    return StableOffset(offset, max(start, end), high_watermark, tuple(holders), damage)
