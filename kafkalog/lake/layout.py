"""Where and how tasks write the Parquet files of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

# The table that all topics are in, unless each has its own.
RECORDS = "ingested_records"
# Large enough that a table of terabytes has few files, small enough that a scan of few rows skips
# most of the table.
TARGET_FILE_BYTES = 256 * 1024 * 1024
# The namespace of Iceberg tables whose name has none.
DEFAULT_NAMESPACE = "kafkalog"


class PartitionBy(Enum):
    """What the files of a table are partitioned by. The value is the name of the column."""

    TOPIC = "topic"
    DAY = "day"
    HOUR = "hour"


class Compression(Enum):
    """Codecs of Parquet that Spark, DuckDB and Arrow all read."""

    NONE = "none"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"
    GZIP = "gzip"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How the files of a table are written.

    A file of more than `target_file_bytes` is followed by another. `compression_level` is the
    codec's own default where it is None. Days and hours are those of the record's timestamp, in
    UTC.
    """

    partition_by: tuple[PartitionBy, ...] = ()
    target_file_bytes: int = TARGET_FILE_BYTES
    compression: Compression = Compression.ZSTD
    compression_level: int | None = None


@dataclass(frozen=True, slots=True)
class TableOutput:
    """Where and how tasks write the files of one table, for the run with the number `ingest_run`.

    `path` is the table's directory, local or a URI. With `has_pending_folder` files are in a folder
    that readers skip until the commit moves them, for tables whose readers list directories. With
    `keeps_partition_columns` the files have the column `topic` although it is in their path, as
    Iceberg wants it. `table` names the table where a run writes several. `decoded` are the columns
    of decoded keys and values that the files have, in the JSON form of Spark's types.
    """

    path: str
    ingest_run: int
    layout: TableLayout = TableLayout()
    table: str = ""
    has_pending_folder: bool = False
    keeps_partition_columns: bool = False
    decoded: tuple[Mapping[str, Any], ...] = ()
