"""What an account of bytes says of a log's directory beside its segments: that all of them are
lost, and which snapshots of the cluster's metadata are damaged. Rules: docs/format.md F76, F921
and F922.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from kafkalog.columns.batches.byte_ranges import ByteRange, missing_end_rows
from kafkalog.columns.table_rows import table_batches
from kafkalog.inspection.metadata.metadata_start import snapshot_faults
from kafkalog.storage.log_dir.metadata_snapshots import snapshot_files
from kafkalog.storage.partition_log import PartitionLog, log_columns, with_own_checkpoints
from kafkalog.storage.reading.log_bounds import recorded_end


@dataclass(frozen=True, slots=True)
class DirectoryRead:
    """A log that has lost every segment, or that has files of snapshots, of `size` bytes in all."""

    log: PartitionLog
    has_snapshots: bool
    size: int = 0


def directory_reads(logs: Iterable[PartitionLog]) -> list[DirectoryRead]:
    """Return those among the logs that have lost every segment, or that have snapshots."""
    reads = []
    for log in logs:
        snapshots = snapshot_files(log)
        if snapshots or any(_missing(log)):
            size = sum(entry.size for entry in snapshots)
            reads.append(DirectoryRead(with_own_checkpoints(log), bool(snapshots), size))
    return reads


def read_of_directory(read: DirectoryRead, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of such a log in views `byte_ranges` and `faults`: one without a file where
    every segment is lost, and one for each damaged snapshot."""
    constants = {**log_columns(read.log), "file": read.log.path}
    yield from table_batches("byte_ranges", _rows(read), constants, columns)


def _rows(read: DirectoryRead) -> Iterator[ByteRange]:
    yield from _missing(read.log)
    if read.has_snapshots:
        yield from (fault.byte_range() for fault in snapshot_faults(read.log))


def _missing(log: PartitionLog) -> Iterator[ByteRange]:
    if not log.segments:
        yield from missing_end_rows(log.log_start, 0, recorded_end(log))
