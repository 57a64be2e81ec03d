"""`df.write.format("kafkalog")`: tasks write partitions, the driver gives them their names.

Rules: docs/writing.md F560 to F569.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kafkalog.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkalog.storage.writing.partition_output import WrittenLog
    from kafkalog.views.options.write_options import WriteOptions

_ID_DIGITS = 16


@dataclass
class LogsWritten(WriterCommitMessage):
    """The partitions that a task has written."""

    logs: tuple[WrittenLog, ...]


class KafkaLogWriter(DataSourceArrowWriter):
    """A write of whole partitions to a log directory.

    Spark asks no source for an order of rows: each partition's have to come in one task, sorted by
    offset, which tasks and `commit` check (docs/decisions/0016-who-orders-rows.md).
    """

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        from kafkalog.spark.source.written_columns import check_columns

        if overwrite:
            raise OptionError("mode", "overwrite", "append: partitions that exist are left alone")
        check_columns(schema, options.topic)
        self._options = options
        self._write_id = uuid.uuid4().hex[:_ID_DIGITS]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> LogsWritten:
        from kafkalog.columns.writing.batch_encoder import BatchEncoder
        from kafkalog.columns.writing.task_output import TaskOutput
        from kafkalog.spark.source.written_columns import written_rows

        options = self._options
        most_bytes = options.settings.max_message_bytes
        with TaskOutput(
            options.log_dir,
            options.settings,
            BatchEncoder(options.compression, options.batch_bytes, most_bytes),
            # Attempts of one task may run at the same time.
            attempt=(self._write_id, uuid.uuid4().hex[:_ID_DIGITS]),
            now_ms=lambda: time.time_ns() // 1_000_000,
            topic_ids=options.topic_ids,
        ) as output:
            for rows in written_rows(iterator, options.topic):
                output.append(rows)
            return LogsWritten(output.finish())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        from kafkalog.storage.writing.partition_output import commit_logs, remove_scratch

        found = [message for message in messages if isinstance(message, LogsWritten)]
        commit_logs(self._options.log_dir, [log for message in found for log in message.logs])
        remove_scratch(self._options.log_dir, self._write_id)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        from kafkalog.storage.writing.partition_output import remove_scratch

        remove_scratch(self._options.log_dir, self._write_id)
