"""What coordinators know of transactions: what a task keeps of view `transaction_states`, and the
rule by which open ones are judged. Rules: docs/format.md F216 and F940."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from kafkalog.columns.arrays import of_values
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.transactional_ids import OpenTransactionRule
from kafkalog.inspection.logs.missing_records import MissingRecords, note_missing_records
from kafkalog.storage.log_dir.absent_coordinators import clusters_without_all_coordinators
from kafkalog.storage.names import TRANSACTION_STATE
from kafkalog.storage.partition_log import PartitionLog

_KEY = ("cluster_id", "transactional_id", "producer_id")
STATE_COLUMNS = (*_KEY, *("record_offset", "is_tombstone", "state", "partitions", "started_ms"))
STATES = arrow_schema("transaction_states", STATE_COLUMNS)
# The newest records of so many batches are compared at a time.
_MOST_TABLES = 64


def open_transaction_rule(
    logs: Sequence[PartitionLog], at_ms: int, longest_ms: int
) -> tuple[OpenTransactionRule, list[MissingRecords]]:
    """Return the rule for open transactions, by which logs of `__transaction_state` are among
    `logs`, all under the paths; and what they lack, which is noted for the end of the run. Raises
    OSError."""
    missing = note_missing_records(logs, TRANSACTION_STATE)
    here = {
        (log.log_dir.cluster_id, log.partition) for log in logs if log.topic == TRANSACTION_STATE
    }
    cut = {each.cluster_id for each in missing if (each.cluster_id, each.partition) in here}
    incomplete = clusters_without_all_coordinators(logs)
    return OpenTransactionRule(at_ms, longest_ms, incomplete | cut, cut), missing


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
