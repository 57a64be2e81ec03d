"""Arrow arrays over memory that is already filled; never over Python objects.

`pyarrow.array` of a list or an ndarray would import pandas into every worker.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkalog.columns.compiled import ByteArray


def validity(bits: ByteArray, count: int) -> pa.Buffer | None:
    """A validity buffer, or None where nothing is null."""
    used = bits[: (count + 7) // 8]
    return None if bool((used == 255).all()) else pa.py_buffer(used)


def fixed_width(values: NDArray[Any], data_type: pa.DataType, nulls: NDArray[np.bool_] | None = None) -> pa.Array:
    """An array of numbers, null where `nulls` says so."""
    present = None
    if nulls is not None and bool(nulls.any()):
        present = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    if pa.types.is_boolean(data_type):
        data = pa.py_buffer(np.packbits(values, bitorder="little"))
    else:
        data = pa.py_buffer(np.ascontiguousarray(values, dtype=data_type.to_pandas_dtype()))
    return pa.Array.from_buffers(data_type, len(values), [present, data])


def strings(values: list[str]) -> pa.Array:
    """A short array of strings."""
    encoded = [value.encode() for value in values]
    ends = np.zeros(len(values) + 1, dtype=np.int32)
    ends[1:] = np.cumsum([len(value) for value in encoded])
    data = pa.py_buffer(b"".join(encoded))
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), data])


def chosen(values: list[str], codes: NDArray[Any], nulls: NDArray[np.bool_] | None = None) -> pa.Array:
    """The string `values[code]` for every code."""
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
        if isinstance(self._value, str):
            return chosen([self._value], np.zeros(count, dtype=np.int32))
        nulls = np.full(count, self._value is None)
        return fixed_width(np.full(count, self._value or 0), self._type, nulls)
