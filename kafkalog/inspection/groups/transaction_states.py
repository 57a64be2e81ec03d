"""What a task keeps of view `transaction_states`. Rule: docs/format.md F216."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from kafkalog.columns.arrays import of_values
from kafkalog.columns.arrow_types import arrow_schema

_KEY = ("cluster_id", "transactional_id", "producer_id")
STATE_COLUMNS = (*_KEY, *("record_offset", "is_tombstone", "state", "partitions", "started_ms"))
STATES = arrow_schema("transaction_states", STATE_COLUMNS)
# The newest records of so many batches are compared at a time.
_MOST_TABLES = 64


def newest_states(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the last record of each transactional id with each producer id that it has had: what
    `TransactionalIds` makes of them is what it makes of all records."""
    tables: list[pa.Table] = []
    for batch in batches:
        tables.append(_newest([pa.Table.from_batches([batch.select(STATE_COLUMNS)])]))
        if len(tables) == _MOST_TABLES:
            tables = [_newest(tables)]
    if tables:
        yield from _newest(tables).to_batches()


def _newest(tables: Sequence[pa.Table]) -> pa.Table:
    in_order = pa.concat_tables(tables).sort_by("record_offset")
    keys = zip(*(in_order.column(name).to_pylist() for name in _KEY), strict=True)
    last = {key: number for number, key in enumerate(keys)}
    return in_order.take(of_values([*last.values()], pa.int64()))
