"""Where a log ended at past moments, from its batch headers and a batch for each answer.

Rule: docs/format.md F312.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import IntArray, LongArray
from kafkalog.columns.records.single_batches import BatchRecords
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.lag.decoded_batches import DecodeBatches
from kafkalog.inspection.logs.log_headers import SegmentTable

# So many batches are decoded together.
_AT_ONCE = 128
_BATCH = [column.POSITION, column.SIZE, column.LAST_OFFSET]
# Of records that do not count.
_NEVER = np.iinfo(np.int64).min
_NO_NUMBERS = np.zeros(0, dtype=np.int64)
_NO_RECORDS = BatchRecords(_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS.astype(np.int32))


def end_offsets_at(
    tables: Iterator[SegmentTable],
    moments: LongArray,
    start_offset: int,
    end_offset: int,
    decode: DecodeBatches,
    latest_ms: int,
) -> tuple[LongArray, LongArray]:
    """Return for each time, in milliseconds and ascending, the first offset from `start_offset` on
    whose record has a later timestamp, and the type of that timestamp; `end_offset` and -1 where no
    record below it has one.

    `tables` are all batches from `start_offset` on. Timestamps after `latest_ms` are ignored.
    """
    ends = np.full(len(moments), end_offset, dtype=np.int64)
    types = np.full(len(moments), NO_VALUE, dtype=np.int64)
    answered = 0
    for headers in tables:
        table = headers.table
        held = (table[:, column.FAULT] == 0) & (table[:, column.RECORDS_COUNT] != 0)
        rows = table[held & (table[:, column.LAST_OFFSET] >= start_offset)]
        number = 0
        while answered < len(moments):
            # By their headers these are the first that can have the answers.
            newest = np.maximum.accumulate(rows[number:, column.MAX_TIMESTAMP])
            likely = number + np.searchsorted(newest, moments[answered:], side="right")
            wanted = np.unique(likely[likely < len(rows)])[:_AT_ONCE]
            if not len(wanted):
                break
            found = _joined(decode(headers, rows[wanted][:, _BATCH]), wanted)
            is_valid = (found.offsets >= start_offset) & (found.timestamps_ms <= latest_ms)
            so_far = np.maximum.accumulate(np.where(is_valid, found.timestamps_ms, _NEVER))
            places = np.searchsorted(so_far, moments[answered:], side="right")
            # After a batch that turns out to have none, others than were decoded can have it.
            is_there = (likely < len(rows)) & (np.append(found.rows, len(rows))[places] <= likely)
            count = len(is_there) if is_there.all() else int(np.argmin(is_there))
            ends[answered : answered + count] = found.offsets[places[:count]]
            types[answered : answered + count] = found.timestamp_types[places[:count]]
            answered += count
            if count < len(is_there):
                number = int(likely[count])
                number += int(number <= wanted[-1])
        if answered == len(moments):
            break
    return np.minimum(ends, end_offset), types


class _Joined(NamedTuple):
    """The records of some batches, and the row of each one's batch."""

    offsets: LongArray
    timestamps_ms: LongArray
    timestamp_types: IntArray
    rows: LongArray


def _joined(decoded: Sequence[BatchRecords | None], rows: LongArray) -> _Joined:
    """Return the records of the batches in some rows; one that cannot be decoded has none."""
    known = [_NO_RECORDS if records is None else records for records in decoded]
    return _Joined(
        np.concatenate([each.offsets for each in known]),
        np.concatenate([each.timestamps_ms for each in known]),
        np.concatenate([each.timestamp_types for each in known]),
        np.repeat(rows, [len(each.offsets) for each in known]),
    )
