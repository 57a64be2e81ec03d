"""Records of view `records` as rows of table `ingested_records`, in Arrow.

Columns: schemas/tables/ingested_records.json.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import Constant, fixed_width, integers, strings
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.lake.layout import RECORDS

# In view `records`, by the table's names: its columns have snake_case.
NAMES_IN_RECORDS = {
    "offset": "offset",
    "timestamp": "timestamp",
    "timestamp_type": "timestampType",
    "key": "key",
    "value": "value",
    "headers": "headers",
    "timestamp_ms": "timestampMs",
    "leader_epoch": "leaderEpoch",
    "broker_id": "brokerId",
}
# The columns of view `records` that `RecordRows` takes, in this order.
RECORD_COLUMNS = tuple(NAMES_IN_RECORDS.values())
_NO_TIMESTAMP = -1


class RecordRows:
    """Makes rows of the records of one partition; nothing is copied but timestamps."""

    def __init__(self, constants: dict[str, str | int | None]) -> None:
        """`constants` has the columns that are the same in all rows: topic, partition, cluster_id,
        input_path, ingest_run."""
        self._schema = arrow_schema(RECORDS)
        self._constants = {
            name: constant_column(self._schema, name, constants[name]) for name in constants
        }

    def of(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of some records with `RECORD_COLUMNS`."""
        count = len(records)
        arrays = [
            self._constants[name].of(count) if name in self._constants else _column(records, name)
            for name in self._schema.names
        ]
        return pa.RecordBatch.from_arrays(arrays, names=self._schema.names)


class OneString:
    """One string for every row, as a dictionary of one value: it is hashed once for each batch."""

    def __init__(self, value: str) -> None:
        self._value = strings([value])
        self._codes = fixed_width(np.zeros(0), pa.int32())

    def of(self, count: int) -> pa.DictionaryArray:
        """Return the string for so many rows."""
        if len(self._codes) < count:
            self._codes = fixed_width(np.zeros(count), pa.int32())
        return pa.DictionaryArray.from_arrays(self._codes.slice(0, count), self._value)


def constant_column(schema: pa.Schema, name: str, value: str | int | None) -> OneString | Constant:
    """Return what makes a column of the schema with one value in all rows."""
    if isinstance(value, str):
        return OneString(value)
    data_type = schema.field(name).type
    if value is None and data_type == pa.string():
        data_type = pa.dictionary(pa.int32(), pa.string())
    return Constant(value, data_type)


def _column(records: pa.RecordBatch, name: str) -> pa.Array:
    array = records.column(NAMES_IN_RECORDS[name])
    return timestamps_ms(array) if name == "timestamp_ms" else array


def timestamps_ms(array: pa.Array) -> pa.Array:
    """Return timestamps of view `records` in milliseconds, null where a record has none."""
    times = integers(array)
    return fixed_width(times, pa.int64(), times == _NO_TIMESTAMP)
