"""Commits on their way from the partitions of `__consumer_offsets` to the logs they are about.

A task reads the one, another reads the other. What goes between them are blocks of numbers: of many
commits each, with the few different groups and partitions that these are of.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import (
    booleans,
    distinct_rows,
    fixed_width,
    integers,
    of_values,
    row_codes,
)
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.coordination.groups.group_records import GroupKey
from kafkalog.inspection.lag.history_rows import EVENT_KEY
from kafkalog.inspection.lag.lag_events import (
    DELETION_COLUMN,
    EVENT_COLUMN,
    EVENT_COLUMNS,
    NO_TIME,
    commits_that_took_effect,
)

_ORIGIN = ("broker_id", "input_path")
# Columns of view `offset_commits`.
HISTORY_COLUMNS = (*EVENT_COLUMNS, *_ORIGIN, "record_offset")
_LOG = ("topic", "partition")
# In the order in which rows are written.
_IN_ORDER = (*_LOG, "cluster_id", "internal_partition", "group_id")
# The time of the last known commit of a key's group, of any partition.
_GROUP_COMMIT_MS = "group_commit_ms"
# In columns of offsets: there is none.
NO_OFFSET = NO_TIME
_ROWS_PER_BLOCK = 2**18


# The numbers of a commit: which row of a block's keys it is of, when and with which record it took
# effect, and what its own record says.
(KEY, EFFECTIVE_OFFSET, EVENT_MS, COMMIT_MS, COMMITTED_OFFSET, RECORD_OFFSET, IS_DELETION) = range(
    7
)
_NUMBERS = 7


class CommitBlock(NamedTuple):
    """Some commits: `numbers` has a row for each number, and a column for each commit; `keys` are
    the groups' partitions that these are of, and in which input they were. A block without commits
    says what is known at the end: when the groups of the keys committed last."""

    keys: pa.Table
    numbers: LongArray

    def taken(self, commits: LongArray | slice) -> CommitBlock:
        """Return some of the commits; the keys stay."""
        return CommitBlock(self.keys, self.numbers[:, commits])


class LogCommits(NamedTuple):
    """All commits for one partition, those of each group one after another in their order.
    `sequence` is a number of the group, `group_commit_ms` the time of its last commit, of any
    partition, NO_TIME for none."""

    topic: str
    partition: int
    commits: CommitBlock
    sequence: LongArray
    group_commit_ms: LongArray

    @property
    def is_last(self) -> BoolArray:
        """Which commits are the last ones of their groups."""
        is_last: BoolArray = np.append(self.sequence[1:] != self.sequence[:-1], True)
        return is_last

    def taken(self, rows: BoolArray) -> LogCommits:
        """Return some of the commits."""
        return LogCommits(
            self.topic,
            self.partition,
            self.commits.taken(np.flatnonzero(rows)),
            self.sequence[rows],
            self.group_commit_ms[rows],
        )


def place_of(topic: str | None, partition: int | None, places: int) -> int:
    """Return which of so many tasks has the commits for a partition."""
    return zlib.crc32(f"{topic}-{partition}".encode("utf-8", "surrogateescape")) % places


class CommitBlocks:
    """Takes the rows of view `offset_commits` of whole partitions of `__consumer_offsets`, and
    gives those that took effect as blocks for each of `places`. Memory holds the commits of a
    block, and the different keys."""

    def __init__(
        self, until_ms: int, places: int, is_chosen: Callable[[str], bool] | None = None
    ) -> None:
        """Commits for topics that are not chosen are left out."""
        self._until_ms, self._places, self._is_chosen = until_ms, places, is_chosen
        # When the first and the last commit took effect, at times after 1970.
        self.span: tuple[int, int] | None = None
        self._waiting: list[pa.Table] = []
        self._keys: list[pa.Table] = []

    def add(self, batch: pa.RecordBatch) -> Iterator[tuple[int, CommitBlock]]:
        """Take rows, and yield the blocks that are full with their places."""
        rows = commits_that_took_effect(pa.Table.from_batches([batch]), self._until_ms)
        self._waiting.append(rows)
        self._widen_span(rows[EVENT_COLUMN])
        if sum(map(len, self._waiting)) >= _ROWS_PER_BLOCK:
            yield from self._blocks()

    def _widen_span(self, event_ms: pa.ChunkedArray) -> None:
        found = pc.min_max(event_ms.filter(pc.greater(event_ms, 0))).as_py()
        if found["min"] is not None:
            first, last = self.span or (found["min"], found["max"])
            self.span = min(first, found["min"]), max(last, found["max"])

    def last(self) -> Iterator[tuple[int, CommitBlock]]:
        """Yield what is left at the end."""
        yield from self._blocks()
        if not self._keys:
            return
        keys = pa.concat_tables(self._keys)
        groups = row_codes(keys.select(GroupKey._fields))
        last_ms = np.full(int(groups.max()) + 1, NO_TIME)
        np.maximum.at(last_ms, groups, _numbers(keys, _GROUP_COMMIT_MS))
        _, firsts = distinct_rows(keys.select(EVENT_KEY))
        of_group = last_ms[groups[firsts]]
        keys = _with_group_commits(keys.take(fixed_width(firsts, pa.int64())), of_group)
        yield from self._placed(CommitBlock(keys, np.zeros((_NUMBERS, 0), dtype=np.int64)))

    def _blocks(self) -> Iterator[tuple[int, CommitBlock]]:
        rows, self._waiting = self._waiting, []
        found = self._of_chosen_topics(pa.concat_tables(rows)) if rows else None
        if not found:
            return
        key, firsts = distinct_rows(found.select([*EVENT_KEY, *_ORIGIN]))
        keys = found.select([*EVENT_KEY, *_ORIGIN]).take(fixed_width(firsts, pa.int64()))
        commit_ms = _numbers(found, "commit_timestamp_ms")
        last_ms = np.full(len(firsts), NO_TIME)
        np.maximum.at(last_ms, key, commit_ms)
        self._keys.append(_with_group_commits(keys, last_ms))
        numbers = np.stack(
            [
                key,
                _numbers(found, "effective_offset"),
                _numbers(found, EVENT_COLUMN),
                commit_ms,
                _numbers(found, "committed_offset"),
                _numbers(found, "record_offset"),
                booleans(found[DELETION_COLUMN].combine_chunks()),
            ]
        )
        block = CommitBlock(_with_group_commits(keys, np.full(len(keys), NO_TIME)), numbers)
        yield from self._placed(block)

    def _of_chosen_topics(self, rows: pa.Table) -> pa.Table:
        if self._is_chosen is None:
            return rows
        topics = pc.unique(rows["topic"]).to_pylist()
        chosen = [topic for topic in topics if self._is_chosen(topic)]
        return rows.filter(pc.is_in(rows["topic"], of_values(chosen, pa.string())))

    def _placed(self, block: CommitBlock) -> Iterator[tuple[int, CommitBlock]]:
        """Yield the parts of a block, each with the keys of its place alone."""
        names = list(zip(*(block.keys[name].to_pylist() for name in _LOG), strict=True))
        places = {
            (topic, partition): place_of(topic, partition, self._places)
            for topic, partition in set(names)
        }
        place = np.array([places[name] for name in names])
        of_commits = place[block.numbers[KEY]]
        by_place = np.argsort(of_commits, kind="stable")
        borders = np.searchsorted(of_commits[by_place], np.arange(self._places + 1))
        own_number = np.zeros(len(place), dtype=np.int64)
        for number in np.unique(place).tolist():
            keys = np.flatnonzero(place == number)
            own_number[keys] = np.arange(len(keys))
            part = block.taken(by_place[borders[number] : borders[number + 1]])
            part.numbers[KEY] = own_number[part.numbers[KEY]]
            yield number, part._replace(keys=block.keys.take(fixed_width(keys, pa.int64())))


def commits_by_log(blocks: Sequence[CommitBlock]) -> Iterator[LogCommits]:
    """Yield all commits of blocks for one place, a partition after another in their order."""
    if not blocks:
        return
    keys = pa.concat_tables([block.keys for block in blocks])
    sequences, firsts = distinct_rows(keys.select(EVENT_KEY))
    different = keys.select(_IN_ORDER).take(fixed_width(firsts, pa.int64()))
    order = integers(
        pc.sort_indices(different, sort_keys=[(name, "ascending") for name in _IN_ORDER]).cast(
            pa.int64()
        )
    )
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    sequences = rank[sequences]
    group_ms = np.full(len(order), NO_TIME)
    np.maximum.at(group_ms, sequences, _numbers(keys, _GROUP_COMMIT_MS))
    begins = np.cumsum([0, *(len(block.keys) for block in blocks)])
    numbers = np.concatenate([block.numbers for block in blocks], axis=1)
    numbers[KEY] += np.repeat(begins[:-1], [block.numbers.shape[1] for block in blocks])
    sequence = sequences[numbers[KEY]]
    rows = np.lexsort((numbers[EFFECTIVE_OFFSET], sequence))
    sequence, every = sequence[rows], CommitBlock(keys, numbers[:, rows])
    for topic, partition, first, end in _logs(different.take(fixed_width(order, pa.int64()))):
        begin, stop = np.searchsorted(sequence, (first, end)).tolist()
        if stop > begin:
            own = sequence[begin:stop]
            part = every.taken(slice(begin, stop))
            yield LogCommits(topic, partition, part, own, group_ms[own])


def _logs(keys: pa.Table) -> Iterator[tuple[str, int, int, int]]:
    """Yield the partitions of keys that are in order, and up to which number each has its keys."""
    names = list(zip(*(keys[name].to_pylist() for name in _LOG), strict=True))
    begin = 0
    for end in range(1, len(names) + 1):
        if end == len(names) or names[end] != names[begin]:
            yield *names[begin], begin, end
            begin = end


def _numbers(rows: pa.Table, name: str) -> LongArray:
    """Return the numbers of a column, NO_TIME for null."""
    column = rows[name].combine_chunks()
    return integers(column.fill_null(NO_TIME) if column.null_count else column)


def _with_group_commits(keys: pa.Table, last_ms: LongArray) -> pa.Table:
    column = fixed_width(last_ms, pa.int64())
    if _GROUP_COMMIT_MS in keys.column_names:
        keys = keys.drop_columns([_GROUP_COMMIT_MS])
    return keys.append_column(_GROUP_COMMIT_MS, column)
