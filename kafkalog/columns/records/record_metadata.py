"""Columns of records that come from the header of their batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from kafkalog.columns.arrays import chosen, fixed_width
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.batches.batch_table import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    LEADER_EPOCH,
    MAGIC,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
)
from kafkalog.columns.jit.compiled import IntArray, LongArray
from kafkalog.format.batch_header import (
    COMPRESSION_BITS,
    CONTROL_BIT,
    NO_VALUE,
    TRANSACTIONAL_BIT,
)
from kafkalog.wire.compression import CompressionType

COMPRESSION_NAMES = [compression.name.lower() for compression in CompressionType]

# Beside the columns of view `records`: what tells control records apart where they are read too.
IS_CONTROL = "isControl"
# And the stored checksum of a message of the old formats, those inside of others too; NO_VALUE for
# records of format 2.
MESSAGE_CRC = "messageCrc"
_BESIDE = {IS_CONTROL: pa.bool_(), MESSAGE_CRC: pa.int64()}

# From the batch table, the row in it of every record, and the records' offsets, to a column.
_Builder = Callable[[LongArray, IntArray, LongArray], pa.Array]


def _number(column: int, data_type: pa.DataType, *, has_null: bool = False) -> _Builder:
    def build(table: LongArray, rows: IntArray, offsets: LongArray) -> pa.Array:
        values = table[rows, column]
        return fixed_width(values, data_type, values == NO_VALUE if has_null else None)

    return build


def _sequence(table: LongArray, rows: IntArray, offsets: LongArray) -> pa.Array:
    base = table[rows, BASE_SEQUENCE]
    values = (base + offsets - table[rows, BASE_OFFSET]) & 0x7FFFFFFF
    return fixed_width(values, pa.int32(), base < 0)


def _attribute(bit: int) -> _Builder:
    def build(table: LongArray, rows: IntArray, offsets: LongArray) -> pa.Array:
        is_set = table[rows, ATTRIBUTES] & bit != 0
        return fixed_width(is_set & (table[rows, MAGIC] == 2), pa.bool_())

    return build


def _compression(table: LongArray, rows: IntArray, offsets: LongArray) -> pa.Array:
    return chosen(COMPRESSION_NAMES, table[rows, ATTRIBUTES] & COMPRESSION_BITS)


METADATA_COLUMNS: dict[str, _Builder] = {
    "leaderEpoch": _number(LEADER_EPOCH, pa.int32(), has_null=True),
    "producerId": _number(PRODUCER_ID, pa.int64(), has_null=True),
    "producerEpoch": _number(PRODUCER_EPOCH, pa.int16(), has_null=True),
    "sequence": _sequence,
    "isTransactional": _attribute(TRANSACTIONAL_BIT),
    "compression": _compression,
    "magic": _number(MAGIC, pa.int8()),
    "batchBaseOffset": _number(BASE_OFFSET, pa.int64()),
    "position": _number(POSITION, pa.int64()),
    IS_CONTROL: _attribute(CONTROL_BIT),
}


def record_schema(columns: Sequence[str]) -> pa.Schema:
    """The given columns of view `records`, IS_CONTROL and MESSAGE_CRC among them or not."""
    known = arrow_schema("records", tuple(name for name in columns if name not in _BESIDE))
    return pa.schema(
        [
            pa.field(name, _BESIDE[name]) if name in _BESIDE else known.field(name)
            for name in columns
        ]
    )
