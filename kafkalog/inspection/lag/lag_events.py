"""The commits of groups and the moments of a history as events, for `StatusRows`.

A commit is followed by many moments where these are regular: events are made in pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import booleans, fixed_width, integers, of_values
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.coordination.groups.burrow import MS_PER_SECOND, BurrowSettings
from kafkalog.coordination.groups.commit_events import EventKind, HistoryMoments
from kafkalog.inspection.lag.history_rows import EVENT_KEY

# Columns of view `offset_commits`.
EVENT_COLUMNS = (
    *EVENT_KEY,
    *("effect", "effective_offset", "effective_timestamp_ms", "commit_timestamp_ms"),
    *("record_timestamp_ms", "is_tombstone", "committed_offset"),
)
# The order of events.
EVENT_ORDER = (*EVENT_KEY, "effective_offset", "moment_ms", "kind")
EVENT_COLUMN, DELETION_COLUMN, LOG_PATH = "event_ms", "is_deletion", "log_path"
_COPIED = (*EVENT_KEY, "effective_offset", "commit_timestamp_ms", EVENT_COLUMN, LOG_PATH)
# In columns of times: there is none.
NO_TIME = np.iinfo(np.int64).min


class OrderedCommits(NamedTuple):
    """Commits that took effect, those of a group's partition one after another in their order.

    `is_last` is the last one of a partition. `event_ms` is when a commit, or its deletion, took
    effect, `commit_ms` its own time, NO_TIME for none.
    """

    is_last: BoolArray
    is_deletion: BoolArray
    event_ms: LongArray
    commit_ms: LongArray


class Events(NamedTuple):
    """Events in order. `row` is the number of the commit in effect, `kind` an EventKind.
    `moment_ms` is when an event was, `question_ms` the time at which the log is examined, and
    `is_end` is true where the history ends."""

    row: LongArray
    kind: LongArray
    moment_ms: LongArray
    question_ms: LongArray
    is_end: BoolArray


class EventPlan:
    """Knows the events of commits without making them: each commit and each deletion of one, each
    multiple of `every_ms` while a commit is in effect, and one at the end of the history.

    With Burrow's settings there are samples too, before whatever its rules compare with older ends.
    """

    def __init__(
        self, commits: OrderedCommits, moments: HistoryMoments, burrow: BurrowSettings | None
    ) -> None:
        self._moments, self._is_deletion = moments, commits.is_deletion
        self._event_ms = event_ms = commits.event_ms
        until = np.where(commits.is_last, moments.until_ms, np.append(event_ms[1:], 0))
        if moments.ticks_until_ms is not None:
            until = np.minimum(until, moments.ticks_until_ms)
        self._every_ms = every_ms = moments.every_ms or 1
        self._first = -(-np.maximum(event_ms, moments.since_ms) // every_ms) * every_ms
        ticks = np.maximum((until - 1 - self._first) // every_ms + 1, 0)
        self._ticks = ticks * (~commits.is_deletion & (moments.every_ms is not None))
        later = self._ticks + (commits.is_last & ~commits.is_deletion)
        self._sampled = np.zeros(len(event_ms), dtype=np.int64)
        self._held_ms, self._of_moment = 0, 1
        if burrow is not None:
            self._held_ms = (burrow.intervals - 1) * burrow.offset_refresh_s * MS_PER_SECOND
            self._of_moment = 2
            self._sampled += _is_sampled(commits, burrow)
        # A sample comes before a commit of the same moment.
        first_later = np.where(self._ticks > 0, self._first, moments.until_ms)
        self._is_early = (later > 0) & (first_later == event_ms)
        counts = self._sampled + 1 + self._of_moment * later
        counts[commits.is_deletion] = 1
        self._sampled[commits.is_deletion] = 0
        self._ends = np.cumsum(counts)
        self._begins = self._ends - counts

    @property
    def count(self) -> int:
        """How many events there are."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def events(self, begin: int, end: int) -> Events:
        """Return the events from one number up to, not including, another."""
        numbers = np.arange(begin, min(end, self.count))
        row = np.searchsorted(self._ends, numbers, side="right")
        # From the commit on, which is 0; its own sample is -1.
        place = numbers - self._begins[row] - self._sampled[row]
        if self._of_moment > 1:
            is_early = self._is_early[row]
            place = np.where(is_early & ((place == 0) | (place == 1)), 1 - place, place)
        later, of_moment = np.divmod(place - 1, self._of_moment)
        is_later = place > 0
        is_sample = (place < 0) | (is_later & (of_moment < self._of_moment - 1))
        is_end = later == self._ticks[row]
        moment = np.where(is_end, self._moments.until_ms, self._first[row] + later * self._every_ms)
        moment = np.where(is_later, moment, self._event_ms[row])
        kind = np.where(self._is_deletion[row], int(EventKind.DELETION), int(EventKind.COMMIT))
        kind = np.where(is_later, int(EventKind.TICK), kind)
        kind = np.where(is_sample, int(EventKind.SAMPLE), kind)
        question = np.where(is_sample, moment - self._held_ms, moment)
        return Events(row, kind, moment, question, is_later & is_end & ~is_sample)


def lag_events(
    commits: pa.Table, moments: HistoryMoments, places: Mapping[tuple[str, int], str]
) -> pa.Table:
    """Return the events of rows of view `offset_commits`, in EVENT_ORDER and without samples. The
    columns are those of StatusRows but for the account, effective_offset, and leader_epoch where
    the rows have it; `places` are the directories of the partitions' logs."""
    rows = commits_that_took_effect(commits, moments.until_ms)
    rows = rows.sort_by([(name, "ascending") for name in (*EVENT_KEY, "effective_offset")])
    if not len(rows):
        return rows
    is_first = _is_first(rows)
    rows = rows.append_column(LOG_PATH, _log_paths(rows, is_first, places))
    is_deletion = booleans(rows[DELETION_COLUMN].combine_chunks())
    ordered = OrderedCommits(
        np.append(is_first[1:], True),
        is_deletion,
        integers(rows[EVENT_COLUMN].combine_chunks()),
        integers(rows["commit_timestamp_ms"].fill_null(NO_TIME).combine_chunks()),
    )
    plan = EventPlan(ordered, moments, None)
    events = plan.events(0, plan.count)
    taken = rows.take(fixed_width(events.row, pa.int64()))
    has_offset = fixed_width(~is_deletion[events.row], pa.bool_())
    copied = [*_COPIED, *({"leader_epoch"} & {*rows.column_names})]
    return pa.table(
        {name: taken[name] for name in copied}
        | {
            "committed_offset": pc.if_else(
                has_offset, taken["committed_offset"], pa.scalar(None, pa.int64())
            ),
            "kind": fixed_width(events.kind, pa.int32()),
            "moment_ms": fixed_width(events.moment_ms, pa.int64()),
            "is_now": fixed_width(events.is_end & moments.ends_now, pa.bool_()),
        }
    )


def commits_that_took_effect(commits: pa.Table, until_ms: int) -> pa.Table:
    """Return the commits that took effect up to a time, from rows of view `offset_commits`, with
    EVENT_COLUMN, when they did, and DELETION_COLUMN."""
    event_ms = pc.coalesce(
        *(commits[name] for name in ("effective_timestamp_ms", "commit_timestamp_ms")),
        commits["record_timestamp_ms"],
    )
    # A negative offset is none: F324.
    is_negative = pc.fill_null(pc.less(commits["committed_offset"], 0), False)
    rows = commits.append_column(EVENT_COLUMN, event_ms).append_column(
        DELETION_COLUMN, pc.or_(pc.fill_null(commits["is_tombstone"], False), is_negative)
    )
    is_applied = pc.equal(rows["effect"], "applied")
    return rows.filter(pc.and_kleene(is_applied, pc.less_equal(event_ms, until_ms)))


def _is_sampled(commits: OrderedCommits, burrow: BurrowSettings) -> BoolArray:
    """Return which commits Burrow compares with older ends: else no time has passed since the last
    commit."""
    if burrow.min_distance_s > 0:
        return np.ones(len(commits.event_ms), dtype=np.bool_)
    is_older: BoolArray = whole_seconds(commits.event_ms) > commits.commit_ms
    has_time: BoolArray = commits.commit_ms != NO_TIME
    return is_older & has_time


def whole_seconds(time_ms: LongArray) -> LongArray:
    """Return times by Burrow's clock."""
    found: LongArray = time_ms - np.fmod(time_ms, MS_PER_SECOND)
    return found


def _is_first(rows: pa.Table) -> BoolArray:
    """Return where the rows of a partition begin."""
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = False
    for name in EVENT_KEY:
        column = rows[name].combine_chunks()
        codes = integers(column.dictionary_encode(null_encoding="encode").indices)
        is_first[1:] |= codes[1:] != codes[:-1]
    return is_first


def _log_paths(
    rows: pa.Table, is_first: BoolArray, places: Mapping[tuple[str, int], str]
) -> pa.Array:
    begins = rows.select(["topic", "partition"]).filter(fixed_width(is_first, pa.bool_()))
    paths = [places.get((row["topic"], row["partition"])) for row in begins.to_pylist()]
    number = fixed_width(np.cumsum(is_first) - 1, pa.int64())
    return of_values(paths, pa.string()).take(number)
