"""Columns of records that come from the header of their batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from kafkalog.columns.arrays import chosen, fixed_width
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import IntArray, LongArray
from kafkalog.format.batch_header import COMPRESSION_BITS, CONTROL_BIT, NO_VALUE, TRANSACTIONAL_BIT
from kafkalog.wire.compression import CompressionType

COMPRESSION_NAMES = [compression.name.lower() for compression in CompressionType]

# Beside the columns of view `records`: what marks control records where they are read too.
IS_CONTROL = "isControl"
# And the stored checksum of a message of the old formats, those inside of others too; NO_VALUE for
# records of format 2.
MESSAGE_CRC = "messageCrc"
_BESIDE = {IS_CONTROL: pa.bool_(), MESSAGE_CRC: pa.int64()}

# From the batch table, the row in it of every record, and the records' offsets, to a column.
_Builder = Callable[[LongArray, IntArray, LongArray], pa.Array]


def _number(index: int, data_type: pa.DataType, *, has_null: bool = False) -> _Builder:
    def build(table: LongArray, rows: IntArray, offsets: LongArray) -> pa.Array:
        values = table[rows, index]
        return fixed_width(values, data_type, values == NO_VALUE if has_null else None)

    return build


def _sequence(table: LongArray, rows: IntArray, offsets: LongArray) -> pa.Array:
    base = table[rows, column.BASE_SEQUENCE]
    values = (base + offsets - table[rows, column.BASE_OFFSET]) & 0x7FFFFFFF
    return fixed_width(values, pa.int32(), base < 0)


def _attribute(bit: int) -> _Builder:
    def build(table: LongArray, rows: IntArray, offsets: LongArray) -> pa.Array:
        is_set = table[rows, column.ATTRIBUTES] & bit != 0
        return fixed_width(is_set & (table[rows, column.MAGIC] == 2), pa.bool_())

    return build


def _compression(table: LongArray, rows: IntArray, offsets: LongArray) -> pa.Array:
    return chosen(COMPRESSION_NAMES, table[rows, column.ATTRIBUTES] & COMPRESSION_BITS)


METADATA_COLUMNS: dict[str, _Builder] = {
    "leaderEpoch": _number(column.LEADER_EPOCH, pa.int32(), has_null=True),
    "producerId": _number(column.PRODUCER_ID, pa.int64(), has_null=True),
    "producerEpoch": _number(column.PRODUCER_EPOCH, pa.int16(), has_null=True),
    "sequence": _sequence,
    "isTransactional": _attribute(TRANSACTIONAL_BIT),
    "compression": _compression,
    "magic": _number(column.MAGIC, pa.int8()),
    "batchBaseOffset": _number(column.BASE_OFFSET, pa.int64()),
    "position": _number(column.POSITION, pa.int64()),
    IS_CONTROL: _attribute(CONTROL_BIT),
}


def record_schema(columns: Sequence[str]) -> pa.Schema:
    """Return the given columns of view `records`, IS_CONTROL and MESSAGE_CRC among them or not."""
    known = arrow_schema("records", tuple(name for name in columns if name not in _BESIDE))
    return pa.schema(
        [
            pa.field(name, _BESIDE[name]) if name in _BESIDE else known.field(name)
            for name in columns
        ]
    )
