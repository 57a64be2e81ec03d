"""Records of view `records` as rows of table `state`, in Arrow.

Columns: schemas/tables/state.json.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import fixed_width, integers, present, strings
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.lake.file_schemas import file_metadata
from kafkalog.lake.record_rows import constant_column, timestamps_ms

STATE = "state"
# The columns of view `records` that `StateRows` takes, in this order.
STATE_COLUMNS = (
    "key",
    "value",
    "headers",
    "offset",
    "timestamp",
    "timestampMs",
    "timestampType",
    "brokerId",
)
# And all that rows are made of.
STATE_RECORD_COLUMNS = ("topic", "partition", *STATE_COLUMNS)
# The columns of the table that have few texts: as dictionaries, none is made for each row.
TEXTS = ("cluster_id", "input_path", "topic", "timestamp_type")
_TEXT = pa.dictionary(pa.int32(), pa.string())
_AS_IN_RECORDS = {"key", "value", "headers", "offset", "timestamp"}
_TIMESTAMP_TYPES = ["CreateTime", "LogAppendTime"]


class StateRows:
    """Makes rows of the records of one partition; nothing is copied but timestamps."""

    def __init__(self, constants: dict[str, str | int | None]) -> None:
        """`constants` has the columns that are the same in all rows: topic, partition, cluster_id,
        input_path."""
        self._types = arrow_schema(STATE)
        self._constants = {
            name: constant_column(self._types, name, value) for name, value in constants.items()
        }

    def of(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of some records with STATE_COLUMNS."""
        names = self._types.names
        arrays = [
            self._constants[name].of(len(records))
            if name in self._constants
            else _column(records, name)
            for name in names
        ]
        rows = pa.RecordBatch.from_arrays(arrays, names=names)
        return rows.replace_schema_metadata(file_metadata(STATE))


def as_written(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of one of the table's files, which Spark can have written, as StateRows makes
    them."""
    types = pa.schema(
        [field.with_type(_TEXT) if field.name in TEXTS else field for field in arrow_schema(STATE)],
        metadata=file_metadata(STATE),
    )
    return rows.select(types.names).cast(types)


def _column(records: pa.RecordBatch, name: str) -> pa.Array:
    if name in _AS_IN_RECORDS:
        return records.column(name)
    if name == "broker_id":
        return records.column("brokerId")
    if name == "timestamp_ms":
        return timestamps_ms(records.column("timestampMs"))
    if name == "is_deleted":
        return fixed_width(~present(records.column("value")), pa.bool_())
    types = integers(records.column("timestampType")).astype(np.int32)
    is_none = (types < 0) | (types >= len(_TIMESTAMP_TYPES))
    codes = fixed_width(np.where(is_none, 0, types), pa.int32(), is_none)
    return pa.DictionaryArray.from_arrays(codes, strings(_TIMESTAMP_TYPES))
