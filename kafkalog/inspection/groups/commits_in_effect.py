"""The commit in effect for each group, topic and partition, from batches of view `offset_commits`.

Rules: docs/format.md F300 to F303 and F324.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import booleans, fixed_width, row_codes, scalar
from kafkalog.coordination.groups.offset_commits import Effect

COMMIT_KEY = ("cluster_id", "internal_partition", "group_id", "topic", "partition")
COMMIT_COLUMNS = (
    *COMMIT_KEY,
    "input_path",
    "committed_offset",
    "leader_epoch",
    "metadata",
    "topic_id",
    "commit_timestamp_ms",
    "expire_timestamp_ms",
    "record_timestamp_ms",
    "effective_offset",
    "effective_timestamp_ms",
    "effect",
    "is_tombstone",
    "is_transactional",
    "is_confirmed",
)
# The number of rows that may be held beside those that count; as many as those, if they are more.
_MOST_ROWS = 1 << 17
# Columns of kept rows: the effective offset of a commit that has an effect, else -1, and whether
# the commit waits for the end of its transaction.
RANK, WAITS = "rank", "waits"
_APPLIED, _OPEN = (scalar(effect.value, pa.string()) for effect in (Effect.APPLIED, Effect.OPEN))
_ZERO, _NONE, _NO = scalar(0, pa.int64()), scalar(-1, pa.int64()), scalar(False, pa.bool_())
HAS_OPEN_COMMIT = "has_open_commit"


class CommitsInEffect:
    """Takes batches with COMMIT_COLUMNS in any order. Holds a row for each key, and a bounded
    number of others."""

    def __init__(self, at_ms: int | None = None) -> None:
        """`at_ms` is a past time, in milliseconds; None is now."""
        self._at_ms = at_ms
        # A row for each key that counts, and one that waits.
        self._kept: list[pa.Table] = []
        self._added = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows of the view."""
        self._kept.append(_ranked(pa.Table.from_batches([batch]), self._at_ms))
        self._added += len(batch)
        if self._added > max(_MOST_ROWS, len(self._kept[0])):
            self._kept = [_last(pa.concat_tables(self._kept), [*COMMIT_KEY, WAITS])]
            self._added = 0

    def rows(self) -> pa.Table | None:
        """Return the commits in effect with COMMIT_COLUMNS and has_open_commit, which says whether
        another commit waits for the end of a transaction; None if no batch was added.

        A commit that only waits has its key and input_path alone. A committed offset below 0 is
        null. Deleted commits are left out.
        """
        if not self._kept:
            return None
        return _that_count(_last(pa.concat_tables(self._kept), COMMIT_KEY))

    def rows_of_view(self) -> pa.Table | None:
        """Return the rows of the view that decide: for each key the one that counts, and one that
        waits; None if no batch was added."""
        if not self._kept:
            return None
        found = _last(pa.concat_tables(self._kept), [*COMMIT_KEY, WAITS])
        return found.drop_columns([RANK, WAITS])


def _last(kept: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return for each value of some columns the row of the highest rank, and whether any waits."""
    table = kept.sort_by(RANK)
    codes = row_codes(table.select(list(names)))
    count = int(codes.max(initial=-1)) + 1
    last = np.zeros(count, dtype=np.int64)
    np.maximum.at(last, codes, np.arange(len(table)))
    waits = np.zeros(count, dtype=np.bool_)
    waits[codes[booleans(table[WAITS].combine_chunks())]] = True
    found = table.drop_columns([WAITS]).take(fixed_width(last, pa.int64()))
    return found.append_column(WAITS, fixed_width(waits, pa.bool_()))


def _that_count(rows: pa.Table) -> pa.Table:
    """Return the commits in effect of the rows of `_last`, one for each key."""
    is_deleted = pc.fill_null(rows["is_tombstone"], _NO)
    is_set = pc.and_(pc.greater_equal(rows[RANK], _ZERO), pc.invert(is_deleted))
    has_offset = pc.and_(is_set, pc.greater_equal(rows["committed_offset"], _ZERO))
    columns = {}
    for name in COMMIT_COLUMNS:
        is_known = has_offset if name == "committed_offset" else is_set
        is_key = name in COMMIT_KEY or name == "input_path"
        columns[name] = rows[name] if is_key else _where(is_known, rows[name])
    columns[HAS_OPEN_COMMIT] = rows[WAITS]
    return pa.table(columns).filter(pc.or_(is_set, rows[WAITS]))


def _where(is_known: pa.ChunkedArray, column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(is_known, column, pa.nulls(1, column.type)[0])


def _ranked(table: pa.Table, at_ms: int | None) -> pa.Table:
    """Return the rows that count or wait, with RANK and WAITS."""
    moment = pc.coalesce(table["effective_timestamp_ms"], table["commit_timestamp_ms"])
    written = pc.coalesce(table["record_timestamp_ms"], table["commit_timestamp_ms"])
    counts = pc.fill_null(pc.equal(table["effect"], _APPLIED), _NO)
    waits = pc.fill_null(pc.equal(table["effect"], _OPEN), _NO)
    if at_ms is not None:
        at = scalar(at_ms, pa.int64())
        is_later = pc.and_(counts, pc.fill_null(pc.greater(moment, at), _NO))
        is_written = pc.fill_null(pc.less_equal(written, at), _NO)
        in_transaction = pc.fill_null(table["is_transactional"], _NO)
        waits = pc.and_(pc.and_(pc.or_(waits, is_later), is_written), in_transaction)
        counts = pc.and_(counts, pc.fill_null(pc.less_equal(moment, at), _NO))
    rank = pc.if_else(counts, table["effective_offset"], _NONE)
    table = table.append_column(RANK, rank).append_column(WAITS, waits)
    return table.filter(pc.or_(counts, waits))
