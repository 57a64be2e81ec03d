"""Of each group, topic and partition the commit that counts, from batches of view
`offset_commits`. Rules: docs/format.md F300 to F303 and F324.

`kafkalog.analysis.lag.commits` does the same for DataFrames; a test holds both against each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
# So many rows are held beside those that count.
_MOST_ROWS = 1 << 17
_RANK, _WAITS, _ROW = "rank", "waits", "row"


class CommitsInEffect:
    """Takes batches with COMMIT_COLUMNS in any order. Holds a row for each key, and some more."""

    def __init__(self, at_ms: int | None = None) -> None:
        """`at_ms` is the moment, in milliseconds; None for now."""
        self._at_ms = at_ms
        self._kept: list[pa.Table] = []
        self._added = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows of the view."""
        self._kept.append(self._ranked(pa.Table.from_batches([batch])))
        self._added += len(batch)
        if self._added > _MOST_ROWS:
            self._reduce()

    def rows(self) -> Iterator[dict[str, Any]]:
        """The commits that count, with has_open_commit: whether another waits for the end of a
        transaction. One that only waits has nothing but its key; a committed offset below 0 is
        None, and there is none for a commit that was deleted."""
        self._reduce()
        for table in self._kept:
            for row in table.to_pylist():
                is_there = row.pop(_RANK) >= 0 and not row["is_tombstone"]
                row["has_open_commit"] = row.pop(_WAITS)
                if is_there and row["committed_offset"] < 0:
                    row["committed_offset"] = None
                if is_there:
                    yield row
                elif row["has_open_commit"]:
                    kept = (*COMMIT_KEY, "input_path", "has_open_commit")
                    yield {name: value if name in kept else None for name, value in row.items()}

    def _ranked(self, table: pa.Table) -> pa.Table:
        """The rows that count or wait, with the effective offset of those that count, else -1."""
        moment = pc.coalesce(table["effective_timestamp_ms"], table["commit_timestamp_ms"])
        written = pc.coalesce(table["record_timestamp_ms"], table["commit_timestamp_ms"])
        counts = pc.fill_null(pc.equal(table["effect"], "applied"), False)
        waits = pc.fill_null(pc.equal(table["effect"], "open"), False)
        if self._at_ms is not None:
            is_later = pc.and_(counts, pc.fill_null(pc.greater(moment, self._at_ms), False))
            is_written = pc.fill_null(pc.less_equal(written, self._at_ms), False)
            in_transaction = pc.fill_null(table["is_transactional"], False)
            waits = pc.and_(pc.and_(pc.or_(waits, is_later), is_written), in_transaction)
            counts = pc.and_(counts, pc.fill_null(pc.less_equal(moment, self._at_ms), False))
        rank = pc.if_else(counts, table["effective_offset"], pa.scalar(-1, pa.int64()))
        table = table.append_column(_RANK, rank).append_column(_WAITS, waits)
        return table.filter(pc.or_(counts, waits))

    def _reduce(self) -> None:
        """Keep of each key the row of the highest rank, and whether any waits."""
        self._added = 0
        if not self._kept:
            return
        table = pa.concat_tables(self._kept).sort_by(_RANK)
        numbered = table.append_column(_ROW, pa.array(range(len(table)), pa.int64()))
        last = numbered.group_by(list(COMMIT_KEY), use_threads=False).aggregate(
            [(_ROW, "max"), (_WAITS, "any")]
        )
        kept = table.drop_columns([_WAITS]).take(last[f"{_ROW}_max"])
        self._kept = [kept.append_column(_WAITS, last[f"{_WAITS}_any"])]
