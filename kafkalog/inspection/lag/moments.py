"""Where a log ended at past moments, from its batch headers and a batch for each answer.

Rule: docs/format.md F312.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.single_batches import BatchRecords
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.lag.decoded_batches import DecodeBatches
from kafkalog.inspection.logs.log_headers import SegmentTable

# So many batches are decoded together.
_AT_ONCE = 64
_BATCH = [column.POSITION, column.SIZE, column.LAST_OFFSET]
# Of records that do not count.
_NEVER = np.iinfo(np.int64).min


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
        # By their headers these have the answers.
        newest = np.maximum.accumulate(rows[:, column.MAX_TIMESTAMP])
        likely = np.unique(np.searchsorted(newest, moments[answered:], side="right"))
        decoded: dict[int, BatchRecords | None] = {}
        number = 0
        while answered < len(moments):
            later = np.flatnonzero(rows[number:, column.MAX_TIMESTAMP] > moments[answered])
            if not len(later):
                break
            number += int(later[0])
            if number not in decoded:
                next_ones = likely[np.searchsorted(likely, number, side="right") :][:_AT_ONCE]
                wanted = [number, *next_ones[next_ones < len(rows)].tolist()]
                decoded = dict(zip(wanted, decode(headers, rows[wanted][:, _BATCH]), strict=True))
            records = decoded[number]
            number += 1
            if records is None:
                continue
            is_valid = (records.offsets >= start_offset) & (records.timestamps_ms <= latest_ms)
            so_far = np.maximum.accumulate(np.where(is_valid, records.timestamps_ms, _NEVER))
            count = int(np.searchsorted(moments[answered:], so_far[-1], side="left"))
            places = np.searchsorted(so_far, moments[answered : answered + count], side="right")
            ends[answered : answered + count] = records.offsets[places]
            types[answered : answered + count] = records.timestamp_types[places]
            answered += count
        if answered == len(moments):
            break
    return np.minimum(ends, end_offset), types
