"""Segments of kafkalog's own writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.inputs.payloads import payloads
from benchmarks.inputs.segments import Segment, frame, write_repeated
from benchmarks.inputs.wanted import GENERATED, MEGABYTE, Input, Wanted
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.wire.compression import CompressionType

_WRITTEN_BYTES = 16 * MEGABYTE  # the writer is slow: what exceeds this is repeated
_BATCH_BYTES = 64 * 1024
_RECORD_OVERHEAD = 27  # a key of 16 bytes and the fields around
_FIRST_TIMESTAMP_MS = 1_700_000_000_000


def generated(wanted: Wanted, say: Callable[[str], None]) -> list[Input]:
    inputs = wanted.inputs(GENERATED, "generated")
    for item in inputs:
        if not item.path.exists():
            say(f"writing {item.label}")
            _generate(item, wanted.size)
    return inputs


def _generate(item: Input, size: int) -> None:
    batches = b"".join(_batches(item, min(size, _WRITTEN_BYTES)))
    data = memoryview(bytearray(batches))
    repetitions = max(size // _WRITTEN_BYTES, 1)
    scratch = item.path.with_suffix(".tmp")
    with scratch.open("wb") as file:
        write_repeated(
            Segment(np.frombuffer(data, dtype=np.uint8), frame(data)), repetitions * len(data), file
        )
    scratch.replace(item.path)


def _batches(item: Input, size: int) -> Iterator[bytes]:
    fields = BatchFields(compression=CompressionType[item.codec.upper()])
    values = payloads(item.record_size)
    count = max(_BATCH_BYTES // (item.record_size + _RECORD_OVERHEAD), 1)
    for first in range(0, max(size // item.record_size, 1), count):
        offsets = range(first, first + count)
        yield write_batch([_record(offset, next(values)) for offset in offsets], fields)


def _record(offset: int, value: bytes) -> Record:
    return Record(offset, _FIRST_TIMESTAMP_MS + offset, 0, b"key-%012d" % offset, value)
