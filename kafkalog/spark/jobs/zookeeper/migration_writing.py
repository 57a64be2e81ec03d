"""Moved offsets as files: segments of `__consumer_offsets`, or commands of ZooKeeper's shell.

Rows are written by the driver, partition by partition: offsets are as few as znodes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafkalog.coordination.zookeeper.offset_migration import Move
from kafkalog.coordination.zookeeper.zookeeper_commands import OffsetZnode, Shell, offset_commands
from kafkalog.errors import OptionError
from kafkalog.inspection.groups.offset_segments import (
    NEW_LOG,
    AppendPoint,
    WrittenSegment,
    end_to_go_on_from,
    last_magic,
    write_commits,
)
from kafkalog.messages.commit_records import COMMIT_FORMS, CommitForm, GroupCommit, form_of_magic
from kafkalog.spark.jobs.zookeeper.migration_reading import OffsetStores, existing_commands
from kafkalog.spark.jobs.zookeeper.migration_request import MigrationRequest
from kafkalog.spark.jobs.zookeeper.migration_words import segment_words
from kafkalog.storage.files.output_files import whole_file
from kafkalog.storage.files.whole_directory import whole_directory
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.words import counted

_ORDER = ("group_id", "topic", "partition")


def written_moves(
    stores: OffsetStores, rows: DataFrame, request: MigrationRequest, now_ms: int
) -> Iterator[str]:
    """Write what the options request from the rows of table `offset_migration`, and say what it
    is."""
    target, commands = request.write_segments, request.write_zookeeper_commands
    if target is not None:
        segments = write_segments(rows, stores, request, target, now_ms)
        yield segment_words(segments, target)
    if commands is not None:
        shell = Shell(request.zookeeper_shell)
        count = write_zookeeper_commands(rows, stores.znodes, commands, shell)
        yield f"wrote {counted(count, 'offset')} as commands to {commands}"


def write_segments(
    rows: DataFrame, stores: OffsetStores, request: MigrationRequest, target: str, now_ms: int
) -> list[WrittenSegment]:
    """Write the offsets that are moved to Kafka, `rows` being those of table `offset_migration`.

    All is written or nothing. Nothing is where the number of partitions of `__consumer_offsets` is
    not known, or one of them does not allow to go on (OptionError, LogDirError), nor where a name
    is longer than a record can have it (SchemaError).
    """
    moved = rows.where(F.col("to_kafka") == Move.MOVE.value).persist()
    of_offsets = [log for log in stores.logs if log.topic == CONSUMER_OFFSETS and log.is_live]
    ends = _ends(moved, stores, of_offsets)
    forms = commit_forms(request.broker_version, ends, of_offsets)
    ordered = moved.orderBy("offsets_partition", *_ORDER).toLocalIterator()
    time_ms = None if request.keeps_commit_times else now_ms
    with whole_directory(target, os.fsync) as scratch:
        return [
            write_commits(
                scratch,
                partition,
                ends[partition],
                _commits(found, time_ms),
                forms[partition],
                now_ms=now_ms,
            )
            for partition, found in groupby(ordered, key=lambda row: row.offsets_partition)
        ]


def _ends(
    moved: DataFrame, stores: OffsetStores, of_offsets: Sequence[PartitionLog]
) -> Mapping[int, AppendPoint]:
    """Return where commits are appended to each partition that gets some."""
    partitions = [row[0] for row in moved.select("offsets_partition").distinct().collect()]
    if None in partitions:
        name = "--offsets-partitions"
        raise OptionError(name, None, "the number of partitions, which no input has")
    if not stores.replicas.has_topic:
        return dict.fromkeys(partitions, NEW_LOG)
    return {
        partition: end_to_go_on_from([log for log in of_offsets if log.partition == partition])
        for partition in partitions
    }


def commit_forms(
    broker_version: str | None, ends: Mapping[int, AppendPoint], of_offsets: Sequence[PartitionLog]
) -> Mapping[int, CommitForm]:
    """Return the form for each partition: of the given release, or of its last messages, or
    of the other partitions where it has none. Rule: docs/migration.md F480."""
    if broker_version is not None:
        return dict.fromkeys(ends, COMMIT_FORMS[broker_version])
    magics = {partition: end.magic for partition, end in ends.items()}
    if None in magics.values():
        known = [magic for log in of_offsets if (magic := last_magic(log)) is not None]
        if not known:
            name = "--broker-version"
            raise OptionError(name, None, f"the brokers' release: {CONSUMER_OFFSETS} is empty")
        magics = {key: min(known) if magic is None else magic for key, magic in magics.items()}
    return {key: form_of_magic(magic) for key, magic in magics.items() if magic is not None}


def _commits(rows: Iterable[Row], time_ms: int | None) -> Iterator[GroupCommit]:
    for row in rows:
        commit_ms = row.zookeeper_mtime_ms if time_ms is None else time_ms
        key = (row.group_id, row.topic, row.partition)
        yield GroupCommit(*key, row.zookeeper_offset, commit_ms)


def write_zookeeper_commands(rows: DataFrame, znodes: DataFrame, path: str, shell: Shell) -> int:
    """Write a command for each offset that is moved to ZooKeeper; return their number. Raises
    OptionError where the file exists.

    `znodes` are those of the data directory, with their paths.
    """
    moved = rows.where(F.col("to_zookeeper") == Move.MOVE.value).orderBy(*_ORDER)
    found = [
        OffsetZnode(
            row.chroot, row.group_id, row.topic, row.partition, row.kafka_offset, row.znode_version
        )
        for row in moved.collect()
    ]
    parents = {path for znode in found if znode.version is None for path in znode.parents}
    existing = {
        row.path
        for row in znodes.where(F.col("path").isin(sorted(parents))).select("path").collect()
    }
    lines = offset_commands(found, existing, shell)
    _write_new(path, "".join(f"{line}\n" for line in lines))
    return len(found)


def _write_new(path: str, text: str) -> None:
    if os.path.lexists(path):
        raise existing_commands(path)
    with whole_file(path) as file:
        file.write(text.encode())
