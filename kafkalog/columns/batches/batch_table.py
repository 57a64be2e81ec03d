"""The batch table: a row of 64-bit integers for every range of a segment's bytes.

Kernels work on it: an int64 array of shape (rows, WIDTH). A row without a batch header (bytes that
form no batch) has IS_BATCH 0 and zeros in the header's columns. UNCOMPRESSED_SIZE is 0 until the
payload is decompressed; until then RECORDS_COUNT of compressed messages of format 0 and 1 is -1.
"""

from __future__ import annotations

import numpy as np

from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.format.batch_header import (
    COMPRESSION_BITS,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    NO_VALUE,
    BatchHeader,
)

(
    POSITION,
    SIZE,
    FAULT,
    LEADER_EPOCH_FAULT,
    EXPECTED_OFFSET,
    COMPUTED_CRC,
    IS_BATCH,
    BASE_OFFSET,
    LAST_OFFSET,
    LEADER_EPOCH,
    MAGIC,
    CRC,
    ATTRIBUTES,
    BASE_TIMESTAMP,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    PRODUCER_EPOCH,
    BASE_SEQUENCE,
    RECORDS_COUNT,
    UNCOMPRESSED_SIZE,
) = range(20)
WIDTH = 20


def new_table(rows: int) -> LongArray:
    """Return a table with room for `rows` rows."""
    return np.zeros((rows, WIDTH), dtype=np.int64)


def is_wrapper(batches: LongArray) -> BoolArray:
    """Return which are compressed messages of the old formats: their base offset is not in the
    header."""
    wrappers: BoolArray = (batches[:, MAGIC] < 2) & (batches[:, ATTRIBUTES] & COMPRESSION_BITS != 0)
    return wrappers


def first_offsets(batches: LongArray) -> LongArray:
    """Return the first offset of each batch; where the header does not have it, the one
    expected."""
    first: LongArray = np.where(
        is_wrapper(batches), batches[:, EXPECTED_OFFSET], batches[:, BASE_OFFSET]
    )
    return first


def is_control(batches: LongArray) -> BoolArray:
    """Return which batches are control batches; messages of formats 0 and 1 are none."""
    found: BoolArray = (batches[:, MAGIC] == 2) & (batches[:, ATTRIBUTES] & CONTROL_BIT != 0)
    return found


def has_delete_horizon(batches: LongArray) -> BoolArray:
    """Return which batches have a delete horizon, in the place of the base timestamp."""
    found: BoolArray = (batches[:, MAGIC] == 2) & (batches[:, ATTRIBUTES] & DELETE_HORIZON_BIT != 0)
    return found


def record_counts(batches: LongArray) -> LongArray:
    """Return how many records each sound batch has. The header of a compressed message of formats 0
    and 1 tells no more than its offsets (F1324)."""
    counts = batches[:, RECORDS_COUNT]
    spans = batches[:, LAST_OFFSET] - first_offsets(batches) + 1
    found: LongArray = np.where(counts < 0, spans, counts)
    return found


def first_timestamps(batches: LongArray) -> LongArray:
    """Return the time of the first record of each sound batch, NO_VALUE where its header does not
    show it: the base timestamp, with LogAppendTime the max timestamp. With a delete horizon the
    base timestamp is that."""
    is_append_time = batches[:, ATTRIBUTES] & LOG_APPEND_TIME_BIT != 0
    times = np.where(is_append_time, batches[:, MAX_TIMESTAMP], batches[:, BASE_TIMESTAMP])
    found: LongArray = np.where(has_delete_horizon(batches) & ~is_append_time, NO_VALUE, times)
    return found


def least_timestamp(batches: LongArray) -> int | None:
    """Return the least base timestamp that a producer gave sound batches; None without any: with
    LogAppendTime no record has the base timestamp, with a delete horizon it is none."""
    attributes, times = batches[:, ATTRIBUTES], batches[:, BASE_TIMESTAMP]
    by_producer = times[
        ~has_delete_horizon(batches) & (times != NO_VALUE) & (attributes & LOG_APPEND_TIME_BIT == 0)
    ]
    return int(by_producer.min()) if len(by_producer) else None


def latest_timestamp(batches: LongArray) -> int | None:
    """Return the largest timestamp of batches by their headers, None without any."""
    latest = int(batches[:, MAX_TIMESTAMP].max()) if len(batches) else NO_VALUE
    return None if latest == NO_VALUE else latest


def set_header(row: LongArray, header: BatchHeader) -> None:
    """Fill the header's columns of one row, as the scanning kernel does."""
    row[IS_BATCH] = 1
    row[BASE_OFFSET] = header.base_offset
    row[LAST_OFFSET] = header.last_offset
    row[LEADER_EPOCH] = header.leader_epoch
    row[MAGIC] = header.magic
    row[CRC] = header.crc
    row[ATTRIBUTES] = header.attributes
    row[BASE_TIMESTAMP] = header.base_timestamp_ms
    row[MAX_TIMESTAMP] = header.max_timestamp_ms
    row[PRODUCER_ID] = header.producer_id
    row[PRODUCER_EPOCH] = header.producer_epoch
    row[BASE_SEQUENCE] = header.base_sequence
    row[RECORDS_COUNT] = header.records_count
