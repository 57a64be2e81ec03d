"""The statuses of groups' partitions as columns of Arrow batches, for table `lag_history`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import chosen, fixed_width, integers
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.columns.sentence_columns import chosen_sentences
from kafkalog.coordination.groups.burrow import BurrowRule, BurrowSettings
from kafkalog.coordination.groups.lag_status import EventKind, LagRule, LagSettings
from kafkalog.inspection.lag.burrow_statuses import BurrowEvents, BurrowWindows
from kafkalog.inspection.lag.commit_windows import NOTHING, Verdicts
from kafkalog.inspection.lag.lag_statuses import LagEvents, LagWindows

# What events are of: a partition that a group has committed.
EVENT_KEY = ("cluster_id", "internal_partition", "group_id", "topic", "partition")
# Numbers the partitions of groups among events.
SEQUENCE = "sequence"
# What these functions add, with Spark's types.
STATUS_COLUMNS = {
    "status": "string",
    "reason": "string",
    "burrow_status": "string",
    "burrow_reason": "string",
    "burrow_lag": "long",
    "burrow_complete": "double",
}
_BURROW_RULES = {rule.number: (rule.status.value, rule.words) for rule in BurrowRule}
_LAG_RULES = {rule.number: (rule.status.value, rule.words) for rule in LagRule}


class StatusRows:
    """Takes batches of events, those of a partition one after another in their order, and gives
    those that are commits and ticks, with the statuses.

    Columns: SEQUENCE, `kind` (EventKind), `moment_ms`, `is_now`, `committed_offset`, `event_ms`
    (when the commit took effect) and `commit_timestamp_ms`, `log_path` (null where the input does
    not have the log), and those of an account, null where nothing is known.
    """

    def __init__(self, burrow: BurrowSettings, lag: LagSettings) -> None:
        self._intervals = burrow.intervals
        self._burrow, self._lag = BurrowWindows(burrow), LagWindows(lag)
        self._last: int | None = None

    def judged(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the next batch."""
        is_first, kind = self._is_first(batch), _numbers(batch, "kind")
        columns = self._burrow_columns(batch, is_first, kind)
        columns |= self._lag_columns(batch, is_first, kind)
        for name in STATUS_COLUMNS:
            batch = batch.append_column(name, columns[name])
        is_requested = (kind == EventKind.COMMIT) | (kind == EventKind.TICK)
        return batch.filter(fixed_width(is_requested, pa.bool_()))

    def _is_first(self, batch: pa.RecordBatch) -> BoolArray:
        """Return where the rows of a partition begin."""
        sequence = _numbers(batch, SEQUENCE)
        changes: BoolArray = np.append(True, sequence[1:] != sequence[:-1])
        changes[0] = int(sequence[0]) != self._last
        self._last = int(sequence[-1])
        return changes

    def _burrow_columns(
        self, batch: pa.RecordBatch, is_first: BoolArray, kind: LongArray
    ) -> dict[str, pa.Array]:
        found = self._burrow.verdicts(
            BurrowEvents(
                is_first,
                kind,
                _numbers(batch, "committed_offset"),
                _numbers(batch, "commit_timestamp_ms"),
                _numbers(batch, "high_watermark"),
                _numbers(batch, "moment_ms"),
            )
        )
        status, reason = _status_and_reason(found.verdicts, _BURROW_RULES)
        is_null = found.verdicts.rule == NOTHING
        return {
            "burrow_status": status,
            "burrow_reason": reason,
            "burrow_lag": fixed_width(found.current_lag, pa.int64(), is_null),
            "burrow_complete": fixed_width(found.held / self._intervals, pa.float64(), is_null),
        }

    def _lag_columns(
        self, batch: pa.RecordBatch, is_first: BoolArray, kind: LongArray
    ) -> dict[str, pa.Array]:
        hidden = _numbers(batch, "damaged", 0) + _numbers(batch, "in_tiered_storage", 0)
        found = self._lag.verdicts(
            LagEvents(
                is_first,
                kind,
                _numbers(batch, "committed_offset"),
                _numbers(batch, "event_ms"),
                _numbers(batch, "moment_ms"),
                _flags(batch.column("is_now")),
                _flags(batch.column("log_path").is_valid()),
                _flags(batch.column("high_watermark").is_valid()),
                _numbers(batch, "readable_records", 0),
                _numbers(batch, "beyond_last_stable", 0),
                _numbers(batch, "below_log_start", 0),
                hidden,
                _numbers(batch, "ahead_of_log", 0),
                _numbers(batch, "next_timestamp_ms"),
            )
        )
        status, reason = _status_and_reason(found, _LAG_RULES)
        return {"status": status, "reason": reason}


def _status_and_reason(
    verdicts: Verdicts, rules: Mapping[int, tuple[str, str]]
) -> tuple[pa.Array, pa.Array]:
    """Return the status and the reason of each verdict."""
    rule, *numbers = verdicts
    codes = np.zeros(max(rules) + 1, dtype=np.int64)
    codes[list(rules)] = np.arange(len(rules))
    statuses = chosen([status for status, _ in rules.values()], codes[rule], rule == NOTHING)
    words = {number: text for number, (_, text) in rules.items()}
    return statuses, chosen_sentences(rule, words, numbers)


def _numbers(batch: pa.RecordBatch, name: str, null: int = NOTHING) -> LongArray:
    column = batch.column(name).cast(pa.int64())
    return integers(column.fill_null(null) if column.null_count else column)


def _flags(column: pa.Array) -> BoolArray:
    flags: BoolArray = integers(column.cast(pa.int8())) != 0
    return flags
