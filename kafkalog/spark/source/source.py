"""`spark.read.format("kafkalog")`: the data source."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from kafkalog.spark.source.projection import projected_columns, view_schema
from kafkalog.spark.worker_daemon import quieten_planner
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.reading.offset_ranges import OffsetRequest
from kafkalog.views.options.options import ReadOptions, read_options
from kafkalog.views.options.stream_options import loaded_options, stream_options
from kafkalog.views.options.topics import TopicChoice

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkalog.views.planning.planning import Read

NAME = "kafkalog"

# All that plans imports this, the process that looks for sources too.
quieten_planner()


class KafkaLogDataSource(DataSource):
    """Kafka's log directories as a DataFrame.

    Options and views: docs/options.md. The columns of view `records` are those of Spark's own Kafka
    source.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        # Whether this is a batch read or a stream only shows when a reader is asked for.
        return view_schema(loaded_options(self.options))

    def reader(self, schema: StructType) -> KafkaLogReader:
        options = read_options(self.options)
        return KafkaLogReader(options, projected_columns(options.view, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from kafkalog.spark.source.stream_reader import KafkaLogStreamReader

        options = stream_options(self.options)
        # The process that asks for the reader keeps it, and calls all that plans.
        use_file_access(options.read.file_access)
        return KafkaLogStreamReader(options, projected_columns(options.read.view, schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from kafkalog.spark.source.segment_writing import KafkaLogWriter
        from kafkalog.views.options.write_options import write_options

        return KafkaLogWriter(write_options(self.options), schema, overwrite=overwrite)


class ReadGroup(InputPartition):
    """The segments or partitions that one task reads."""

    def __init__(self, reads: tuple[Read, ...]) -> None:
        super().__init__(reads)
        self.reads = reads


class KafkaLogReader(DataSourceReader):
    """Plans a batch read in the driver and carries it out in the tasks.

    Does not implement `pushFilters`: in this Spark it gives wrong rows (docs/decisions).
    """

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def __reduce__(self) -> tuple[type[KafkaLogReader], tuple[ReadOptions, tuple[str, ...]]]:
        """As it goes to each task: which partitions and offsets are read is in what a task gets."""
        offsets = OffsetRequest(fail_on_data_loss=self._options.offsets.fail_on_data_loss)
        options = replace(self._options, topics=TopicChoice(), offsets=offsets)
        return KafkaLogReader, (options, self._columns)

    def partitions(self) -> list[InputPartition]:
        from kafkalog.views.planning.planning import planned_groups

        use_file_access(self._options.file_access)
        return [ReadGroup(reads) for reads in planned_groups(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from kafkalog.views.reading.work_log import READ, reported_work
        from kafkalog.views.view_reading import read_view

        _freeze_imports()
        use_file_access(self._options.file_access)
        # Without any partition Spark asks for one that is nothing.
        reads = getattr(partition, "reads", ())
        with reported_work(READ, {"reads": str(len(reads))}):
            yield from read_view(reads, self._options, self._columns)


_is_frozen = False


def _freeze_imports() -> None:
    """Spare the garbage collection after each task from walking through all imported modules."""
    global _is_frozen
    if not _is_frozen:
        gc.collect()
        gc.freeze()
        _is_frozen = True
