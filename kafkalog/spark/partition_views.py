"""Views with rows about whole partitions: one task has a partition's directory to itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from kafkalog.columns.producer_sequences import sequence_rows
from kafkalog.columns.recovery_account import recovery_row
from kafkalog.columns.table_rows import TableRow, table_batch
from kafkalog.spark.options import ReadOptions, Shutdown, View
from kafkalog.storage.log_dir import PartitionLog, with_own_checkpoints
from kafkalog.storage.recovery import RecoverySettings


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """A partition's directory, to be read as a whole."""

    log: PartitionLog

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.log.segments)


def partition_read(log: PartitionLog) -> PartitionRead:
    """The read of a partition, with nothing in it about others."""
    return PartitionRead(with_own_checkpoints(log))


def read_partition(
    read: PartitionRead, options: ReadOptions, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """The rows of one partition in the asked view."""
    log = read.log
    constants = {
        "cluster_id": log.log_dir.cluster_id,
        "broker_id": log.log_dir.broker_id,
        "input_path": log.input_path,
        "topic": log.topic,
        "partition": log.partition,
    }
    rows = list(PARTITION_VIEWS[options.view](log, options))
    if rows:
        yield table_batch(options.view.value, rows, constants, columns)


def _recovery_plan(log: PartitionLog, options: ReadOptions) -> Iterator[TableRow]:
    yield recovery_row(log, _recovery_settings(log, options))


def _recovery_settings(log: PartitionLog, options: ReadOptions) -> RecoverySettings:
    log_dir, key = log.log_dir, log.topic_partition
    is_clean = log_dir.is_clean_shutdown
    if options.shutdown is not Shutdown.AS_FOUND:
        is_clean = options.shutdown is Shutdown.CLEAN
    return RecoverySettings(
        is_clean_shutdown=is_clean,
        recovery_point=log_dir.recovery_points.get(key, 0) if key else 0,
        log_start_offset=log_dir.log_starts.get(key, 0) if key else 0,
        now_ms=options.now_ms,
        index_interval_bytes=options.index_interval_bytes,
    )


PARTITION_VIEWS: dict[View, Callable[[PartitionLog, ReadOptions], Iterator[TableRow]]] = {
    View.RECOVERY_PLAN: _recovery_plan,
    View.PRODUCER_SEQUENCES: lambda log, _: sequence_rows(log),
}
