"""Rows of a table's files, read again in order to write some of them to other files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyarrow.parquet import ParquetFile

from kafkalog.columns.arrays import strings
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.layout import PartitionBy
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.written_file import WrittenFile

# Of rows that are decoded at a time; a row group has up to 64 MiB.
_BATCH_BYTES = 8 * 1024 * 1024
_TOPIC = PartitionBy.TOPIC.value


def file_rows(
    directory: OutputDirectory,
    file: WrittenFile,
    row_groups: Collection[int] | None = None,
    columns: Sequence[str] | None = None,
    dictionaries: Sequence[str] = (),
    part: tuple[int, int] = (0, 1),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, or of some of its row groups, in batches of bounded size: all
    columns or some, with the column `topic` also where it is in the file's path only. Columns of
    texts can be dictionaries. A `part`, such as (0, 2), is one of so many equal parts of the row
    groups."""
    with (
        directory.open(file.path) as source,
        # Spark writes times of nanoseconds unless told otherwise, and they end in 2262.
        ParquetFile(
            source, read_dictionary=list(dictionaries), coerce_int96_timestamp_unit="us"
        ) as parquet,
    ):
        metadata = parquet.metadata
        first, end = ((part[0] + more) * metadata.num_row_groups // part[1] for more in (0, 1))
        for group in range(first, end) if row_groups is None else row_groups:
            found = metadata.row_group(group)
            rows = max(1, found.num_rows * _BATCH_BYTES // max(1, found.total_byte_size))
            for batch in parquet.iter_batches(
                rows, row_groups=[group], columns=columns, use_threads=False
            ):
                yield _with_topic(batch, file)


def rows_of_each_partition(rows: pa.RecordBatch) -> Iterator[tuple[TopicPartition, pa.RecordBatch]]:
    """Yield the rows of one topic and partition after another, as they follow each other."""
    if not len(rows):
        return
    topics = rows.column(_TOPIC).dictionary_encode()
    codes, partitions = topics.indices.to_numpy(), rows.column("partition").to_numpy()
    is_next = (codes[1:] != codes[:-1]) | (partitions[1:] != partitions[:-1])
    starts = [0, *(np.flatnonzero(is_next) + 1).tolist(), len(rows)]
    for start, end in pairwise(starts):
        topic = topics.dictionary[int(codes[start])].as_py()
        yield (topic, int(partitions[start])), rows.slice(start, end - start)


def _with_topic(rows: pa.RecordBatch, file: WrittenFile) -> pa.RecordBatch:
    if _TOPIC in rows.schema.names:
        return rows
    topic = file.partition_values[_TOPIC]
    codes = pa.array(np.zeros(len(rows), np.int32))
    column = pa.DictionaryArray.from_arrays(codes, strings([topic or ""])).cast(pa.string())
    return rows.add_column(0, _TOPIC, column)
