"""A table as a data set of Arrow's: DuckDB and polars take it as it is, and ask it for the columns
and the rows that a query needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

# Makes the reader of some columns, None for all, of the rows that pass a filter.
MakeReader = Callable[[Sequence[str] | None, pc.Expression | None], pa.RecordBatchReader]


class TableDataset(pads.Dataset):  # type: ignore[misc]
    """A data set that is read again for each scan. `on_error` gets what a scan raises: a library in
    C passes on its text only."""

    def __init__(
        self,
        schema: pa.Schema,
        make_reader: MakeReader,
        on_error: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        # Dataset's own constructor refuses to be called.
        self._given_schema = schema
        self._make_reader = make_reader
        self._on_error = on_error

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self._given_schema

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
        **_: Any,
    ) -> TableScanner:
        """Return what reads these columns of the rows that pass the filter. Other arguments are
        hints that change no row."""
        try:
            reader = self._make_reader(columns, filter)
        except Exception as error:
            self._on_error(error)
            raise
        return TableScanner(_noting(reader, self._on_error))

    def __reduce__(self) -> tuple[object, ...]:
        return (TableDataset, (self._given_schema, self._make_reader, self._on_error))


class TableScanner:
    """One read of a table, which can be taken once, in one of these forms."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as they come."""
        return self._reader

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they come."""
        yield from self._reader

    def to_table(self) -> pa.Table:
        """Return all rows."""
        return self._reader.read_all()

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows."""
        found, left = [], num_rows
        with closing(self._reader):
            for batch in self._reader:
                found.append(batch.slice(0, left))
                left -= len(found[-1])
                if not left:
                    break
        return pa.Table.from_batches(found, self._reader.schema)

    def count_rows(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self._reader))


def _noting(
    reader: pa.RecordBatchReader, on_error: Callable[[Exception], None]
) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except Exception as error:
            on_error(error)
            raise

    return pa.RecordBatchReader.from_batches(reader.schema, batches())
