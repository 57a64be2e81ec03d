"""The commits of a partition of `__consumer_offsets` that count now, without a Python object for
each record in a transaction.

Of all records of a key that take effect the one with the highest offset counts, whenever the
markers come: a commit that waits takes effect only if no later record has (F301), and a tombstone
deletes all that wait before it (F302). Rules: docs/format.md F300 to F303 and F1435.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import of_values
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.columns.table_rows import TableRow, table_batch
from kafkalog.coordination.groups.offset_commits import Effect
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.groups import commit_kernels as kinds
from kafkalog.inspection.groups.commit_columns import CommitColumns, Commits, commit_keys
from kafkalog.inspection.groups.offset_commits import interpreted_commit, outcome_columns

# The place of a record that an earlier batch had.
_BEFORE = -1


class LatestCommits:
    """Takes the records of one partition of `__consumer_offsets`, as `CommitRows` does, and gives
    Arrow batches of the view's `columns`: of each key the last commit or tombstone that took effect
    and some that it replaces, which took effect before; at the end the commits that still wait.

    Memory grows with the distinct keys, 24 bytes of each, and with the commits of open
    transactions.
    """

    def __init__(
        self,
        high_watermark: int | None,
        constants: Mapping[str, str | int | None],
        columns: tuple[str, ...],
    ) -> None:
        self._high_watermark, self._constants, self._names = high_watermark, constants, columns
        self._columns = CommitColumns(high_watermark, constants, columns)
        self._keys = commit_keys()
        self._open: list[_Records] = []

    def batches(self, records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that these records decide."""
        for batch in records:
            yield from self._decided(Commits(batch, self._keys))

    def last_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield, at the end of the log, the commits whose transactions are open."""
        for each in self._open:
            nothing = np.full(len(each.rows), NO_VALUE)
            yield self._batch(each, Effect.OPEN, nothing, nothing)

    def _decided(self, commits: Commits) -> Iterator[pa.RecordBatch]:
        plain = self._understood(commits, commits.is_plain)
        self._keys.put(plain.hashes, plain.offsets)
        at_once, waiting = self._in_transactions(commits)
        markers = _Markers.of(commits)
        still_open: list[_Records] = []
        took_effect = [(each, each.offsets, each.times) for each in at_once]
        for each in (*waiting, *self._open):
            marker = markers.first_after(each.producers, each.places)
            is_committed = markers.is_commit[marker]
            by = marker[is_committed]
            took_effect.append((each.taken(is_committed), markers.offsets[by], markers.times[by]))
            still_open.append(each.taken(marker < 0))
        for each, *_ in took_effect:
            self._keys.put(each.hashes, each.offsets)
        last = plain.rows[self._is_last(plain)]
        if len(last):
            # Of many thousand records a few: the others' values are not looked at again.
            yield self._columns.batch(commits.only(last), np.arange(len(last)))
        for each, offsets, times in took_effect:
            is_last = self._is_last(each)
            if is_last.any():
                found = each.taken(is_last)
                yield self._batch(found, Effect.APPLIED, offsets[is_last], times[is_last])
        self._open = [*self._that_wait(still_open, (plain, *at_once))]

    def _is_last(self, records: _Records) -> BoolArray:
        """Return which records have the highest offset of their key."""
        is_last: BoolArray = self._keys.highest(records.hashes) == records.offsets
        return is_last

    def _in_transactions(self, commits: Commits) -> tuple[list[_Records], list[_Records]]:
        """Return the records that take effect at once, but for plain ones, and those that wait."""
        found = [self._understood(commits, commits.is_waiting)]
        if commits.is_unsure.any():
            found.append(self._interpreted(commits))
        at_once = [each.taken(each.are_at_once) for each in found]
        return at_once, [each.taken(~each.are_at_once) for each in found]

    def _understood(self, commits: Commits, chosen: BoolArray) -> _Records:
        rows = np.flatnonzero(chosen)
        return _Records(commits, (), rows, rows, commits.hashes[rows], commits.offsets[rows])

    def _interpreted(self, commits: Commits) -> _Records:
        """Return what the interpreter of messages can read of the records that kernels cannot."""
        places, rows, keys = [], [], []
        for place in np.flatnonzero(commits.is_unsure).tolist():
            (record,) = commits.records.slice(place, 1).to_pylist()
            read = interpreted_commit(record, self._high_watermark)
            if read is not None and read.key is not None:
                places.append(place)
                rows.append(read.row)
                keys.append(read.key)
        where = np.array(places, dtype=np.int64)
        hashes = self._keys.hashes_of(of_values(keys, pa.binary()))
        offsets = commits.offsets[where]
        return _Records(None, rows, np.arange(len(rows)), where, hashes, offsets)

    def _that_wait(
        self, still_open: Iterable[_Records], at_once: Iterable[_Records]
    ) -> Iterator[_Records]:
        """Yield the records that no tombstone of these has deleted, without the memory of the
        others."""
        deleted = None
        for each in still_open:
            if not len(each.rows):
                continue
            if deleted is None:
                deleted = self._keys.like()
                for some in at_once:
                    gone = some.taken(some.are_tombstones)
                    deleted.put(gone.hashes, gone.offsets)
            left = each.taken(deleted.highest(each.hashes) < each.offsets)
            if len(left.rows):
                yield left.kept()

    def _batch(
        self, records: _Records, effect: Effect, offsets: LongArray, times: LongArray
    ) -> pa.RecordBatch:
        """Return rows of records with what became of them, NO_VALUE for none."""
        if records.commits is not None:
            commits, rows = records.commits.only(records.rows), np.arange(len(records.rows))
            codes = np.full(len(rows), [*Effect].index(effect))
            outcomes = outcome_columns(commits, rows, codes, offsets, times)
            return self._columns.batch(commits, rows, outcomes)
        decided = zip(records.rows.tolist(), offsets.tolist(), times.tolist(), strict=True)
        found = [
            {
                **records.read[number],
                "effect": effect.value,
                "effective_offset": None if offset == NO_VALUE else offset,
                "effective_timestamp_ms": None if time_ms == NO_VALUE else time_ms,
            }
            for number, offset, time_ms in decided
        ]
        return table_batch("offset_commits", found, self._constants, self._names)


class _Records(NamedTuple):
    """Commits and tombstones: `rows` of `commits`, or of what the interpreter has `read`. `places`
    are those in their batch, `hashes` those of their keys, `offsets` their own."""

    commits: Commits | None
    read: Sequence[TableRow]
    rows: LongArray
    places: LongArray
    hashes: LongArray
    offsets: LongArray

    def taken(self, which: BoolArray) -> _Records:
        """Return some of them."""
        if which.all():
            return self
        numbers = (each[which] for each in self[2:])
        return _Records(self.commits, self.read, *numbers)

    def kept(self) -> _Records:
        """Return them for the batches that follow, without the memory of others."""
        before = np.full(len(self.rows), _BEFORE)
        if self.commits is None or len(self.rows) == len(self.commits.kinds):
            return self._replace(places=before)
        own = self.commits.only(self.rows)
        return self._replace(commits=own, rows=np.arange(len(self.rows)), places=before)

    @property
    def are_tombstones(self) -> BoolArray:
        if self.commits is None:
            return self._flags("is_tombstone")
        found: BoolArray = self.commits.kinds[self.rows] == kinds.TOMBSTONE
        return found

    @property
    def are_at_once(self) -> BoolArray:
        """Which take effect where they are."""
        if self.commits is not None:
            return self.are_tombstones
        return self.are_tombstones | ~self._flags("is_transactional")

    @property
    def producers(self) -> LongArray:
        return self._numbers("producerId", "producer_id")

    @property
    def times(self) -> LongArray:
        return self._numbers("timestampMs", "record_timestamp_ms")

    def _numbers(self, column: str, name: str) -> LongArray:
        """Return numbers of the records, NO_VALUE for none."""
        if self.commits is not None:
            return self.commits.numbers_of(column)[self.rows]
        found = (self.read[row][name] for row in self.rows.tolist())
        return np.array([NO_VALUE if each is None else each for each in found], dtype=np.int64)

    def _flags(self, name: str) -> BoolArray:
        return np.array([self.read[row][name] for row in self.rows.tolist()], dtype=np.bool_)


class _Markers(NamedTuple):
    """The ends of transactions in a batch of records, in their order. `is_commit` ends with False,
    for none."""

    producers: LongArray
    places: LongArray
    is_commit: BoolArray
    offsets: LongArray
    times: LongArray

    @classmethod
    def of(cls, commits: Commits) -> _Markers:
        places = np.flatnonzero(commits.is_marker)
        return cls(
            commits.numbers_of("producerId")[places],
            places,
            np.append(commits.kinds[places] == kinds.COMMIT_MARKER, False),
            commits.offsets[places],
            commits.numbers_of("timestampMs")[places],
        )

    def first_after(self, producers: LongArray, places: LongArray) -> LongArray:
        """Return the number of the first marker of each producer after a place, -1 without one."""
        if not len(self.places):
            return np.full(len(places), NO_VALUE)
        distinct, of_marker = np.unique(self.producers, return_inverse=True)
        own = np.minimum(np.searchsorted(distinct, producers), len(distinct) - 1)
        # One producer's markers after another's, each from the place before all on.
        span = int(self.places[-1]) + 2
        order = np.lexsort((self.places, of_marker))
        by_producer = (of_marker * span + self.places)[order]
        number = np.searchsorted(by_producer, own * span + places, side="right")
        found = order[np.minimum(number, len(order) - 1)]
        is_own = (self.producers[found] == producers) & (number < len(order))
        return np.where(is_own, found, NO_VALUE)
