"""The least that any reader has to do: check every checksum, decompress, copy the payload once.

By the same libraries as kafkalog's. Where batches begin and end is known beforehand and records
are not looked at, so that nothing can be faster without a better library.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from benchmarks.inputs.segments import CHECKSUM_START, HEADER_BYTES, Segment
from kafkalog.columns.records.record_columns import OUTPUT_BYTES
from kafkalog.wire.compression import decompress_into

_SCRATCH_BYTES = 64 * 1024 * 1024
_scratch = np.empty(0, dtype=np.uint8)


def floor(segment: Segment) -> int:
    """Copy all payloads into buffers such as Arrow batches get; how many bytes that were."""
    data = segment.data.data
    scratch = _room()
    buffer = np.frombuffer(pa.allocate_buffer(OUTPUT_BYTES), dtype=np.uint8).data
    total = used = 0
    for batch in segment.batches:
        if crc32c(data[batch.position + CHECKSUM_START : batch.end]) != batch.crc:
            raise ValueError(f"the batch at {batch.position} is damaged")
        payload = data[batch.position + HEADER_BYTES : batch.end]
        if batch.codec_id:
            payload = scratch[: decompress_into(batch.codec_id, 2, payload, scratch)]
        size = len(payload)
        if used + size > len(buffer):
            buffer = np.frombuffer(pa.allocate_buffer(max(OUTPUT_BYTES, size)), dtype=np.uint8).data
            used = 0
        buffer[used : used + size] = payload
        used += size
        total += size
    return total


def _room() -> memoryview:
    """Memory for one decompressed batch, allocated once, used again and again."""
    global _scratch
    if not len(_scratch):
        _scratch = np.empty(_SCRATCH_BYTES, dtype=np.uint8)
    return _scratch.data
