"""The records of a partition of a coordinator's topic, from all of its copies: the cleaner of one
broker has not been as far as that of another. Rules: docs/restore.md F1048, F1052 and F1053.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafkalog.errors import CorruptDataError, OffsetOutOfRangeError
from kafkalog.format.batch_header import NO_VALUE, read_header
from kafkalog.format.record_batch import read_batch
from kafkalog.format.transaction_marker import COMMIT, read_marker
from kafkalog.questions.restore.partitions.united_logs import replaced_segments
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_reader import LogReader
from kafkalog.storage.recovery.framing import check_sum, frames

_CHUNK_BYTES = 4 * 1024 * 1024


class CoordinatorRecord(NamedTuple):
    """A record, or, with `is_commit` not None, the marker that ends a transaction. `producer_id` is
    -1 outside of transactions."""

    offset: int
    time_ms: int
    key: bytes
    value: bytes | None
    producer_id: int = NO_VALUE
    producer_epoch: int = NO_VALUE
    is_commit: bool | None = None


def coordinator_records(logs: Sequence[PartitionLog]) -> list[CoordinatorRecord]:
    """Return the records of all copies of a partition in the order of their offsets. What follows
    damage in one copy is taken from the others."""
    found: dict[int, CoordinatorRecord] = {}
    for log in logs:
        for record in (*_records(log), *_replaced_records(log)):
            found.setdefault(record.offset, record)
    return [found[offset] for offset in sorted(found)]


def _records(log: PartitionLog) -> Iterator[CoordinatorRecord]:
    reader = LogReader(log)
    offset = log.segments[0].base_offset or 0 if log.segments else 0
    try:
        for chunk in reader.chunks(max(offset, reader.start_offset), _CHUNK_BYTES):
            for batch in chunk.batches():
                yield from _of_batch(batch)
    except (CorruptDataError, OffsetOutOfRangeError):
        return


def _replaced_records(log: PartitionLog) -> Iterator[CoordinatorRecord]:
    """Yield what is in files that the cleaner has replaced, and not yet removed."""
    for segment in replaced_segments(log):
        with InputFile(segment.path) as file:
            try:
                for frame in frames(file):
                    check_sum(file, frame)
                    yield from _of_batch(file.read(frame.position, frame.header.size))
            except CorruptDataError:
                continue


def _of_batch(batch: bytes) -> Iterator[CoordinatorRecord]:
    header = read_header(batch, 0)
    producer = header.producer_id, header.producer_epoch
    if header.is_control:
        if header.records_count > 0 and header.producer_id >= 0:
            is_commit = read_marker(batch).type == COMMIT
            place = header.base_offset, header.max_timestamp_ms
            yield CoordinatorRecord(*place, b"", None, *producer, is_commit)
        return
    if not header.is_transactional:
        producer = NO_VALUE, NO_VALUE
    for record in read_batch(batch, 0):
        if record.key is not None:
            yield CoordinatorRecord(
                record.offset, record.timestamp_ms, record.key, record.value, *producer
            )


def complete_from(records: Sequence[CoordinatorRecord], cut: int) -> int:
    """Return the offset from which on no copy lacks a record below the cut: before it the cleaner
    can have removed some that were in force at the moment."""
    expected = cut
    for record in reversed(records):
        if record.offset >= cut:
            continue
        if record.offset < expected - 1:
            break
        expected = record.offset
    return expected
