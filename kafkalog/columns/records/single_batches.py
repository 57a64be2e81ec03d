"""Decodes single batches of a file, for questions that their headers do not answer."""

from __future__ import annotations

from collections.abc import Sequence
from operator import lt
from typing import NamedTuple

import numpy as np

from kafkalog.columns.arrays import integers
from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import MemoryWindow
from kafkalog.columns.jit.compiled import IntArray, LongArray
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.format.batch_header import (
    COMPRESSION_BITS,
    LEGACY_ATTRIBUTES_POSITION,
    MAGIC_POSITION,
)

_COLUMNS = ("offset", "timestampMs", "timestampType")


class BatchRecords(NamedTuple):
    """Offsets, timestamps in milliseconds (-1 for none) and their types (0 CreateTime, 1
    LogAppendTime, -1 for none) of the records of a batch, control records too; at least one."""

    offsets: LongArray
    timestamps_ms: LongArray
    timestamp_types: IntArray


def is_message_set(batch: bytes | memoryview) -> bool:
    """Return whether these are the bytes of a compressed message of format 0 or 1. F43."""
    return (
        len(batch) > LEGACY_ATTRIBUTES_POSITION
        and batch[MAGIC_POSITION] < 2
        and bool(batch[LEGACY_ATTRIBUTES_POSITION] & COMPRESSION_BITS)
    )


def batch_records(batch: bytes | memoryview) -> BatchRecords | None:
    """Return the records in a batch's bytes, None if it is damaged or has none."""
    data = np.frombuffer(bytearray(batch), dtype=np.uint8)
    faults: list[FaultyRange] = []
    read = SegmentRecords(
        MemoryWindow(data), SegmentOptions(), _COLUMNS, {}, faults.append, with_control_records=True
    ).rows()
    found = [[integers(batch.column(name)).copy() for name in _COLUMNS] for batch in read]
    if faults or not found:
        return None
    return BatchRecords(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))


def records_of_batches(
    batches: Sequence[bytes | memoryview], last_offsets: Sequence[int]
) -> list[BatchRecords | None]:
    """Return what `batch_records` gives for each of a segment's batches, which rise; `last_offsets`
    are by their headers. Sound ones are decoded together, at a fraction of the cost."""
    together = batch_records(b"".join(batches)) if len(batches) > 1 else None
    if together is not None:
        ends = np.searchsorted(together.offsets, last_offsets, side="right").tolist()
        begins = [0, *ends[:-1]]
        if ends[-1] == len(together.offsets) and all(map(lt, begins, ends)):
            return [
                BatchRecords(
                    together.offsets[begin:end],
                    together.timestamps_ms[begin:end],
                    together.timestamp_types[begin:end],
                )
                for begin, end in zip(begins, ends, strict=True)
            ]
    return [batch_records(batch) for batch in batches]
