"""Salvage as a job: partitions in parallel, each written beside the others, then what a log
directory has at its top. Rules: docs/format.md F180 to F184, F252 and F253.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafkalog.columns.salvage import SalvageSettings, salvage_partition
from kafkalog.columns.table_rows import table_batch
from kafkalog.errors import CorruptDataError, LogDirError, UnsupportedFormatError
from kafkalog.format.checkpoints import (
    TopicPartition,
    read_offset_checkpoint,
    write_offset_checkpoint,
)
from kafkalog.spark.tables import table_schema
from kafkalog.storage.files import read_text
from kafkalog.storage.log_dir import META_PROPERTIES
from kafkalog.storage.names import (
    CLEANER_OFFSETS,
    CLUSTER_METADATA,
    LOG_STARTS,
    RECOVERY_POINTS,
    REPLICATION_OFFSETS,
)
from kafkalog.storage.oldest_log import is_oldest_layout
from kafkalog.storage.output_files import new_directory, write_file
from kafkalog.storage.partition_log import PartitionLog, log_columns, topic_id, with_own_checkpoints

_SCRATCH = ".salvage-"
# What is written anew: all that was salvaged is on disk and was on all replicas that there are.
_NEW_CHECKPOINTS = (RECOVERY_POINTS, REPLICATION_OFFSETS)


def salvageable(logs: Iterable[PartitionLog]) -> list[PartitionLog]:
    """The logs that a broker serves; a controller's own log is more than its segments.

    Raises LogDirError for logs of several log directories: they belong into as many new ones;
    UnsupportedFormatError for files of the oldest layout.
    """
    chosen = [log for log in logs if log.is_live and log.topic != CLUSTER_METADATA]
    places = sorted({log.log_dir.path for log in chosen})
    if len(places) != 1:
        found = ", ".join(places) or "no partition"
        raise LogDirError(f"one log directory is salvaged at a time, found {found}")
    oldest = next(filter(is_oldest_layout, chosen), None)
    if oldest is not None:
        raise UnsupportedFormatError(
            f"{oldest.path} has files of Kafka 0.7's layout, which no broker of today opens: view "
            "records reads what is sound in them"
        )
    return chosen


def salvage(
    spark: SparkSession, logs: Sequence[PartitionLog], target: str, settings: SalvageSettings
) -> DataFrame:
    """Write the logs of one log directory into the new one `target`; the rows of table
    `salvage`."""
    new_directory(target)
    reads = [with_own_checkpoints(log) for log in logs]
    tasks = spark.range(0, len(reads), 1, max(len(reads), 1))
    salvaged = tasks.mapInArrow(_salvage_tasks(reads, target, settings), table_schema("salvage"))
    rows = salvaged.collect()  # once: what the tasks write must not be written again
    ends = {(row.topic, row.partition): row.log_end_offset for row in rows}
    cleaned = {
        (row.topic, row.partition): row.cleaned_offset
        for row in rows
        if row.cleaned_offset is not None
    }
    finish_log_dir(logs[0].log_dir.path, target, ends, cleaned)
    return spark.createDataFrame(rows, table_schema("salvage"))


def _salvage_tasks(
    logs: Sequence[PartitionLog], target: str, settings: SalvageSettings
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield _salvaged(logs[number], target, settings)

    return run


def _salvaged(log: PartitionLog, target: str, settings: SalvageSettings) -> pa.RecordBatch:
    # A task that is tried again finds nothing of its first try in its way.
    scratch = os.path.join(target, f"{_SCRATCH}{uuid.uuid4().hex}")
    directory = os.path.join(scratch, log.name)
    found_id = topic_id(log)
    row = salvage_partition(log, directory, settings.with_topic_id(found_id))
    final = os.path.join(target, log.name)
    os.rename(directory, final)
    os.rmdir(scratch)
    constants = {**log_columns(log), "directory": final, "topic_id": found_id}
    return table_batch("salvage", [row], constants)


def finish_log_dir(
    source: str,
    target: str,
    ends: dict[TopicPartition, int],
    cleaned: Mapping[TopicPartition, int] | None = None,
) -> None:
    """Write the files at the top of the new log directory, `ends` being the log end offsets and
    `cleaned` how far those partitions are cleaned that were compacted."""
    for name in os.listdir(target):
        if name.startswith(_SCRATCH):
            shutil.rmtree(os.path.join(target, name))
    for name in _NEW_CHECKPOINTS:
        _write_text(target, name, write_offset_checkpoint(ends))
    # Copied from the source: offsets that are still right, as far as the new log goes.
    for name in (LOG_STARTS, CLEANER_OFFSETS):
        offsets = _offsets(os.path.join(source, name))
        if name == CLEANER_OFFSETS:
            offsets.update(cleaned or {})
        kept = {key: min(offset, ends[key]) for key, offset in offsets.items() if key in ends}
        _write_text(target, name, write_offset_checkpoint(kept))
    properties = read_text(os.path.join(source, META_PROPERTIES))
    if properties is not None:
        _write_text(target, META_PROPERTIES, properties)


def _offsets(path: str) -> dict[TopicPartition, int]:
    try:
        return read_offset_checkpoint(read_text(path) or "")
    except CorruptDataError:
        return {}


def _write_text(target: str, name: str, text: str) -> None:
    write_file(os.path.join(target, name), text.encode(), os.fsync)
