"""The commits of groups and the moments of a plot as events, for `StatusRows`.

`analysis.lag.lag_history.lag_events` makes them of a DataFrame, with what Burrow's rules ask for.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import booleans, fixed_width, integers, of_values
from kafkalog.columns.jit.compiled import BoolArray
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
LOG_PATH = "log_path"
_COPIED = (*EVENT_KEY, "effective_offset", "commit_timestamp_ms", "event_ms", LOG_PATH)


def lag_events(
    commits: pa.Table, moments: HistoryMoments, every_ms: int, places: Mapping[tuple[str, int], str]
) -> pa.Table:
    """Return the events to judge, in EVENT_ORDER: each commit that is in effect, each deletion of
    one, each multiple of `every_ms` while a commit is in effect, and one at the end of the history.
    The columns are those of StatusRows but for the account, and effective_offset; `places` are the
    directories of the partitions' logs."""
    rows = _in_effect(commits, moments.until_ms)
    if not len(rows):
        return rows
    is_first = _is_first(rows)
    rows = rows.append_column(LOG_PATH, _log_paths(rows, is_first, places))
    is_last = np.append(is_first[1:], True)
    is_deletion = booleans(rows["is_deletion"].combine_chunks())
    event_ms = integers(rows["event_ms"].combine_chunks())
    until = np.where(is_last, moments.until_ms, np.append(event_ms[1:], 0))
    first = -(-np.maximum(event_ms, moments.since_ms) // every_ms) * every_ms
    ticks = np.where(is_deletion, 0, np.maximum((until - 1 - first) // every_ms + 1, 0))
    # Of each row: the commit, its ticks, and at last the end.
    counts = 1 + ticks + (is_last & ~is_deletion)
    row = np.repeat(np.arange(len(rows)), counts)
    number = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_end = number > ticks[row]
    moment = np.where(number == 0, event_ms[row], first[row] + (number - 1) * every_ms)
    kind = np.where(is_deletion[row], EventKind.DELETION, EventKind.COMMIT)
    taken = rows.take(fixed_width(row, pa.int64()))
    has_offset = fixed_width(~is_deletion[row], pa.bool_())
    return pa.table(
        {name: taken[name] for name in _COPIED}
        | {
            "committed_offset": pc.if_else(
                has_offset, taken["committed_offset"], pa.scalar(None, pa.int64())
            ),
            "kind": fixed_width(np.where(number > 0, EventKind.TICK, kind), pa.int32()),
            "moment_ms": fixed_width(np.where(is_end, moments.until_ms, moment), pa.int64()),
            "is_now": fixed_width(is_end, pa.bool_()),
        }
    )


def _in_effect(commits: pa.Table, until_ms: int) -> pa.Table:
    """Return the commits that took effect before the end, each partition's in order, with event_ms
    and is_deletion."""
    event_ms = pc.coalesce(
        *(commits[name] for name in ("effective_timestamp_ms", "commit_timestamp_ms")),
        commits["record_timestamp_ms"],
    )
    # A negative offset is none: F324.
    is_negative = pc.fill_null(pc.less(commits["committed_offset"], 0), False)
    rows = commits.append_column("event_ms", event_ms).append_column(
        "is_deletion", pc.or_(pc.fill_null(commits["is_tombstone"], False), is_negative)
    )
    is_applied = pc.equal(rows["effect"], "applied")
    found = rows.filter(pc.and_kleene(is_applied, pc.less_equal(event_ms, until_ms)))
    return found.sort_by([(name, "ascending") for name in (*EVENT_KEY, "effective_offset")])


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
