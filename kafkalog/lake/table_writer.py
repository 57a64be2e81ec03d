"""Rows to the Parquet files of a table: which file each row is in, and when a file ends.

Memory is bounded: rows wait in Arrow until they fill a row group, which is then written. Files have
names that no other file has, and do not exist for readers until a commit names them.
"""

from __future__ import annotations

import uuid
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import FileMetaData, ParquetWriter

from kafkalog.columns.arrays import fixed_width, present
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.decoded_columns import DECODED_VALUES
from kafkalog.lake.layout import Compression, PartitionBy, TableLayout, TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.written_file import Bound, WrittenFile

# Of rows that wait in memory, in all files of a writer together.
ROW_GROUP_BYTES = 64 * 1024 * 1024
# Files with row groups that are open at once: an object store buffers some MiB for each.
_MOST_OPEN = 8
# Files whose rows all wait in memory still.
_MOST_WAITING = 10_000
# Where files are until a commit names them. Spark and Arrow skip the folder, DuckDB does not: it
# lists files by their ending.
PENDING_FOLDER, _PENDING_ENDING = "_uncommitted", ".pending"
# Hive's name for a partition whose value is null.
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
# Columns of bytes: neither dictionaries nor bounds are of use, and both take time and memory.
PAYLOAD_COLUMNS = frozenset({"key", "value", "headers", *DECODED_VALUES})
_UNIT_US = {PartitionBy.DAY: 86_400_000_000, PartitionBy.HOUR: 3_600_000_000}
_TIME_FORMAT = {PartitionBy.DAY: "%Y-%m-%d", PartitionBy.HOUR: "%Y-%m-%d-%H"}

_USUAL_LAYOUT = TableLayout()

_PartitionValues = tuple[tuple[str, str | None], ...]


class TableWriter:
    """Writes rows to new files of one table.

    Each method raises OSError as the file system does; then call `abort`.
    """

    def __init__(self, output: TableOutput) -> None:
        self._directory = OutputDirectory(output.path)
        self._output = output
        by_topic = PartitionBy.TOPIC in output.layout.partition_by
        self._leaves_out_topic = by_topic and not output.keeps_partition_columns
        self._open: OrderedDict[_PartitionValues, _OpenFile] = OrderedDict()
        self._waiting_bytes = 0
        self._written: list[WrittenFile] = []

    def write(self, rows: pa.RecordBatch, key: TopicPartition) -> None:
        """Write rows of one topic and partition."""
        for values, some in _divided(rows, key, self._output.layout.partition_by):
            self._write(values, some, key)

    def close(self) -> list[WrittenFile]:
        """Complete all files and return what was written, in order."""
        while self._open:
            self._complete(next(iter(self._open)))
        return self._written

    def abort(self) -> None:
        """Remove what was written."""
        for file in self._open.values():
            file.abandon()
        paths = [file.path for file in self._open.values()]
        self._open.clear()
        for path in [*paths, *(file.written_path for file in self._written)]:
            self._directory.delete(path)
        self._written.clear()

    def _write(self, values: _PartitionValues, rows: pa.RecordBatch, key: TopicPartition) -> None:
        file = self._open.get(values)
        if file is None:
            if len(self._open) == _MOST_WAITING:
                self._complete(next(iter(self._open)))
            file = self._open[values] = self._new_file(values)
        self._open.move_to_end(values)
        if self._leaves_out_topic:
            rows = rows.drop_columns([PartitionBy.TOPIC.value])
        self._waiting_bytes += file.add(rows, key)
        while self._waiting_bytes >= ROW_GROUP_BYTES:
            self._flush_largest()
        if file.size >= self._output.layout.target_file_bytes:
            self._complete(values)

    def _flush_largest(self) -> None:
        largest = max(self._open.values(), key=lambda each: each.waiting_bytes)
        with_rows = [values for values, each in self._open.items() if each.has_row_groups]
        if not largest.has_row_groups and len(with_rows) >= _MOST_OPEN:
            self._complete(with_rows[0])
        self._waiting_bytes -= largest.flush()

    def _new_file(self, values: _PartitionValues) -> _OpenFile:
        folders = [f"{name}={_in_path(value)}/" for name, value in values]
        path = f"{''.join(folders)}{uuid.uuid4()}.parquet"
        pending = (
            f"{PENDING_FOLDER}/{uuid.uuid4()}{_PENDING_ENDING}"
            if self._output.has_pending_folder
            else None
        )
        return _OpenFile(self._directory, path, pending, values, self._output.layout)

    def _complete(self, values: _PartitionValues) -> None:
        file = self._open[values]
        self._waiting_bytes -= file.flush()
        self._written.append(file.close(self._output.table))
        del self._open[values]


@contextmanager
def removed_on_error(writer: TableWriter) -> Iterator[TableWriter]:
    """Remove what a writer has written if the block fails."""
    try:
        yield writer
    except BaseException:
        writer.abort()
        raise


def written_rows(
    output: TableOutput, table: str, batches: Iterable[pa.RecordBatch]
) -> list[WrittenFile]:
    """Write the rows of a table of no topic to a new file; return it, or none without rows."""
    with removed_on_error(TableWriter(output)) as writer:
        for batch in batches:
            if len(batch):
                writer.write(batch, (table, 0))
        return writer.close()


class _OpenFile:
    """A file that grows by row groups."""

    def __init__(
        self,
        directory: OutputDirectory,
        path: str,
        pending_path: str | None,
        values: _PartitionValues,
        layout: TableLayout,
    ) -> None:
        self._final_path, self._pending_path = path, pending_path
        self._values, self._layout = values, layout
        self._directory = directory
        self._sink: Any = None
        self._writer: ParquetWriter | None = None
        self._metadata: list[FileMetaData] = []
        self._rows: list[pa.RecordBatch] = []
        self._counts: Counter[TopicPartition] = Counter()
        self.waiting_bytes = 0

    @property
    def path(self) -> str:
        """Where the file is until the commit."""
        return self._pending_path or self._final_path

    @property
    def size(self) -> int:
        """The bytes that are written."""
        return 0 if self._sink is None else int(self._sink.tell())

    @property
    def has_row_groups(self) -> bool:
        """Whether a part of the file is written, so that it takes memory of its own."""
        return self._sink is not None

    def add(self, rows: pa.RecordBatch, key: TopicPartition) -> int:
        """Keep rows for the next row group; return their bytes in memory."""
        size = int(rows.nbytes)
        self._rows.append(rows)
        self._counts[key] += len(rows)
        self.waiting_bytes += size
        return size

    def flush(self) -> int:
        """Write the rows that wait as a row group; return how many bytes of memory they took."""
        if not self._rows:
            return 0
        rows, size = pa.Table.from_batches(self._rows), self.waiting_bytes
        self._rows, self.waiting_bytes = [], 0
        with self._named_in_errors():
            if self._writer is None:
                self._sink = self._directory.create(self.path)
                self._writer = parquet_writer(self._sink, rows.schema, self._layout, self._metadata)
            self._writer.write_table(rows, row_group_size=len(rows))
        return size

    def close(self, table: str) -> WrittenFile:
        """Write the end of the file and force it to disk, before a commit can name it."""
        with self._named_in_errors():
            if self._writer is not None:
                self._writer.close()
            size = self.size
            self._sink.close()
            self._directory.flush([self.path])
        (metadata,) = self._metadata
        least, greatest, null_counts = _bounds(metadata)
        return WrittenFile(
            path=self._final_path,
            size=size,
            rows=metadata.num_rows,
            partition_values=dict(self._values),
            least=least,
            greatest=greatest,
            null_counts=null_counts,
            rows_of=dict(self._counts),
            pending_path=self._pending_path,
            table=table,
        )

    def abandon(self) -> None:
        """Close the file, which is not complete."""
        if self._writer is not None:
            # Or else it writes the end of the file when it is collected.
            self._writer.is_open = False
        if self._sink is not None and not self._sink.closed:
            with suppress(OSError):
                self._sink.close()

    @contextmanager
    def _named_in_errors(self) -> Iterator[None]:
        """Add the file's path to an OSError, such as where the disk is full."""
        try:
            yield
        except OSError as error:
            error.filename = error.filename or self._directory.location(self.path)
            raise


def parquet_writer(
    sink: Any,
    schema: pa.Schema,
    layout: TableLayout = _USUAL_LAYOUT,
    metadata: list[FileMetaData] | None = None,
    *,
    data_page_version: str = "1.0",
) -> ParquetWriter:
    """Return a writer of rows of records or batches; `metadata` receives the file's at its end. The
    file has what the schema has beside its fields, such as comments for Spark.

    Only columns with few values have dictionaries, and those with payloads no bounds: both would
    take several times the time, and copies of the largest values. Pages of version "2.0"
    take a copy of the largest value less, but some older readers of tables refuse them.
    """
    described = columns_with_statistics(schema)
    writer = ParquetWriter(
        sink,
        schema,
        compression=layout.compression.value
        if layout.compression is not Compression.NONE
        else None,
        compression_level=layout.compression_level,
        use_dictionary=[name for name, each in described.items() if _has_few_values(each)],
        write_statistics=list(described),
        store_schema=False,
        data_page_version=data_page_version,
        metadata_collector=metadata,
    )
    if schema.metadata:
        writer.add_key_value_metadata(schema.metadata)
    return writer


def columns_with_statistics(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return the columns that have statistics in files, and the parts of structs, such as
    `value_decoded.id`: all but payloads and lists."""
    return {name: found for field in schema for name, found in _leaves(field.name, field.type)}


def _leaves(name: str, data_type: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_struct(data_type):
        for field in data_type:
            yield from _leaves(f"{name}.{field.name}", field.type)
    elif name not in PAYLOAD_COLUMNS and not pa.types.is_nested(data_type):
        yield name, data_type


def _has_few_values(data_type: pa.DataType) -> bool:
    return data_type in (pa.string(), pa.int32()) or pa.types.is_dictionary(data_type)


def _bounds(metadata: FileMetaData) -> tuple[dict[str, Bound], dict[str, Bound], dict[str, int]]:
    """Return least value, greatest value and number of nulls of each column that has statistics."""
    least: dict[str, Bound] = {}
    greatest: dict[str, Bound] = {}
    null_counts: Counter[str] = Counter()
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            name, statistics = chunk.path_in_schema, chunk.statistics
            # Of the parts of decoded values they are in the file only.
            if statistics is None or "." in name:
                continue
            null_counts[name] += statistics.null_count
            # Delta's own writer has no bounds of flags.
            if statistics.has_min_max and chunk.physical_type != "BOOLEAN":
                low, high = _value(statistics.min_raw), _value(statistics.max_raw)
                least[name] = min(least.get(name, low), low)
                greatest[name] = max(greatest.get(name, high), high)
    return least, greatest, dict(null_counts)


def _value(raw: bytes | int) -> Bound:
    return raw.decode() if isinstance(raw, bytes) else int(raw)


def _divided(
    rows: pa.RecordBatch, key: TopicPartition, partition_by: Sequence[PartitionBy]
) -> Iterator[tuple[_PartitionValues, pa.RecordBatch]]:
    """Yield the rows of each partition of the table, in their order."""
    times = [by for by in partition_by if by in _UNIT_US]
    if not times:
        yield _values(key, partition_by, None), rows
        return
    # Days are made of hours: the finest unit divides.
    unit = min(_UNIT_US[by] for by in times)
    timestamps = rows.column("timestamp").cast(pa.int64())
    units = np.floor_divide(timestamps.fill_null(0).to_numpy(), unit)
    has_time = present(timestamps)
    if not has_time.all():
        yield _values(key, partition_by, None), rows.filter(fixed_width(~has_time, pa.bool_()))
    for number in dict.fromkeys(units[has_time].tolist()):
        is_own = has_time & (units == number)
        some = rows if is_own.all() else rows.filter(fixed_width(is_own, pa.bool_()))
        yield _values(key, partition_by, number * unit), some


def _values(
    key: TopicPartition, partition_by: Sequence[PartitionBy], time_us: int | None
) -> _PartitionValues:
    return tuple(
        (by.value, key[0] if by is PartitionBy.TOPIC else _time_text(by, time_us))
        for by in partition_by
    )


def _time_text(by: PartitionBy, time_us: int | None) -> str | None:
    if time_us is None:
        return None
    moment = pa.scalar(time_us, pa.timestamp("us", tz="UTC"))
    return str(pc.strftime(moment, format=_TIME_FORMAT[by]).as_py())


def _in_path(value: str | None) -> str:
    return _NULL_PARTITION if value is None else quote(value, safe="")
