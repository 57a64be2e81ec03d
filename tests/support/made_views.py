"""An engine whose views have the rows that a test gives."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, RowsInMemory


class MadeViews:
    """Views with these rows, of each task a list; columns that a row leaves out are null."""

    def __init__(self, **tasks: Sequence[Sequence[dict[str, Any]]]) -> None:
        self._tasks = tasks
        self.log_dirs: Sequence[str] = ()
        self.logs: Sequence[PartitionLog] = ()
        self.options: dict[str, str | int | None] = {}
        self.cores = 1

    def over(self, log_dirs: Sequence[str], logs: Sequence[PartitionLog]) -> "MadeViews":
        raise NotImplementedError

    def rows(self, *asked: AskedView) -> list[RowsInMemory]:
        return [RowsInMemory(self._table(each)) for each in asked]

    def tasks(self, run: Any, items: Sequence[Any]) -> Iterator[Any]:
        for item in items:
            yield from run(item)

    def shuffled(self, read: Any, items: Sequence[Any], step: Any) -> Iterator[Any]:
        raise NotImplementedError

    def shuffled_rows(
        self, read: Any, items: Sequence[Any], schema: pa.Schema, step: Any
    ) -> RowsInMemory:
        raise NotImplementedError

    def _table(self, asked: AskedView) -> pa.Table:
        found = arrow_schema(asked.name, asked.columns)

        def batches(rows: Sequence[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
            whole = [{name: row.get(name) for name in found.names} for row in rows]
            # Batches end anywhere.
            for part in (whole[:2], whole[2:]):
                if part:
                    yield pa.RecordBatch.from_pylist(part, schema=found)

        tasks = self._tasks.get(asked.name, ())
        made = [batch for rows in tasks for batch in asked.reduced(batches(rows))]
        return pa.Table.from_batches(made, asked.rows_schema)
