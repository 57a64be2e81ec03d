"""What coordinators know of transactions: what a task keeps of view `transaction_states`, and the
rule by which open ones are judged. Rules: docs/format.md F216 and F940."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kafkalog.columns.arrays import of_values
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.transactional_ids import OpenTransactionRule
from kafkalog.inspection.logs.missing_records import MissingRecords, note_missing_records
from kafkalog.storage.log_dir.absent_coordinators import clusters_without_all_coordinators
from kafkalog.storage.names import TRANSACTION_STATE
from kafkalog.storage.partition_log import PartitionLog

_KEY = ("cluster_id", "transactional_id", "producer_id")
TRANSACTION_STATE_COLUMNS = (
    *_KEY,
    *("internal_partition", "record_offset", "record_timestamp_ms", "is_tombstone", "state"),
    *("producer_epoch", "timeout_ms", "partitions", "started_ms"),
)
STATES = arrow_schema("transaction_states", TRANSACTION_STATE_COLUMNS)
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


def is_later(record_timestamp_ms: int | None, as_of_ms: int | None) -> bool:
    """Return whether a record was written after the time of the question."""
    return as_of_ms is not None and (record_timestamp_ms or 0) > as_of_ms


@dataclass(frozen=True, slots=True)
class NewestStates:
    """Keeps the last record of each transactional id with each producer id that it has had, and
    the last one up to a time, if one is given: what `TransactionalIds` makes of them is what it
    makes of all records."""

    as_of_ms: int | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the records, with TRANSACTION_STATE_COLUMNS."""
        tables: list[pa.Table] = []
        for batch in batches:
            records = batch.select(TRANSACTION_STATE_COLUMNS)
            tables.append(self._newest([pa.Table.from_batches([records])]))
            if len(tables) == _MOST_TABLES:
                tables = [self._newest(tables)]
        if tables:
            yield from self._newest(tables).to_batches()

    def _newest(self, tables: Sequence[pa.Table]) -> pa.Table:
        in_order = pa.concat_tables(tables).sort_by("record_offset")
        columns = [in_order.column(name).to_pylist() for name in (*_KEY, "record_timestamp_ms")]
        last = {
            (*key, is_later(written_ms, self.as_of_ms)): number
            for number, (*key, written_ms) in enumerate(zip(*columns, strict=True))
        }
        return in_order.take(of_values([*last.values()], pa.int64()))
