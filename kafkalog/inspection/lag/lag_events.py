"""The commits of groups and the moments of a history as events, for `StatusRows`.

A commit is followed by many moments where these are regular: events are made in pieces.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.coordination.groups.burrow import MS_PER_SECOND, BurrowSettings
from kafkalog.coordination.groups.lag_status import EventKind, HistoryMoments
from kafkalog.inspection.lag.history_rows import EVENT_KEY

# Columns of view `offset_commits`.
EVENT_COLUMNS = (
    *EVENT_KEY,
    *("effect", "effective_offset", "effective_timestamp_ms", "commit_timestamp_ms"),
    *("record_timestamp_ms", "is_tombstone", "committed_offset"),
)
EVENT_COLUMN, DELETION_COLUMN, LOG_PATH = "event_ms", "is_deletion", "log_path"
# A moment is a sample and a tick.
_OF_MOMENT = 2
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
    multiple of `every_ms` while a commit is in effect, one at the end of the history, and samples
    before whatever Burrow's rules compare with older ends."""

    def __init__(
        self, commits: OrderedCommits, moments: HistoryMoments, burrow: BurrowSettings
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
        self._held_ms = (burrow.intervals - 1) * burrow.offset_refresh_s * MS_PER_SECOND
        self._sampled = _is_sampled(commits, burrow).astype(np.int64)
        # A sample comes before a commit of the same moment.
        first_later = np.where(self._ticks > 0, self._first, moments.until_ms)
        self._is_early = (later > 0) & (first_later == event_ms)
        counts = self._sampled + 1 + _OF_MOMENT * later
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
        is_swapped = self._is_early[row] & ((place == 0) | (place == 1))
        place = np.where(is_swapped, 1 - place, place)
        later, of_moment = np.divmod(place - 1, _OF_MOMENT)
        is_later = place > 0
        is_sample = (place < 0) | (is_later & (of_moment < _OF_MOMENT - 1))
        is_end = later == self._ticks[row]
        moment = np.where(is_end, self._moments.until_ms, self._first[row] + later * self._every_ms)
        moment = np.where(is_later, moment, self._event_ms[row])
        kind = np.where(self._is_deletion[row], int(EventKind.DELETION), int(EventKind.COMMIT))
        kind = np.where(is_later, int(EventKind.TICK), kind)
        kind = np.where(is_sample, int(EventKind.SAMPLE), kind)
        question = np.where(is_sample, moment - self._held_ms, moment)
        return Events(row, kind, moment, question, is_later & is_end & ~is_sample)


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
