"""Logs without a segment, which an account of bytes does not pass over: docs/format.md F76."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from kafkalog.columns.batches.byte_ranges import missing_end_rows
from kafkalog.columns.table_rows import table_batch
from kafkalog.storage.partition_log import PartitionLog, log_columns, with_own_checkpoints
from kafkalog.storage.reading.log_bounds import recorded_end


@dataclass(frozen=True, slots=True)
class LostLogRead:
    """A log whose records checkpoints know, without a segment."""

    log: PartitionLog
    size: int = 0


def lost_log_reads(logs: Iterable[PartitionLog]) -> list[LostLogRead]:
    """Return those among the logs that have lost every segment."""
    return [
        LostLogRead(with_own_checkpoints(log))
        for log in logs
        if not log.segments and [*_missing(log)]
    ]


def read_lost_log(read: LostLogRead, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the row of such a log in views `byte_ranges` and `faults`: it has no file to be of a
    size."""
    log = read.log
    constants = {**log_columns(log), "file": log.path}
    yield table_batch("byte_ranges", [*_missing(log)], constants, columns)


def _missing(log: PartitionLog) -> Iterator[dict[str, object]]:
    return missing_end_rows(log.log_start, 0, recorded_end(log))
