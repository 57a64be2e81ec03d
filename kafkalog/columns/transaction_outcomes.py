"""Which batches of a log are of aborted transactions. Rules: docs/format.md F210 to F213.

A batch's transaction ends with its producer's next marker, wherever that is: a reader of part of a
log looks ahead from there, and never has to know what came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

import numpy as np

from kafkalog.columns.batch_table import (
    BASE_OFFSET,
    FAULT,
    LAST_OFFSET,
    PRODUCER_ID,
    RECORDS_COUNT,
)
from kafkalog.columns.compiled import LongArray
from kafkalog.columns.transaction_markers import MarkerWalk, is_transactional
from kafkalog.errors import CorruptDataError
from kafkalog.format.faults import Fault
from kafkalog.format.indexes import AbortedTransaction, read_transaction_index
from kafkalog.format.segment import LARGEST_OFFSET
from kafkalog.storage.files import read_bytes
from kafkalog.storage.log_dir import PartitionLog, SegmentFile
from kafkalog.storage.replicas import OffsetSpan


class Outcome(IntEnum):
    """What became of the transaction that a batch is part of."""

    NOT_ABORTED = 0
    ABORTED = 1
    UNKNOWN = 2  # damage hides the marker, or may hide it


class TransactionOutcomes:
    """Tells aborted batches of the offsets below a log's last stable offset.

    `walks` are of the log itself and, behind it, of its replicas, which are asked where damage in
    those before may hide a marker.
    """

    def __init__(self, walks: Sequence[MarkerWalk]) -> None:
        self._walks = walks

    def leave_out_aborted(self, table: LongArray, first_offset: int, end_offset: int) -> None:
        """Make the table's aborted batches ones without records, and set the fault of those of
        which nobody can tell. Only batches that reach into [first_offset, end_offset) matter."""
        is_asked = (table[:, LAST_OFFSET] >= first_offset) & (table[:, RECORDS_COUNT] != 0)
        rows = np.flatnonzero(is_transactional(table, control=False) & is_asked)
        rows = rows[table[rows, BASE_OFFSET] < end_offset]
        if not len(rows):
            return
        outcomes = self._outcomes(table[rows, PRODUCER_ID], table[rows, LAST_OFFSET])
        table[rows[outcomes == Outcome.ABORTED], RECORDS_COUNT] = 0
        table[rows[outcomes == Outcome.UNKNOWN], FAULT] = Fault.TRANSACTION

    def _outcomes(self, producers: LongArray, offsets: LongArray) -> LongArray:
        outcomes = np.full(len(offsets), Outcome.UNKNOWN, dtype=np.int64)
        for walk in self._walks:
            unknown = np.flatnonzero(outcomes == Outcome.UNKNOWN)
            if not len(unknown):
                break
            outcomes[unknown] = _outcomes(walk, producers[unknown], offsets[unknown])
        return outcomes


def _outcomes(walk: MarkerWalk, producers: LongArray, offsets: LongArray) -> LongArray:
    """The outcomes by one log. Offsets rise."""
    last_offsets = dict(zip(producers.tolist(), offsets.tolist(), strict=True))
    walk.look_for(last_offsets)
    outcomes = np.zeros(len(offsets), dtype=np.int64)
    for producer_id in last_offsets:
        rows = np.flatnonzero(producers == producer_id)
        ends, aborted = walk.ends_after(producer_id, offsets[rows])
        outcomes[rows] = np.where(aborted, Outcome.ABORTED, Outcome.NOT_ABORTED)
        if walk.damages:
            for row, end in zip(rows.tolist(), ends.tolist(), strict=True):
                offset = int(offsets[row])
                if _is_damaged(walk, offset, end):
                    outcomes[row] = _by_indexes(walk, producer_id, offset, end)
    return outcomes


def _is_damaged(walk: MarkerWalk, offset: int, end: int) -> bool:
    return any(damage.start < end and damage.end > offset for damage in walk.damages)


def _by_indexes(walk: MarkerWalk, producer_id: int, offset: int, end: int) -> Outcome:
    """What the transaction indexes say, those of the segments with damage or the marker."""
    for segment in walk.segments:
        start, follower = segment.base_offset or 0, segment.next_base_offset or LARGEST_OFFSET
        if follower <= offset or start > end:
            continue
        has_marker = start <= end < follower
        if not has_marker and not _is_damaged(walk, max(offset, start), min(end, follower)):
            continue
        entries = _sound_index(walk, segment)
        if entries is None:
            return Outcome.UNKNOWN
        if any(
            entry.producer_id == producer_id and entry.first_offset <= offset < entry.last_offset
            for entry in entries
        ):
            return Outcome.ABORTED
    return Outcome.NOT_ABORTED


def _sound_index(walk: MarkerWalk, segment: SegmentFile) -> list[AbortedTransaction] | None:
    """The segment's transaction index; None if it is missing, damaged, or lacks an abort that the
    log has."""
    try:
        entries = read_transaction_index(
            read_bytes(segment.path.removesuffix(".log") + ".txnindex")
        )
    except (FileNotFoundError, CorruptDataError):
        return None
    start, end = segment.base_offset or 0, segment.next_base_offset or LARGEST_OFFSET
    lasts = [entry.last_offset for entry in entries]
    is_sound = all(
        entry.first_offset < entry.last_offset and start <= entry.last_offset < end
        for entry in entries
    ) and lasts == sorted(set(lasts))
    known = {(entry.producer_id, entry.last_offset) for entry in entries}
    return entries if is_sound and walk.aborts_in(segment) <= known else None


@contextmanager
def transaction_outcomes(
    logs: Sequence[PartitionLog], asked: OffsetSpan, stable_offset: int, *, check_crcs: bool
) -> Iterator[TransactionOutcomes]:
    """The outcomes of the batches in a range that lies below `stable_offset`; files that are open
    are closed at the end."""
    walks = [MarkerWalk(log, asked, stable_offset, check_crcs=check_crcs) for log in logs]
    try:
        yield TransactionOutcomes(walks)
    finally:
        for walk in walks:
            walk.close()
