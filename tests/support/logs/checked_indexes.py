"""The check of indexes on bytes in memory."""

from collections.abc import Iterator

import numpy as np

from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import MemoryWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.inspection.indexes.index_check import SegmentIndexes, check_indexes
from kafkalog.inspection.indexes.index_findings import IndexFinding


def header_tables(
    log: bytes, base_offset: int, next_base_offset: int | None = None
) -> Iterator[LongArray]:
    """The batch tables of a log file, by its headers."""
    data = np.frombuffer(bytearray(log), dtype=np.uint8)
    options = SegmentOptions(base_offset, next_base_offset, check_crcs=False)
    for chunk in SegmentHeaders(MemoryWindow(data), options).chunks():
        yield chunk.table


def checked(
    log: bytes,
    base_offset: int,
    *,
    index: bytes | None = b"",
    timeindex: bytes | None = b"",
    txnindex: bytes | None = None,
    next_base_offset: int | None = None,
    is_active: bool = True,
    is_trimmed: bool = False,
) -> list[IndexFinding]:
    """The findings about the indexes of a log file."""
    indexes = SegmentIndexes(base_offset, index, timeindex, txnindex, is_active, is_trimmed)
    return check_indexes(header_tables(log, base_offset, next_base_offset), indexes)
