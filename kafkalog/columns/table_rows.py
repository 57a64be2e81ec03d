"""Rows that were made one by one as an Arrow record batch of a view or table, and sums of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Self

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import (
    distinct_rows,
    fixed_width,
    integers,
    of_values,
    present,
    record_batch,
    utf8,
)
from kafkalog.columns.arrow_types import arrow_schema

TableRow = Mapping[str, object]
ROWS_PER_BATCH = 8192
# Types whose columns are not texts, bytes or numbers.
_NOT_FIXED_WIDTH = (pa.types.is_nested, pa.types.is_boolean, pa.types.is_timestamp)
# What becomes of the numbers of rows that are one: a function, and what it begins with.
_SUMMED = {
    "sum": (np.add, 0),
    "min": (np.minimum, np.iinfo(np.int64).max),
    "max": (np.maximum, np.iinfo(np.int64).min),
}


class RowTotals:
    """What the rows of a table come to: a dataclass of sums, to which rows are added."""

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Return what the rows come to."""
        totals = cls()
        for row in rows:
            totals.add(row)
        return totals

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        raise NotImplementedError

    def add_values(self, row: Mapping[str, Any], *names: str) -> None:
        """Add the row's values of these columns to the sums of the same names; null is 0."""
        for name in names:
            setattr(self, name, getattr(self, name) + (row[name] or 0))


def grouped(tables: Iterable[pa.Table], schema: pa.Schema, sums: Mapping[str, str]) -> pa.Table:
    """Return the rows of tables with this schema, those as one that agree in all columns but those
    of `sums`, integers: sum, min or max says what becomes of each. A null counts for nothing.
    pyarrow's own `group_by` would import what reads Parquet, JSON and ORC in each process."""
    every = pa.concat_tables([schema.empty_table(), *tables])
    keys = [name for name in schema.names if name not in sums]
    codes, firsts = distinct_rows(every.select(keys))
    rows = every.select(keys).take(fixed_width(firsts, pa.int64()))
    found = {name: rows[name] for name in keys}
    for name, function in sums.items():
        combined, identity = _SUMMED[function]
        column = every[name].combine_chunks()
        values = np.full(len(firsts), identity)
        has_value = np.zeros(len(firsts), dtype=np.bool_)
        known = present(column)
        combined.at(values, codes[known], integers(column.drop_null()))
        has_value[codes[known]] = True
        found[name] = fixed_width(np.where(has_value, values, 0), column.type, ~has_value)
    return pa.table([found[name] for name in schema.names], schema=schema)


def table_batch(
    table: str,
    rows: Sequence[TableRow],
    constants: TableRow,
    columns: tuple[str, ...] | None = None,
) -> pa.RecordBatch:
    """Return rows of the table, `constants` being the same on all; what a row does not name is
    null."""
    schema = arrow_schema(table, columns)
    arrays = {
        field.name: _array(
            [row.get(field.name, constants.get(field.name)) for row in rows], field.type
        )
        for field in schema
    }
    return record_batch(arrays, schema, len(rows))


def row_batches(
    table: str, rows: Iterator[TableRow], input_path: str, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield rows of the table that were found in one input, in batches of bounded numbers."""
    yield from table_batches(table, rows, {"input_path": input_path}, columns)


def table_batches(
    table: str, rows: Iterator[TableRow], constants: TableRow, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield what `table_batch` returns, in batches of bounded numbers."""
    while some := list(islice(rows, ROWS_PER_BATCH)):
        yield table_batch(table, some, constants, columns)


def _array(values: list[object], data_type: pa.DataType) -> pa.Array:
    if pa.types.is_map(data_type):
        pairs = [list(value.items()) if isinstance(value, dict) else None for value in values]
        return pa.array(pairs, type=data_type)
    if any(of(data_type) for of in _NOT_FIXED_WIDTH):
        try:
            return pa.array(values, type=data_type)
        except UnicodeEncodeError:
            return pa.array([_valid(value) for value in values], type=data_type)
    return of_values(values, data_type)


def _valid(value: Any) -> Any:
    """Return the value with texts that Arrow takes: names of files can be any bytes."""
    if isinstance(value, str):
        return utf8(value).decode()
    if isinstance(value, Mapping):
        return {name: _valid(each) for name, each in value.items()}
    return [_valid(each) for each in value] if isinstance(value, list | tuple) else value
