"""Batches of a segment as Arrow record batches: view `batches`, schemas/tables/batches.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkalog.columns.arrays import Constant, chosen, fixed_width, record_batch
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.scan import NOT_COMPUTED
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.record_metadata import COMPRESSION_NAMES
from kafkalog.format import batch_header as layout
from kafkalog.format.faults import Fault

# Columns that need the payload decompressed, and columns that need it read for the checksum.
DEEP_COLUMNS = frozenset(("uncompressed_size", "fault"))
CHECKSUM_COLUMNS = frozenset(("computed_crc", "is_valid", "fault"))

_Builder = Callable[[LongArray], pa.Array]
_TIMESTAMP_TYPES = ["CreateTime", "LogAppendTime"]
_FAULTS = [fault.label for fault in Fault]


def _number(index: int, data_type: pa.DataType, none: int | None = None) -> _Builder:
    def build(batches: LongArray) -> pa.Array:
        values = batches[:, index]
        return fixed_width(values, data_type, None if none is None else values == none)

    return build


def _flag(bit: int) -> _Builder:
    def build(batches: LongArray) -> pa.Array:
        return fixed_width(_is_v2(batches) & (batches[:, column.ATTRIBUTES] & bit != 0), pa.bool_())

    return build


def _is_v2(batches: LongArray) -> NDArray[np.bool_]:
    is_v2: NDArray[np.bool_] = batches[:, column.MAGIC] == 2
    return is_v2


def _base_offset(batches: LongArray) -> pa.Array:
    is_wrapper = ~_is_v2(batches) & (batches[:, column.ATTRIBUTES] & layout.COMPRESSION_BITS != 0)
    return fixed_width(batches[:, column.BASE_OFFSET], pa.int64(), is_wrapper)


def _compression(batches: LongArray) -> pa.Array:
    codes = np.minimum(
        batches[:, column.ATTRIBUTES] & layout.COMPRESSION_BITS, len(COMPRESSION_NAMES)
    )
    return chosen([*COMPRESSION_NAMES, "unknown"], codes)


def _timestamp_type(batches: LongArray) -> pa.Array:
    codes = (batches[:, column.ATTRIBUTES] & layout.LOG_APPEND_TIME_BIT) != 0
    return chosen(_TIMESTAMP_TYPES, codes.astype(np.int32), batches[:, column.MAGIC] == 0)


def _delete_horizon(batches: LongArray) -> pa.Array:
    is_none = ~column.has_delete_horizon(batches)
    return fixed_width(batches[:, column.BASE_TIMESTAMP], pa.int64(), is_none)


def _last_sequence(batches: LongArray) -> pa.Array:
    base = batches[:, column.BASE_SEQUENCE]
    last = (base + batches[:, column.LAST_OFFSET] - batches[:, column.BASE_OFFSET]) & 0x7FFFFFFF
    return fixed_width(last, pa.int32(), base == layout.NO_VALUE)


def _is_valid(batches: LongArray) -> pa.Array:
    computed = batches[:, column.COMPUTED_CRC]
    return fixed_width(computed == batches[:, column.CRC], pa.bool_(), computed == NOT_COMPUTED)


def _fault(batches: LongArray) -> pa.Array:
    return chosen(_FAULTS, batches[:, column.FAULT], batches[:, column.FAULT] == Fault.NONE)


_COLUMNS: dict[str, _Builder] = {
    "position": _number(column.POSITION, pa.int64()),
    "size": _number(column.SIZE, pa.int64()),
    "uncompressed_size": _number(column.UNCOMPRESSED_SIZE, pa.int64(), none=0),
    "base_offset": _base_offset,
    "last_offset": _number(column.LAST_OFFSET, pa.int64()),
    "records": _number(column.RECORDS_COUNT, pa.int64(), none=layout.NO_VALUE),
    "magic": _number(column.MAGIC, pa.int8()),
    "compression": _compression,
    "timestamp_type": _timestamp_type,
    "base_timestamp_ms": _number(column.BASE_TIMESTAMP, pa.int64(), none=layout.NO_VALUE),
    "max_timestamp_ms": _number(column.MAX_TIMESTAMP, pa.int64(), none=layout.NO_VALUE),
    "delete_horizon_ms": _delete_horizon,
    "leader_epoch": _number(column.LEADER_EPOCH, pa.int32(), none=layout.NO_VALUE),
    "producer_id": _number(column.PRODUCER_ID, pa.int64(), none=layout.NO_VALUE),
    "producer_epoch": _number(column.PRODUCER_EPOCH, pa.int16(), none=layout.NO_VALUE),
    "base_sequence": _number(column.BASE_SEQUENCE, pa.int32(), none=layout.NO_VALUE),
    "last_sequence": _last_sequence,
    "is_transactional": _flag(layout.TRANSACTIONAL_BIT),
    "is_control": _flag(layout.CONTROL_BIT),
    "crc": _number(column.CRC, pa.int64()),
    "computed_crc": _number(column.COMPUTED_CRC, pa.int64(), none=NOT_COMPUTED),
    "is_valid": _is_valid,
    "fault": _fault,
}


class BatchColumns:
    """Turns rows of batch tables into Arrow record batches with the given columns."""

    def __init__(self, columns: Sequence[str], constants: Mapping[str, str | int | None]) -> None:
        self.schema = arrow_schema("batches", tuple(columns))
        self._constants = {
            name: Constant(value, self.schema.field(name).type)
            for name, value in constants.items()
            if name in columns
        }

    def batch(self, table: LongArray) -> pa.RecordBatch | None:
        """Return the batches among the rows; None where there is none."""
        batches = table[table[:, column.IS_BATCH] == 1]
        if not len(batches):
            return None
        columns = {
            name: self._constants[name].of(len(batches))
            if name in self._constants
            else _COLUMNS[name](batches)
            for name in self.schema.names
        }
        return record_batch(columns, self.schema, len(batches))
