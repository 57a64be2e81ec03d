"""A batch read: what the driver plans, and what each task reads of it."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafkalog.storage.files.file_access import use_file_access
from kafkalog.views.options.options import ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkalog.views.planning.planning import Read

_Row = TypeVar("_Row")


class ReadGroup(InputPartition):
    """The segments or partitions that one task reads."""

    def __init__(self, reads: Sequence[Read]) -> None:
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
        return KafkaLogReader, (self._options.of_tasks(), self._columns)

    def partitions(self) -> list[InputPartition]:
        from kafkalog.views.planning.planning import planned_groups

        use_file_access(self._options.file_access)
        return [ReadGroup(reads) for reads in planned_groups(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from kafkalog.views.view_reading import read_view

        # Without any partition Spark asks for one that is nothing.
        reads = getattr(partition, "reads", ())
        return read_in_task(self._options, reads, read_view(reads, self._options, self._columns))


def read_in_task(
    options: ReadOptions, reads: Sequence[object], rows: Iterator[_Row]
) -> Iterator[_Row]:
    """Yield the rows of what a task reads, and log what it took."""
    from kafkalog.views.reading.work_log import READ, reported_work

    _freeze_imports()
    use_file_access(options.file_access)
    with reported_work(READ, {"reads": str(len(reads))}):
        yield from rows


_is_frozen = False


def _freeze_imports() -> None:
    """Spare the garbage collection after each task from walking through all imported modules."""
    global _is_frozen
    if not _is_frozen:
        gc.collect()
        gc.freeze()
        _is_frozen = True
