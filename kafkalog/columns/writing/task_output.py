"""What a task writes: rows in, the logs of whole partitions out, one after another.

Rules: docs/writing.md F560 to F569.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from kafkalog.columns.arrays import integers
from kafkalog.columns.writing.batch_encoder import BatchEncoder
from kafkalog.columns.writing.written_rows import partitions_of
from kafkalog.errors import RowError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.partition_output import ORDER, PartitionOutput, WrittenLog


class TaskOutput:
    """Writes rows to partitions of a log directory; a context manager that leaves nothing behind
    unless `finish` was called.

    One partition is open at a time. `attempt` is as in PartitionOutput, `now_ms` returns the time.
    """

    def __init__(
        self,
        log_dir: str,
        settings: LogSettings,
        encoder: BatchEncoder,
        *,
        attempt: tuple[str, str],
        now_ms: Callable[[], int],
        topic_ids: Mapping[str, str],
    ) -> None:
        self._log_dir = log_dir
        self._settings = settings
        self._encoder = encoder
        self._attempt = attempt
        self._now_ms = now_ms
        self._topic_ids = topic_ids
        self._open: tuple[TopicPartition, PartitionOutput] | None = None
        self._written: dict[TopicPartition, tuple[PartitionOutput, WrittenLog]] = {}
        self._is_finished = False

    def append(self, rows: pa.RecordBatch) -> None:
        """Append rows. Raises RowError if they are not records or
        come in a wrong order, LogDirError as PartitionOutput does."""
        for topic, partition, found in partitions_of(rows):
            log = self._output((topic, partition), found).log
            for batch in self._encoder.batches(found, log.next_offset):
                log.append(batch)

    def finish(self) -> tuple[WrittenLog, ...]:
        """Close everything. Return what was written."""
        self._close()
        self._is_finished = True
        return tuple(log for _, log in self._written.values())

    def _output(self, key: TopicPartition, rows: pa.RecordBatch) -> PartitionOutput:
        if self._open is not None and self._open[0] == key:
            return self._open[1]
        self._close()
        if key in self._written:
            raise RowError("rows of {}-{} came again after others: {}".format(*key, ORDER))
        output = PartitionOutput(
            self._log_dir,
            key,
            self._settings,
            start_offset=_first_offset(rows),
            attempt=self._attempt,
            now_ms=self._now_ms,
            topic_id=self._topic_ids.get(key[0]),
        )
        self._open = key, output
        return output

    def _close(self) -> None:
        if self._open is not None:
            key, output = self._open
            self._written[key] = output, output.finish()
            self._open = None

    def __enter__(self) -> TaskOutput:
        return self

    def __exit__(self, *_raised: object) -> None:
        if self._is_finished:
            return
        for output, _ in self._written.values():
            output.drop()
        if self._open is not None:
            self._open[1].drop()


def _first_offset(rows: pa.RecordBatch) -> int:
    """Return the offset of the first record, where the log begins."""
    index = rows.schema.get_field_index("offset")
    if index < 0 or rows.column(index)[:1].null_count:
        return 0
    return max(int(integers(rows.column(index)[:1])[0]), 0)
