"""Small files of a table into files of the target size, in the order of offsets.

Memory is bounded: rows are sorted in portions, each of some partitions or of a range of offsets.
Rule: docs/ingest.md F654.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile

from kafkalog.columns.arrays import fixed_width, integers
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.file_rows import file_rows, rows_of_each_partition
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.table_writer import TableWriter
from kafkalog.lake.target import Target
from kafkalog.lake.written_file import WrittenFile

# Of rows that are sorted at a time.
PORTION_BYTES = 64 * 1024 * 1024
# In one group: the footers of all are kept in memory.
_MOST_FILES = 10_000
_ORDER = [(name, "ascending") for name in ("topic", "partition", "offset")]

_Groups = Sequence[Sequence[WrittenFile]]
# Writes the rows of each group of files to new ones, such as on several processes.
Rewrite = Callable[[TableOutput, _Groups], Iterable[WrittenFile]]


@dataclass(frozen=True, slots=True)
class RewrittenFiles:
    """The files that were replaced, and those with their rows."""

    removed: Sequence[WrittenFile]
    added: Sequence[WrittenFile]


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """A row group of a file, its bytes when they are decoded, and its least and greatest offset."""

    file: WrittenFile
    number: int
    size: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class _Portion:
    """The rows of some partitions that have offsets in [from_offset, until_offset)."""

    keys: frozenset[TopicPartition]
    from_offset: int = 0
    until_offset: int = LARGEST_OFFSET


def small_file_groups(
    files: Iterable[WrittenFile], target_file_bytes: int
) -> list[list[WrittenFile]]:
    """Return groups of files of less than half the target size, each to become one file: of one
    partition of the table, about the target size together."""
    by_values: dict[tuple[tuple[str, str | None], ...], list[WrittenFile]] = defaultdict(list)
    for file in files:
        if file.size < target_file_bytes // 2:
            by_values[tuple(file.partition_values.items())].append(file)
    return [
        group
        for some in by_values.values()
        for group in _groups(sorted(some, key=_first_row), target_file_bytes)
        if len(group) > 1
    ]


def rewritten_files(
    table: Target, rewrite: Rewrite, output: TableOutput, groups: _Groups
) -> list[WrittenFile]:
    """Return the files that `rewrite` writes; after an error there are none."""
    new: list[WrittenFile] = []
    try:
        for file in rewrite(output, groups):
            new.append(file)
    except BaseException:
        table.discard(new)
        raise
    return new


def rewritten_groups(output: TableOutput, groups: _Groups) -> Iterable[WrittenFile]:
    """Rewrite one group after another."""
    for group in groups:
        yield from rewritten_in_order(output, group)


def rewritten_in_order(output: TableOutput, files: Sequence[WrittenFile]) -> list[WrittenFile]:
    """Write the rows of some files of one partition of the table to new files, by topic, partition
    and offset, and return these.

    Raises OSError as reading and writing do; then nothing new is left.
    """
    directory, writer = OutputDirectory(output.path), TableWriter(output)
    try:
        groups, schema = _row_groups(directory, files)
        for portion in _portions(groups):
            for batch in _sorted(_rows(directory, groups, portion, schema)).to_batches():
                for key, rows in rows_of_each_partition(batch):
                    writer.write(rows, key)
        return writer.close()
    except BaseException:
        writer.abort()
        raise


def _first_row(file: WrittenFile) -> tuple[str, int, int]:
    least = file.least
    return str(least.get("topic", "")), int(least["partition"]), int(least["offset"])


def _groups(files: Sequence[WrittenFile], target_file_bytes: int) -> Iterator[list[WrittenFile]]:
    group: list[WrittenFile] = []
    size = 0
    for file in files:
        if group and (size + file.size > target_file_bytes or len(group) == _MOST_FILES):
            yield group
            group, size = [], 0
        group.append(file)
        size += file.size
    yield group


def _row_groups(
    directory: OutputDirectory, files: Sequence[WrittenFile]
) -> tuple[list[_RowGroup], pa.Schema]:
    """Return the row groups of all files, and the columns that they have together."""
    groups, schemas = [], [pa.schema([("topic", pa.string())])]
    for file in files:
        with directory.open(file.path) as source, ParquetFile(source) as parquet:
            schemas.append(parquet.schema_arrow)
            for number in range(parquet.metadata.num_row_groups):
                found = parquet.metadata.row_group(number)
                columns = (found.column(index) for index in range(found.num_columns))
                offsets = next(each for each in columns if each.path_in_schema == "offset")
                bounds = offsets.statistics
                groups.append(
                    _RowGroup(file, number, found.total_byte_size, bounds.min, bounds.max)
                )
    # A table can have got fields, and wider numbers, since its first files were written.
    return groups, pa.unify_schemas(schemas, promote_options="permissive")


def _portions(groups: Sequence[_RowGroup]) -> Iterator[_Portion]:
    """Yield portions of about `PORTION_BYTES` or less, in the order of their rows."""
    sizes = Counter[TopicPartition]()
    for group in groups:
        for key, rows in group.file.rows_of.items():
            sizes[key] += group.size * rows // group.file.rows
    keys: list[TopicPartition] = []
    size = 0
    for key in sorted(sizes):
        size += sizes[key]
        if keys and size > PORTION_BYTES:
            yield _Portion(frozenset(keys))
            keys, size = [], sizes[key]
        if size > PORTION_BYTES:
            yield from _offset_portions(key, groups)
            size = 0
        else:
            keys.append(key)
    if keys:
        yield _Portion(frozenset(keys))


def _offset_portions(key: TopicPartition, groups: Iterable[_RowGroup]) -> Iterator[_Portion]:
    start, size = 0, 0.0
    for group in sorted(groups, key=lambda each: each.first_offset):
        if key not in group.file.rows_of:
            continue
        own = group.size * group.file.rows_of[key] / group.file.rows
        if size + own > PORTION_BYTES and group.first_offset > start:
            yield _Portion(frozenset([key]), start, group.first_offset)
            start, size = group.first_offset, 0.0
        size += own
    yield _Portion(frozenset([key]), start)


def _rows(
    directory: OutputDirectory, groups: Iterable[_RowGroup], portion: _Portion, schema: pa.Schema
) -> pa.Table:
    """Return the rows of a portion, each file's in its order."""
    numbers: dict[str, list[int]] = defaultdict(list)
    files: dict[str, WrittenFile] = {}
    for group in groups:
        is_within = (
            group.first_offset < portion.until_offset and group.last_offset >= portion.from_offset
        )
        if is_within and portion.keys & group.file.rows_of.keys():
            files[group.file.path] = group.file
            numbers[group.file.path].append(group.number)
    batches = [
        _with_columns(_chosen(batch, file, portion), schema)
        for path, file in files.items()
        for batch in file_rows(directory, file, numbers[path])
    ]
    return pa.Table.from_batches(batches, schema)


def _chosen(rows: pa.RecordBatch, file: WrittenFile, portion: _Portion) -> pa.RecordBatch:
    """Return those rows of a file that are in the portion; a copy, so that the others' memory is
    free."""
    offsets = integers(rows.column("offset"))
    is_chosen = (offsets >= portion.from_offset) & (offsets < portion.until_offset)
    if not file.rows_of.keys() <= portion.keys:
        position = 0
        for key, some in rows_of_each_partition(rows):
            is_chosen[position : position + len(some)] &= key in portion.keys
            position += len(some)
    return rows if is_chosen.all() else rows.filter(fixed_width(is_chosen, pa.bool_()))


def _with_columns(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [
        rows.column(field.name)
        if field.name in rows.schema.names
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _sorted(rows: pa.Table) -> pa.Table:
    order = pc.sort_indices(rows, sort_keys=_ORDER)
    is_in_order = np.array_equal(order.to_numpy(), np.arange(len(order)))
    return rows if is_in_order else rows.take(order)
