"""`spark.read.format("kafkalog")`: the data source."""

from __future__ import annotations

import time
from dataclasses import replace

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceStreamReader
from pyspark.sql.types import StructType

from kafkalog.spark.source.batch_reader import KafkaLogReader
from kafkalog.spark.source.projection import projected_columns, view_schema
from kafkalog.spark.source.quiet_workers import quieten_planner
from kafkalog.spark_versions import WITH_STREAM_LIMITS, SparkVersion
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.reading.offset_ranges import TimeRule
from kafkalog.views.options.options import read_options
from kafkalog.views.options.stream_options import loaded_options, stream_options

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
        # Whether this is a batch read or a stream only shows when Spark requests a reader.
        return view_schema(loaded_options(self.options))

    def reader(self, schema: StructType) -> KafkaLogReader:
        options = read_options(self.options).by_time_rule(_clock())
        return KafkaLogReader(options, projected_columns(options.view, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        given = stream_options(self.options)
        options = replace(given, read=given.read.by_time_rule(_clock()))
        # The process that asks for the reader keeps it, and calls all that plans.
        use_file_access(options.read.file_access)
        columns = projected_columns(options.read.view, schema)
        if SparkVersion.of(pyspark.__version__)[:2] >= WITH_STREAM_LIMITS:
            from kafkalog.spark.source.limited_stream_reader import LimitedStreamReader

            return LimitedStreamReader(options, columns)
        from kafkalog.spark.source.stream_reader import KafkaLogStreamReader

        options.refuse_limits(
            f"a stream without limits, or Spark 4.2: this is {pyspark.__version__}"
        )
        return KafkaLogStreamReader(options, columns)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from kafkalog.spark.source.segment_writing import KafkaLogWriter
        from kafkalog.views.options.write_options import write_options

        return KafkaLogWriter(write_options(self.options), schema, overwrite=overwrite)


def _clock() -> TimeRule:
    """Return the rule by which a doubtful time is logged, and counts as in Spark's Kafka source."""
    return TimeRule(time.time_ns() // 1_000_000)
