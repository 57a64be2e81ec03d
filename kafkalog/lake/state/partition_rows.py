"""Rows of table `state_partitions`, in Arrow, and its files read again.

Columns: schemas/tables/state_partitions.json.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.file_rows import file_rows, rows_of_each_partition
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.written_file import WrittenFile
from kafkalog.views.planning.table_positions import StateSource

PARTITIONS = "state_partitions"


def partition_rows(sources: Sequence[StateSource]) -> pa.RecordBatch:
    """Return a row for each source."""
    types = arrow_schema(PARTITIONS)
    of_source = {"next_offset": "end_offset"}
    rows = [
        {name: getattr(source, of_source.get(name, name)) for name in types.names}
        for source in sources
    ]
    return pa.RecordBatch.from_pylist(rows, schema=types)


def rows_of_others(
    directory: OutputDirectory, files: Sequence[WrittenFile], keys: Collection[TopicPartition]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that the table's files have of other partitions."""
    types = arrow_schema(PARTITIONS)
    for file in files:
        for batch in file_rows(directory, file):
            for key, rows in rows_of_each_partition(batch):
                if key not in keys:
                    yield rows.select(types.names).cast(types)
