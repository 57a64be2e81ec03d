"""Arrow arrays over memory that is already filled; never over Python objects.

`pyarrow.array` of a list or an ndarray would import pandas into every worker; so do functions that
are given a value of Python, `to_numpy` of flags, and `group_by` of a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_Element = TypeVar("_Element", bound=np.generic)

_NO_BYTES = np.zeros(1, dtype=np.uint8)
# The product of two numbers up to it fits into 64 bits.
_MOST_CODES = 2**31


def fixed_width(
    values: NDArray[Any], data_type: pa.DataType, nulls: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return an array of numbers, null where `nulls` says so."""
    present = _validity(nulls)
    if pa.types.is_boolean(data_type):
        data = pa.py_buffer(np.packbits(values.astype(np.bool_, copy=False), bitorder="little"))
    else:
        data = pa.py_buffer(np.ascontiguousarray(values, dtype=data_type.to_pandas_dtype()))
    return pa.Array.from_buffers(data_type, len(values), [present, data])


def _validity(nulls: NDArray[np.bool_] | None) -> pa.Buffer | None:
    if nulls is None or not bool(nulls.any()):
        return None
    return pa.py_buffer(np.packbits(~nulls, bitorder="little"))


def strings(values: list[str]) -> pa.Array:
    """Return a short array of strings."""
    return _of_bytes([utf8(value) for value in values], pa.string(), None)


def _of_bytes(
    values: list[bytes], data_type: pa.DataType, nulls: NDArray[np.bool_] | None
) -> pa.Array:
    ends = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum([len(value) for value in values], out=ends[1:])
    return laid_out(ends, b"".join(values), data_type, nulls)


def laid_out(
    ends: NDArray[np.int32],
    data: bytes | NDArray[np.uint8],
    data_type: pa.DataType,
    nulls: NDArray[np.bool_] | None,
) -> pa.Array:
    """Return an array of strings or bytes that lie one after another in `data`: `ends` is 0 and
    where each ends."""
    buffers = [_validity(nulls), pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(data_type, len(ends) - 1, buffers)


def chosen(
    values: list[str], codes: NDArray[Any], nulls: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return the string `values[code]` for every code."""
    indices = fixed_width(codes, pa.int32(), nulls)
    return pa.DictionaryArray.from_arrays(indices, strings(values)).dictionary_decode()


class Constant:
    """One value for every row, built once for the most rows seen and sliced."""

    def __init__(self, value: str | int | None, data_type: pa.DataType) -> None:
        self._value = value
        self._type = data_type
        self._array: pa.Array | None = None

    def of(self, count: int) -> pa.Array:
        if self._array is None or len(self._array) < count:
            self._array = self._build(count)
        return self._array.slice(0, count)

    def _build(self, count: int) -> pa.Array:
        if self._value is None:
            return pa.nulls(count, self._type)
        if isinstance(self._value, str):
            return chosen([self._value], np.zeros(count, dtype=np.int32))
        return fixed_width(np.full(count, self._value), self._type)


def one_binary(value: NDArray[np.uint8], is_null: bool) -> pa.Array:
    """Return an array of one byte string, which is not copied."""
    ends = np.array([0, len(value)], dtype=np.int32)
    return laid_out(ends, value, pa.binary(), np.array([is_null]))


def integers(array: pa.Array) -> NDArray[Any]:
    """Return the numbers of an array without nulls, not copied."""
    whole = np.frombuffer(array.buffers()[1], dtype=array.type.to_pandas_dtype())
    return whole[array.offset : array.offset + len(array)]


def booleans(array: pa.Array) -> NDArray[np.bool_]:
    """Return the values of an array of booleans without nulls."""
    return _unpacked(array.buffers()[1], array.offset, len(array))


def present(array: pa.Array) -> NDArray[np.bool_]:
    """Return which values of an array are not null."""
    validity = array.buffers()[0]
    if validity is None:
        return np.ones(len(array), dtype=np.bool_)
    return _unpacked(validity, array.offset, len(array))


def list_entries(array: pa.Array) -> tuple[pa.Array, NDArray[np.int32]]:
    """Return the entries of all lists of an array, and where in them each list begins and at last
    where the last one ends; a null is an empty list, as the kernels make them."""
    borders = np.frombuffer(array.buffers()[1], dtype=np.int32)
    borders = borders[array.offset : array.offset + len(array) + 1]
    first, end = int(borders[0]), int(borders[-1])
    return array.values.slice(first, end - first), borders - first


def binaries(array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.bool_]]:
    """Return the bytes of an array of byte strings, where in them each begins and at last where the
    last one ends, and which are there. The first two are not copied and cannot be written: kernels
    are compiled for the one or the other."""
    _, ends, data = array.buffers()
    first, count = array.offset, len(array)
    content = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else _NO_BYTES
    borders = np.frombuffer(ends, dtype=np.int32)[first : first + count + 1]
    return _read_only(content), _read_only(borders), present(array)


def _unpacked(data: pa.Buffer, first: int, count: int) -> NDArray[np.bool_]:
    packed = np.frombuffer(data, dtype=np.uint8)
    return np.unpackbits(packed, count=first + count, bitorder="little")[first:].view(np.bool_)


def _read_only(array: NDArray[_Element]) -> NDArray[_Element]:
    view = array.view()
    view.flags.writeable = False
    return view


def utf8(text: str) -> bytes:
    """Return a text as Arrow's strings have it, which unlike names of files cannot be any bytes."""
    return text.encode("utf-8", "backslashreplace")


def of_values(values: Sequence[object], data_type: pa.DataType) -> pa.Array:
    """Return an array of a few Python values, None for null."""
    nulls = np.array([value is None for value in values], dtype=bool)
    if pa.types.is_string(data_type):
        return _of_bytes([utf8("" if v is None else str(v)) for v in values], data_type, nulls)
    if pa.types.is_binary(data_type):
        return _of_bytes(
            [bytes(v) if isinstance(v, bytes) else b"" for v in values], data_type, nulls
        )
    numbers = np.array([0 if value is None else value for value in values])
    return fixed_width(numbers, data_type, nulls)


class Numbers(NamedTuple):
    """The numbers of a column of integers, 0 where there is none."""

    values: NDArray[np.int64]
    is_set: NDArray[np.bool_]

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray) -> Numbers:
        """Return the numbers of a column."""
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return cls(integers(array.fill_null(scalar(0, array.type))), present(array))

    def above(self, limit: int) -> NDArray[np.bool_]:
        """Return which are known to be above a limit."""
        is_above: NDArray[np.bool_] = self.is_set & (self.values > limit)
        return is_above

    def largest(self, of: NDArray[np.bool_]) -> int | None:
        """Return the largest of some of them, None without any."""
        found = self.values[of & self.is_set]
        return int(found.max()) if len(found) else None

    def minus(self, others: Numbers) -> pa.Array:
        """Return the differences, null without a number and where no integer of 64 bits has it."""
        found = self.values - others.values
        overflows = ((self.values ^ others.values) & (self.values ^ found)) < 0
        return fixed_width(found, pa.int64(), ~(self.is_set & others.is_set) | overflows)


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """Return integers or strings as Python values, None for null, in a fraction of the time of
    `to_pylist`."""
    array = column.combine_chunks()
    if pa.types.is_string(array.type):
        encoded = array.dictionary_encode(null_encoding="encode")
        distinct = np.array(encoded.dictionary.to_pylist(), dtype=object)
        return cast("list[Any]", distinct[integers(encoded.indices)].tolist())
    numbers, is_set = Numbers.of(array)
    if not array.null_count:
        return cast("list[Any]", numbers.tolist())
    found = numbers.astype(object)
    found[~is_set] = None
    return cast("list[Any]", found.tolist())


def python_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of columns of integers and strings, as `python_values` gives them."""
    names = table.column_names
    for row in zip(*map(python_values, table.columns), strict=True):
        yield dict(zip(names, row, strict=True))


def scalar(value: object, data_type: pa.DataType) -> pa.Scalar:
    """Return a Python value as Arrow's functions take it, None for null."""
    return of_values([value], data_type)[0]


def no_rows(schema: pa.Schema) -> pa.Table:
    """Return a table without rows. `pa.Schema.empty_table` would import pandas."""
    return pa.table([pa.nulls(0, field.type) for field in schema], schema=schema)


def row_codes(table: pa.Table) -> NDArray[np.int64]:
    """Return a number for each row, the same for rows that are the same in all columns: from 0 on,
    and below how many there are."""
    return distinct_rows(table)[0]


def distinct_rows(table: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return `row_codes`, and the number of the first row that has each code."""
    codes, count = np.zeros(len(table), dtype=np.int64), 1
    for column in table.columns:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        if count * len(encoded.dictionary) > _MOST_CODES:
            different, codes = np.unique(codes, return_inverse=True)
            count = len(different)
        codes = codes * len(encoded.dictionary) + integers(encoded.indices)
        count *= len(encoded.dictionary)
    _, firsts, codes = np.unique(codes, return_index=True, return_inverse=True)
    return codes, firsts


def record_batch(columns: Mapping[str, pa.Array], schema: pa.Schema, count: int) -> pa.RecordBatch:
    """Return the columns that the schema names, in its order; `count` rows even without a
    column."""
    if not schema.names:
        return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None]))
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
