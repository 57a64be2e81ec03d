"""Rows into batches v2, a batch at a time: the fast twin of format/record_batch.py's writer.

Rules: docs/writing.md F560 to F563.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.writing.encoding_kernels import (
    BYTES_WRITTEN,
    LATEST_TIMESTAMP,
    RowArrays,
    put_records,
)
from kafkalog.columns.writing.written_rows import WrittenRows
from kafkalog.errors import RowError
from kafkalog.format import batch_header as layout
from kafkalog.format.record_batch import MAX_BATCH_BYTES
from kafkalog.wire.checksums import crc32c
from kafkalog.wire.compression import CompressionType, compress

DEFAULT_BATCH_BYTES = 128 * 1024


class BatchEncoder:
    """Writes batches of up to `batch_bytes`, before compression, a larger record in one of its own.

    Memory is that of the largest batch so far, up to `most_bytes`; a record that takes more raises
    RowError.
    """

    def __init__(
        self,
        compression: CompressionType,
        batch_bytes: int = DEFAULT_BATCH_BYTES,
        most_bytes: int = MAX_BATCH_BYTES,
    ) -> None:
        self._compression = compression
        self._batch_bytes = max(batch_bytes - layout.V2_HEADER_BYTES, 1)
        self._most_bytes = most_bytes
        self._target = np.empty(min(self._batch_bytes, most_bytes), dtype=np.uint8)
        self._written: LongArray = np.zeros(2, dtype=np.int64)

    def batches(self, rows: pa.RecordBatch, next_offset: int) -> Iterator[bytes]:
        """Yield the batches of rows of one partition, in the order of their offsets.

        Raises RowError, and nothing of the rows is given then but what came before.
        """
        found = WrittenRows(rows, next_offset)
        arrays = found.arrays()
        row = 0
        for end in found.run_ends():
            while row < end:
                following = self._put(arrays, row, end)
                yield self._batch(found, row, following)
                row = following

    def _put(self, arrays: RowArrays, row: int, end: int) -> int:
        following = put_records(arrays, row, end, self._batch_bytes, self._target, self._written)
        if following > row:
            return int(following)
        needed = int(self._written[BYTES_WRITTEN])
        if needed > self._most_bytes - layout.V2_HEADER_BYTES:
            raise RowError(
                f"the record at offset {int(arrays.offset[row])} takes {needed} bytes, allowed are "
                f"{self._most_bytes - layout.V2_HEADER_BYTES}"
            )
        self._target = np.empty(needed, dtype=np.uint8)
        return int(put_records(arrays, row, end, self._batch_bytes, self._target, self._written))

    def _batch(self, rows: WrittenRows, first: int, end: int) -> bytes:
        records = self._target[: int(self._written[BYTES_WRITTEN])].tobytes()
        payload = compress(self._compression, 2, records)
        attributes = int(self._compression)
        if rows.timestamp_type[first] == layout.LOG_APPEND_TIME:
            attributes |= layout.LOG_APPEND_TIME_BIT
        base_offset = int(rows.offset[first])
        checked = (
            attributes,
            int(rows.offset[end - 1]) - base_offset,
            int(rows.timestamp_ms[first]),
            int(self._written[LATEST_TIMESTAMP]),
            int(rows.producer_id[first]),
            int(rows.producer_epoch[first]),
            int(rows.sequence[first]),
            end - first,
        )
        length = layout.V2_HEADER_BYTES - layout.LOG_OVERHEAD + len(payload)
        leading = base_offset, length, int(rows.leader_epoch[first]), 2
        unchecked = layout.V2_HEADER.pack(*leading, 0, *checked)
        crc = crc32c(payload, crc32c(unchecked[layout.V2_CHECKSUM_START :]))
        return b"".join((layout.V2_HEADER.pack(*leading, crc, *checked), payload))
