"""Which batches of a log are of aborted transactions. Rules: docs/format.md F210 to F213.

A batch's transaction ends with its producer's next marker, wherever that is: a reader of part of a
log looks ahead from there, and never has to know what came before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from operator import attrgetter

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.columns.transactions.transaction_markers import (
    MarkerWalk,
    is_transactional,
    offsets_of,
)
from kafkalog.errors import CorruptDataError
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET, OffsetSpan
from kafkalog.format.side_files.indexes import AbortedTransaction, read_transaction_index
from kafkalog.storage.files.files import read_bytes
from kafkalog.storage.partition_log import PartitionLog, SegmentFile

# A segment's aborted transactions by producer, in their order.
_Aborted = dict[int, list[AbortedTransaction]]


class Outcome(IntEnum):
    """What became of the transaction that a batch is part of."""

    NOT_ABORTED = 0
    ABORTED = 1
    UNKNOWN = 2  # damage hides the marker, or may hide it


class TransactionOutcomes:
    """Tells aborted batches of the offsets below a log's last stable offset.

    `walks` are of the log itself and, after it, of its replicas, which are read where damage in
    those before may hide a marker.
    """

    def __init__(self, walks: Sequence[MarkerWalk]) -> None:
        self._walks = walks

    def leave_out_aborted(self, table: LongArray, first_offset: int, end_offset: int) -> None:
        """Make the table's aborted batches ones without records, and set the fault of those
        whose outcome is unknown. Only batches that reach into [first_offset, end_offset) matter."""
        table[self.is_aborted(table, first_offset, end_offset), column.RECORDS_COUNT] = 0

    def is_aborted(self, table: LongArray, first_offset: int, end_offset: int) -> BoolArray:
        """Return which batches of the table are aborted; sets the fault of those whose outcome is
        unknown. Only batches that reach into [first_offset, end_offset) matter."""
        is_aborted = np.zeros(len(table), dtype=np.bool_)
        is_requested = (table[:, column.LAST_OFFSET] >= first_offset) & (
            table[:, column.RECORDS_COUNT] != 0
        )
        rows = np.flatnonzero(is_transactional(table, control=False) & is_requested)
        rows = rows[table[rows, column.BASE_OFFSET] < end_offset]
        if len(rows):
            outcomes = self._outcomes(
                table[rows, column.PRODUCER_ID].tolist(), table[rows, column.LAST_OFFSET].tolist()
            )
            is_aborted[rows] = outcomes == Outcome.ABORTED
            table[rows[outcomes == Outcome.UNKNOWN], column.FAULT] = Fault.TRANSACTION
        return is_aborted

    def _outcomes(self, producers: list[int], offsets: list[int]) -> LongArray:
        """Return the outcomes of batches by the offsets they end with, which rise."""
        outcomes = np.full(len(offsets), Outcome.UNKNOWN, dtype=np.int64)
        for walk in self._walks:
            unknown = np.flatnonzero(outcomes == Outcome.UNKNOWN).tolist()
            walk.look_for({producers[row]: offsets[row] for row in unknown})
            found = _Outcomes(walk)
            for row in unknown:
                outcomes[row] = found.of(producers[row], offsets[row])
        return outcomes


class _Outcomes:
    """The outcomes by one log, as far as it has been walked now."""

    def __init__(self, walk: MarkerWalk) -> None:
        self._walk = walk
        self._indexes: dict[str, _Aborted | None] = {}

    def of(self, producer_id: int, offset: int) -> Outcome:
        """Return what became of the batch that ends with an offset."""
        end, is_abort = self._walk.end_after(producer_id, offset)
        is_lost = _overlaps(self._walk.lost, offset, end)
        if is_lost or _overlaps(self._walk.damages, offset, end):
            return self._by_indexes(producer_id, offset, end, is_lost=is_lost)
        if end == LARGEST_OFFSET:
            return Outcome.UNKNOWN
        return Outcome.ABORTED if is_abort else Outcome.NOT_ABORTED

    def _by_indexes(self, producer_id: int, offset: int, end: int, *, is_lost: bool) -> Outcome:
        """Return what the transaction indexes say, those of the segments with damage or the marker.
        That a transaction was not aborted none says of a part of the log that no file has."""
        # A damaged batch, sound in another replica, can be of a transaction that is still open.
        is_open = end == LARGEST_OFFSET and _overlaps(self._walk.damages, offset, offset + 1)
        is_unknown = is_lost or is_open
        for segment in self._walk.segments:
            start, next_base_offset = offsets_of(segment)
            if next_base_offset <= offset or start > end:
                continue
            has_marker = start <= end < next_base_offset
            part = max(offset, start), min(end, next_base_offset)
            if not has_marker and not _overlaps(self._walk.damages, *part):
                continue
            aborted = self._index(segment)
            if aborted is None:
                is_unknown = True
            elif _is_in(aborted.get(producer_id, ()), offset):
                return Outcome.ABORTED
        return Outcome.UNKNOWN if is_unknown else Outcome.NOT_ABORTED

    def _index(self, segment: SegmentFile) -> _Aborted | None:
        if segment.path not in self._indexes:
            self._indexes[segment.path] = _sound_index(self._walk, segment)
        return self._indexes[segment.path]


def _is_in(aborted: Sequence[AbortedTransaction], offset: int) -> bool:
    """Return whether a producer's batch that ends with an offset is of one of its aborted
    transactions."""
    number = bisect_right(aborted, offset, key=attrgetter("last_offset"))
    return number < len(aborted) and aborted[number].first_offset <= offset


def _overlaps(spans: Sequence[OffsetSpan], offset: int, end: int) -> bool:
    """Return whether one of the spans, which are in order, lies between a batch and a marker."""
    number = bisect_right(spans, offset, key=attrgetter("end"))
    return number < len(spans) and spans[number].start < end


def _sound_index(walk: MarkerWalk, segment: SegmentFile) -> _Aborted | None:
    """Return the segment's transaction index; None if it is missing, damaged, or lacks an abort
    that the log has, and if it is empty: brokers write one with its first abort, and a crash can
    leave it so."""
    path = segment.path.removesuffix(".log") + ".txnindex"
    try:
        entries = read_transaction_index(read_bytes(path))
    except (FileNotFoundError, CorruptDataError):
        return None
    start, end = offsets_of(segment)
    lasts = [entry.last_offset for entry in entries]
    is_sound = all(
        entry.first_offset < entry.last_offset and start <= entry.last_offset < end
        for entry in entries
    ) and lasts == sorted(set(lasts))
    known = {(entry.producer_id, entry.last_offset) for entry in entries}
    if not entries or not is_sound or not walk.aborts_in(segment) <= known:
        return None
    aborted: _Aborted = {}
    for entry in entries:
        aborted.setdefault(entry.producer_id, []).append(entry)
    return aborted


@contextmanager
def transaction_outcomes(
    logs: Sequence[tuple[PartitionLog, int]],
    requested: OffsetSpan,
    end_offset: int,
    *,
    check_crcs: bool,
) -> Iterator[TransactionOutcomes]:
    """The outcomes of the batches in a range, by logs and by up to where each of them counts;
    `end_offset` is where the log ended when its last stable offset was found. Files that are open
    are closed at the end."""
    walks = [
        MarkerWalk(log, requested, end_offset, agreed_end, check_crcs=check_crcs)
        for log, agreed_end in logs
    ]
    try:
        yield TransactionOutcomes(walks)
    finally:
        for walk in walks:
            walk.close()
