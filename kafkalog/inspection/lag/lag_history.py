"""The rows of table `lag_history` about one log: schemas/tables/lag_history.json.

Rules: docs/format.md F310 to F317 and F330 to F337.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import Constant, chosen, fixed_width, integers
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.sentence_columns import sentences
from kafkalog.coordination.groups.burrow import MS_PER_SECOND, BurrowRule, BurrowStatus
from kafkalog.coordination.groups.lag_question import LagHistoryQuestion
from kafkalog.coordination.groups.lag_status import EventKind
from kafkalog.inspection.lag.history_commits import (
    COMMIT_MS,
    COMMITTED_OFFSET,
    EVENT_MS,
    IS_DELETION,
    KEY,
    NO_OFFSET,
    RECORD_OFFSET,
    LogCommits,
)
from kafkalog.inspection.lag.history_rows import SEQUENCE, STATUS_COLUMNS, StatusRows
from kafkalog.inspection.lag.lag_bounds import KnownCommits
from kafkalog.inspection.lag.lag_columns import ACCOUNT_COLUMNS, lag_logs, lag_times, with_accounts
from kafkalog.inspection.lag.lag_events import (
    LOG_PATH,
    NO_TIME,
    EventPlan,
    Events,
    OrderedCommits,
    whole_seconds,
)
from kafkalog.storage.partition_log import PartitionLog

TABLE = "lag_history"
COMMIT, TICK, END = _EVENTS = ["commit", "tick", "end"]
# An account of an event takes a kilobyte while it is made.
_EVENTS_AT_ONCE = 2**16
_KEY_COLUMNS = (
    *("cluster_id", "broker_id", "input_path", "group_id", "topic", "partition"),
    "internal_partition",
)
_NUMBER, _QUESTION_MS = "number", "question_ms"


def history_rows(
    commits: LogCommits, log_path: str | None, question: LagHistoryQuestion
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all groups about the log in a directory, None where the input does not have
    it. Raises what reading the log raises."""
    numbers = commits.commits.numbers
    known = KnownCommits.of(numbers[EVENT_MS], numbers[COMMITTED_OFFSET])
    if question.chosen.is_group is not None:
        commits = _of_chosen_groups(commits, question.chosen.is_group)
    yield from _HistoryRows(commits, log_path, known, question).batches()


def _of_chosen_groups(commits: LogCommits, is_chosen: Callable[[str], bool]) -> LogCommits:
    numbers, keys = np.unique(commits.commits.numbers[KEY], return_inverse=True)
    groups = commits.commits.keys["group_id"].take(fixed_width(numbers, pa.int64())).to_pylist()
    rows = np.array([is_chosen(group) for group in groups])[keys]
    return commits.taken(rows)


class _HistoryRows:
    """Makes the rows of one log, some events at a time."""

    def __init__(
        self,
        commits: LogCommits,
        log_path: str | None,
        known: KnownCommits,
        question: LagHistoryQuestion,
    ) -> None:
        self._commits, self._question, self._known = commits, question, known
        self._log = None if log_path is None else lag_logs([log_path])[0]
        self._log_path = Constant(log_path, pa.string())
        self._statuses = StatusRows(question.burrow, question.lag)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        numbers = self._commits.commits.numbers
        ordered = OrderedCommits(
            self._commits.is_last, numbers[IS_DELETION] != 0, numbers[EVENT_MS], numbers[COMMIT_MS]
        )
        plan = EventPlan(ordered, self._question.moments, self._question.burrow)
        for begin in range(0, plan.count, _EVENTS_AT_ONCE):
            events = plan.events(begin, begin + _EVENTS_AT_ONCE)
            judged = self._statuses.judged(self._answered(self._asked(events), self._log))
            yield from self._table_rows(judged, events)

    def _asked(self, events: Events) -> pa.Table:
        """Return the columns of StatusRows but for the account, the question, and the number of the
        event."""
        of, row = self._commits.commits.numbers, events.row
        # A sample is older than the commit: the log may not have reached its offset then.
        has_offset = (events.kind == EventKind.COMMIT) | (events.kind == EventKind.TICK)
        offset = np.where(has_offset, of[COMMITTED_OFFSET, row], NO_OFFSET)
        columns = {
            SEQUENCE: self._commits.sequence[row],
            _NUMBER: np.arange(len(row)),
            "kind": events.kind,
            "moment_ms": events.moment_ms,
            _QUESTION_MS: events.question_ms,
            "committed_offset": offset,
            "event_ms": of[EVENT_MS, row],
            "commit_timestamp_ms": of[COMMIT_MS, row],
        }
        is_now = events.is_end & self._question.moments.ends_now
        return pa.table(
            {name: _with_nulls(values) for name, values in columns.items()}
            | {"is_now": fixed_width(is_now, pa.bool_()), LOG_PATH: self._log_path.of(len(row))}
        )

    def _answered(self, asked: pa.Table, log: PartitionLog | None) -> pa.RecordBatch:
        """Return the events with accounts of their lag, in order."""
        is_deletion = pc.equal(asked["kind"], int(EventKind.DELETION))
        is_now = asked["is_now"]
        then = asked.filter(pc.invert(pc.or_(is_deletion, is_now)))
        now, deletions = asked.filter(is_now), asked.filter(is_deletion)
        found = [
            with_accounts(
                questions,
                log,
                read_committed=self._question.read_committed,
                now_ms=self._question.now_ms,
                at=at,
                known=self._known,
            )
            for questions, at in ((then, _QUESTION_MS), (now, None))
            if len(questions)
        ]
        if len(deletions):
            found.append(deletions)
        if len(found) == 1:
            answered = found[0]
        else:
            every = pa.concat_tables(found, promote_options="default")
            order = np.argsort(integers(every[_NUMBER].combine_chunks()))
            answered = every.take(fixed_width(order, pa.int64()))
        if len(deletions) == len(answered):
            missing = pa.nulls(len(answered), pa.int64())
            for name in ACCOUNT_COLUMNS:
                answered = answered.append_column(name, missing)
        (batch,) = answered.combine_chunks().to_batches()
        return batch

    def _table_rows(self, judged: pa.RecordBatch, events: Events) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the table, those of events that it has."""
        number = integers(judged.column(_NUMBER))
        is_tick = events.kind[number] == EventKind.TICK
        by_commit = self._question.moments.every_ms is None
        is_row = (is_tick | by_commit) & (
            events.moment_ms[number] >= self._question.moments.since_ms
        )
        if not is_row.any():
            return
        if not is_row.all():
            judged = judged.filter(fixed_width(is_row, pa.bool_()))
            number, is_tick = number[is_row], is_tick[is_row]
        is_end = events.is_end[number]
        row, at_ms = events.row[number], events.moment_ms[number]
        of = self._commits.commits
        keys = of.keys.take(fixed_width(of.numbers[KEY, row], pa.int64()))
        columns = {name: keys[name].combine_chunks() for name in _KEY_COLUMNS}
        is_zookeeper = integers(columns["internal_partition"].is_null().cast(pa.int8()))
        columns |= {
            "offset_storage": chosen(["kafka", "zookeeper"], is_zookeeper),
            "event": chosen(_EVENTS, is_tick.astype(np.int32) + is_end),
            "at_ms": fixed_width(at_ms, pa.int64()),
            "record_offset": _with_nulls(of.numbers[RECORD_OFFSET, row]),
            **{name: judged.column(name) for name in ("committed_offset", "commit_timestamp_ms")},
            **{name: judged.column(name) for name in (*ACCOUNT_COLUMNS, *STATUS_COLUMNS)},
        }
        columns |= lag_times(columns)
        silent_ms = whole_seconds(at_ms) - self._commits.group_commit_ms[row]
        has_time = self._commits.group_commit_ms[row] != NO_TIME
        expire_ms = self._question.burrow.expire_group_s * MS_PER_SECOND
        columns |= _expired(
            columns, silent_ms, is_end & has_time & (silent_ms > expire_ms), expire_ms
        )
        schema = arrow_schema(TABLE)
        yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _expired(
    columns: dict[str, pa.Array], silent_ms: LongArray, is_expired: np.ndarray, expire_ms: int
) -> dict[str, pa.Array]:
    """Return Burrow's status and reason, where its group has expired. F332"""
    if not is_expired.any():
        return {}
    where = fixed_width(is_expired, pa.bool_())
    reason = sentences(BurrowRule.EXPIRED.words, (silent_ms, np.full(len(silent_ms), expire_ms)))
    return {
        "burrow_status": pc.if_else(where, BurrowStatus.NOTFOUND.value, columns["burrow_status"]),
        "burrow_reason": pc.if_else(where, reason, columns["burrow_reason"]),
    }


def _with_nulls(values: LongArray) -> pa.Array:
    is_null = values == NO_TIME
    return fixed_width(np.where(is_null, 0, values), pa.int64(), is_null)
