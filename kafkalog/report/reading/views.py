"""How a report reads views: by Spark's tasks, or by processes of one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.report.contents import Row

Batches = Iterator[pa.RecordBatch]
# What a task makes of its batches. The results of all tasks are put together.
Reduction = Callable[[Batches], Batches]


class Views(Protocol):
    """Reads views of log directories."""

    def table(
        self,
        view: str,
        columns: Sequence[str],
        reduce: Reduction,
        schema: pa.Schema,
        **options: str | None,
    ) -> pa.Table:
        """Return what `reduce` makes of the rows of each task: batches of that schema. `options`
        are those of the source; all topics are read, with `subscribe=None` only ordinary ones."""
        ...


def rows(views: Views, view: str, columns: Sequence[str], **options: str | None) -> list[Row]:
    """Return the rows of a view that has few."""
    schema = arrow_schema(view, tuple(columns))
    return as_rows(views.table(view, columns, _as_they_are, schema, **options))


def _as_they_are(batches: Batches) -> Batches:
    return batches


def as_rows(table: pa.Table) -> list[Row]:
    """Return the rows of a table."""
    return [Row(**row) for row in table.to_pylist()]
