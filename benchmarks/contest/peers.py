"""Other readers of the same bytes, their records put into Arrow batches of the same columns.

Each checks the checksums, as it does by default in its own consumer, unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from benchmarks.contest.readers import FULL

Reader = Callable[[bytes], Iterator[pa.RecordBatch]]

_TYPES = (pa.binary(), pa.binary(), pa.int64(), pa.timestamp("ms", tz="UTC"))
_TIMESTAMP = pa.timestamp("us", tz="UTC")


class NotInstalledError(Exception):
    """What would have to be installed."""


def aiokafka(codec: str, *, check_crcs: bool = True) -> Reader:
    """aiokafka's parser, which is compiled. Raises NotInstalledError."""
    try:
        import aiokafka.codec as codecs
        from aiokafka.record.memory_records import MemoryRecords
    except ImportError as error:
        raise NotInstalledError("aiokafka") from error
    if MemoryRecords.__module__ != "aiokafka.record._crecords.memory_records":
        raise NotInstalledError("aiokafka's compiled parser")
    _check_codec(codecs, codec, "aiokafka")
    return lambda data: _rows(MemoryRecords(data), check_crcs=check_crcs)


def kafka_python(codec: str, *, check_crcs: bool = True) -> Reader:
    """kafka-python's parser, plain Python. Raises NotInstalledError."""
    try:
        import kafka.codec as codecs
        from kafka.record.memory_records import MemoryRecords
    except ImportError as error:
        raise NotInstalledError("kafka-python") from error
    _check_codec(codecs, codec, "kafka-python")
    return lambda data: _rows(MemoryRecords(data), check_crcs=check_crcs)


def _check_codec(codecs: Any, codec: str, name: str) -> None:
    if codec != "none" and not getattr(codecs, f"has_{codec}")():
        raise NotInstalledError(f"the {codec} library that {name} wants")


def _rows(memory_records: Any, *, check_crcs: bool) -> Iterator[pa.RecordBatch]:
    """An Arrow batch to each of Kafka's: of several ways the one that was fastest for the peers."""
    while memory_records.has_next():
        batch = memory_records.next_batch()
        if check_crcs and not batch.validate_crc():
            raise ValueError("the input is damaged")
        yield _arrow(batch)


def _arrow(batch: Any) -> pa.RecordBatch:
    lists: tuple[list[Any], ...] = ([], [], [], [])
    keys, values, offsets, timestamps = lists
    for record in batch:
        keys.append(record.key)
        values.append(record.value)
        offsets.append(record.offset)
        timestamps.append(record.timestamp)
    columns = [pa.array(*pair) for pair in zip(lists, _TYPES, strict=True)]
    columns[-1] = columns[-1].cast(_TIMESTAMP)
    return pa.RecordBatch.from_arrays(columns, list(FULL))
