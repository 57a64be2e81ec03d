"""`spark.read.format("zookeeper")`: ZooKeeper's snapshots and transaction logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kafkalog.log_lines import logger
from kafkalog.spark.source.projection import known_columns, of_columns, table_struct
from kafkalog.spark.source.quiet_workers import quieten_planner
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.views.options.options import chosen_columns
from kafkalog.views.options.zookeeper.zookeeper_options import (
    ZOOKEEPER_VIEW_TABLES,
    ZookeeperOptions,
    read_zookeeper_options,
)
from kafkalog.zookeeper.data_dir import DataDir, find_data_dirs

if TYPE_CHECKING:
    import pyarrow as pa

_logger = logger(__name__)

quieten_planner()


class ZookeeperDataSource(DataSource):
    """ZooKeeper servers' data directories as a DataFrame. Options and views: docs/zookeeper.md."""

    @classmethod
    def name(cls) -> str:
        return "zookeeper"

    def schema(self) -> StructType:
        options = read_zookeeper_options(self.options)
        whole = table_struct(ZOOKEEPER_VIEW_TABLES[options.view])
        if options.columns is None:
            return whole
        return of_columns(whole, chosen_columns(options.view.value, whole.names, options.columns))

    def reader(self, schema: StructType) -> ZookeeperReader:
        options = read_zookeeper_options(self.options)
        whole = table_struct(ZOOKEEPER_VIEW_TABLES[options.view])
        return ZookeeperReader(options, known_columns(options.view.value, whole, schema))


class DataDirRead(InputPartition):
    """The data directory that one task reads."""

    def __init__(self, data_dir: DataDir) -> None:
        super().__init__(data_dir)
        self.data_dir = data_dir


class ZookeeperReader(DataSourceReader):
    """A task for each server's data directory."""

    def __init__(self, options: ZookeeperOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        use_file_access(self._options.file_access)
        if self._options.without_effect:
            unused = ", ".join(self._options.without_effect)
            _logger.warning("options without effect here: %s", unused)
        return [DataDirRead(data_dir) for data_dir in find_data_dirs(self._options.paths)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from kafkalog.views.reading.zookeeper_reading import read_data_dir

        use_file_access(self._options.file_access)
        if isinstance(partition, DataDirRead):
            yield from read_data_dir(partition.data_dir, self._options, self._columns)
