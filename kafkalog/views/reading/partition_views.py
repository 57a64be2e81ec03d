"""Views with rows about whole partitions: one task has a partition's directory to itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from kafkalog.columns.table_rows import TableRow, table_batches
from kafkalog.coordination.metadata.image import END, Moment
from kafkalog.coordination.metadata.releases import is_at_least, started_release
from kafkalog.errors import CorruptDataError
from kafkalog.inspection.metadata.cluster_views import cluster_view_rows
from kafkalog.inspection.partitions.compaction_report import compaction_rows
from kafkalog.inspection.partitions.producer_sequences import sequence_rows
from kafkalog.inspection.partitions.recovery_plan import recovery_row
from kafkalog.inspection.partitions.replicas import replica_rows
from kafkalog.inspection.partitions.retention_plan import retention_rows
from kafkalog.inspection.partitions.segments import segment_rows
from kafkalog.inspection.partitions.transactions import (
    PastTime,
    stable_offset_row,
    view_transaction_rows,
)
from kafkalog.storage.partition_log import PartitionLog, log_columns
from kafkalog.storage.reading.relisted_logs import read_relisted
from kafkalog.storage.recovery.recovery import RecoverySettings
from kafkalog.views.options.options import METADATA_VIEWS, Mode, ReadOptions, Shutdown, View
from kafkalog.views.reading.partition_reads import PartitionRead, ReplicaSetRead
from kafkalog.views.reading.segment_damage import PassedDamage

# The first release that reads compressed batches of formats 0 and 1 when it starts (F1392).
_READS_WRAPPERS = "4.1"
# The first that goes on without the newest snapshot of the metadata (F1406).
_WITHOUT_SNAPSHOT = "4.3"


def read_replica_set(
    read: ReplicaSetRead, options: ReadOptions, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one partition in view `replicas`, or in one about the metadata."""
    rows = replica_rows(read.logs)
    if options.view in METADATA_VIEWS:
        rows = _cluster_rows(read.logs, options)
    yield from table_batches(options.view.value, rows, {}, columns)


def _cluster_rows(logs: Sequence[PartitionLog], options: ReadOptions) -> Iterator[TableRow]:
    passed = PassedDamage(options.mode)

    def on_damage(damage: CorruptDataError) -> None:
        if options.mode is Mode.FAILFAST:
            raise damage
        passed.add(f"{damage}; what the metadata says there is not known")

    until = Moment(time_ms=options.as_of_ms) if options.as_of_ms else END
    view, show_secrets = options.view.value, options.show_secrets
    yield from cluster_view_rows(view, logs, until, on_damage, show_secrets=show_secrets)
    passed.summarise(f"{logs[0].name}: {passed.count} damaged places in all")


def read_partitions(
    reads: Iterable[PartitionRead], options: ReadOptions, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of partitions in the requested view, one partition after the other. A batch
    has those of many: most have few."""
    rows = chain.from_iterable(_partition_rows(read, options) for read in reads)
    yield from table_batches(options.view.value, rows, {}, columns)


def _partition_rows(read: PartitionRead, options: ReadOptions) -> list[TableRow]:
    """Return the rows of a partition. If a file is deleted meanwhile, they are made again from what
    is left. Rule: docs/format.md F951."""

    def made(log: PartitionLog) -> list[TableRow]:
        return list(_ROWS[options.view](replace(read, log=log), options))

    constants = log_columns(read.log)
    return [{**constants, **row} for row in read_relisted(read.log, made) or ()]


def _recovery_plan(read: PartitionRead, options: ReadOptions) -> Iterator[TableRow]:
    retention = read.retention if options.as_of_ms else None
    yield recovery_row(read.log, _recovery_settings(read.log, options), retention)


def _recovery_settings(log: PartitionLog, options: ReadOptions) -> RecoverySettings:
    is_clean = options.shutdown is Shutdown.CLEAN
    release = started_release(options.kafka_version)
    return RecoverySettings.of(
        log,
        options.as_of_ms,
        is_clean_shutdown=None if options.shutdown is Shutdown.AS_FOUND else is_clean,
        index_interval_bytes=options.index_interval_bytes,
        reads_wrappers=is_at_least(release, _READS_WRAPPERS),
        needs_snapshot=not is_at_least(release, _WITHOUT_SNAPSHOT),
    )


def _retention_plan(read: PartitionRead, options: ReadOptions) -> Iterator[TableRow]:
    yield from retention_rows(read.log, read.retention, options.as_of_ms)


def _compaction_report(read: PartitionRead, options: ReadOptions) -> Iterator[TableRow]:
    yield from compaction_rows(read.log, read.compaction, options.as_of_ms, read.before)


def _past_time(options: ReadOptions) -> PastTime | None:
    at_ms = options.as_of_ms
    return PastTime(at_ms, time.time_ns() // 1_000_000) if at_ms else None


def _transactions(read: PartitionRead, options: ReadOptions) -> Iterator[TableRow]:
    passed = PassedDamage(options.mode)

    def on_damage(damage: CorruptDataError) -> None:
        if options.mode is Mode.FAILFAST:
            raise damage
        passed.add(f"{damage}; transactions may end, or have batches, there")

    yield from view_transaction_rows(read.log, _past_time(options), on_damage)
    passed.summarise(f"{read.log.name}: {passed.count} damaged places in all")


_ROWS: dict[View, Callable[[PartitionRead, ReadOptions], Iterator[TableRow]]] = {
    View.SEGMENTS: lambda read, _: segment_rows(read.log),
    View.RECOVERY_PLAN: _recovery_plan,
    View.RETENTION_PLAN: _retention_plan,
    View.TRANSACTIONS: _transactions,
    View.STABLE_OFFSETS: lambda read, asked: iter([stable_offset_row(read.log, _past_time(asked))]),
    View.PRODUCER_SEQUENCES: lambda read, _: sequence_rows(read.log),
    View.COMPACTION_REPORT: _compaction_report,
}
