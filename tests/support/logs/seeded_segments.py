"""Segments of batches v2 that a seed decides."""

import random

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.wire.compression import CompressionType

BATCHES = 12


def sound_segment(seed: int) -> bytes:
    """Batches v2 without gaps, of several codecs and sizes."""
    randomness = random.Random(seed)
    parts: list[bytes] = []
    offset = 0
    for _ in range(BATCHES):
        count = randomness.randint(1, 9)
        records = [
            Record(offset + i, 1000, 0, b"key", randomness.randbytes(randomness.randint(0, 90)))
            for i in range(count)
        ]
        codec = randomness.choice(list(CompressionType))
        parts.append(write_batch(records, BatchFields(compression=codec)))
        offset += count
    return b"".join(parts)
