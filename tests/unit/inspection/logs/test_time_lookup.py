"""The offset for a time, where real brokers' files do not lead. F99."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.logs.time_lookup import offset_for_time
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.wire.compression import CompressionType


def timed(first: int, *times: int, **fields: object) -> bytes:
    """A batch v2 of records with these times."""
    records = [Record(first + i, time, 0, None, b"") for i, time in enumerate(times)]
    return write_batch(records, BatchFields(**fields))  # type: ignore[arg-type]


def partition(folder: Path, *segments: Sequence[bytes], bases: Sequence[int]) -> PartitionLog:
    directory = folder / "orders-0"
    directory.mkdir()
    for base, batches in zip(bases, segments, strict=True):
        (directory / f"{base:020d}.log").write_bytes(b"".join(batches))
    (log,) = find_partitions([str(directory)])
    return log


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """Times that go up and down: offsets 0 to 5 in one segment, 6 to 8 in the next."""
    first = [timed(0, 100, 300, 200), timed(3, 50, 60, 400)]
    return partition(tmp_path, first, [timed(6, 350, 500, 450)], bases=(0, 6))


@pytest.mark.parametrize(
    ("start", "time", "offset"),
    [
        (0, -1, 0),
        (0, 100, 0),
        (0, 101, 1),
        (0, 300, 1),
        (0, 301, 5),
        (0, 401, 7),
        (0, 500, 7),
        (0, 501, None),
        (2, 100, 2),
        (3, 50, 3),
        (3, 200, 5),
        (6, 100, 6),
        (8, 100, 8),
        (8, 451, None),
        (9, 0, None),
    ],
)
def test_the_first_offset_as_late_from_the_start_on(
    start: int, time: int, offset: int | None, log: PartitionLog
) -> None:
    # F99
    assert offset_for_time(log, start, time) == offset


def test_where_the_header_promises_a_later_time_than_any_record_the_next_batch_is_tried(
    tmp_path: Path,
) -> None:
    # F99: as after the cleaner has removed the record that had it.
    batches = [timed(0, 100, 200, max_timestamp_ms=900), timed(2, 250), timed(3, 800)]
    log = partition(tmp_path, batches, bases=(0,))
    assert offset_for_time(log, 0, 700) == 3
    assert offset_for_time(log, 0, 850) is None


def test_a_control_record_counts(tmp_path: Path) -> None:
    # F99
    marker = write_batch(
        [Record(1, 500, 0, b"\0\0\0\1", b"\0" * 6)], BatchFields(is_control=True, producer_id=1)
    )
    assert offset_for_time(partition(tmp_path, [timed(0, 100), marker], bases=(0,)), 0, 400) == 1


def test_with_log_append_time_the_first_record_of_the_batch_is_as_late(tmp_path: Path) -> None:
    # F15, F99, T8
    batch = timed(5, 1, 2, 3, timestamp_type=1, max_timestamp_ms=900)
    assert offset_for_time(partition(tmp_path, [batch], bases=(5,)), 0, 800) == 5


@pytest.mark.parametrize("magic", [1, 0])
def test_old_compressed_messages_are_looked_into(magic: int, tmp_path: Path) -> None:
    # F42, F45, F99, T20: format 0 has no times at all.
    times = (100, 300, 200) if magic else (-1, -1, -1)
    records = [Record(5 + i, time, 0 if magic else -1, None, b"") for i, time in enumerate(times)]
    wrapper = write_message_set(records, magic, CompressionType.GZIP)
    log = partition(tmp_path, [wrapper], bases=(5,))
    assert offset_for_time(log, 0, 250) == (6 if magic else None)


def test_a_damaged_batch_counts_for_nothing(tmp_path: Path) -> None:
    # F75
    damaged = timed(1, 500)[:-1] + b"!"
    log = partition(tmp_path, [timed(0, 100), damaged, timed(2, 600)], bases=(0,))
    assert offset_for_time(log, 0, 400) == 2


def test_a_batch_of_very_many_records_is_looked_through_to_its_end(tmp_path: Path) -> None:
    # It is read in several record batches, slices of one another.
    many = 70_000
    log = partition(tmp_path, [timed(0, *range(many))], bases=(0,))
    assert offset_for_time(log, 0, 69_000) == 69_000
