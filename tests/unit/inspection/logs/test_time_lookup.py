"""The offset for a time, where real brokers' files do not lead. F99, F930, F931."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.logs.time_lookup import offset_for_time, time_answer
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.offset_ranges import DoubtfulRecord, TimeAnswer, TimeRule
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


NOW = 1_000_000_000
HOUR = 3_600_000
PASSING = TimeRule(NOW, HOUR, passes_over=True)
AHEAD = NOW + 30 * HOUR


def hours(*numbers: float, first: int = 0) -> list[bytes]:
    """A batch of one record at each of these hours before now."""
    return [timed(first + i, NOW - int(number * HOUR)) for i, number in enumerate(numbers)]


def test_a_record_ahead_of_the_clock_is_not_the_answer_for_a_time(tmp_path: Path) -> None:
    # F930: Kafka's rule (F99) finds it for every time.
    batches = [*hours(9, 8), timed(2, AHEAD), *hours(7, 6, 5, first=3)]
    log = partition(tmp_path, batches, bases=(0,))
    doubtful = DoubtfulRecord(2, AHEAD, is_ahead=True)
    until = NOW - 6 * HOUR
    assert offset_for_time(log, 0, until) == 2
    assert time_answer(log, 0, until, PASSING) == TimeAnswer(4, (doubtful,))
    assert time_answer(log, 0, NOW, PASSING) == TimeAnswer(None, (doubtful,))
    # By Kafka's rule it stays the answer, and is named.
    assert time_answer(log, 0, until, TimeRule(NOW, HOUR)) == TimeAnswer(2, (doubtful,))
    assert time_answer(log, 0, until, None) == TimeAnswer(2)


def test_as_far_ahead_as_is_allowed_a_record_counts(tmp_path: Path) -> None:
    # F930
    log = partition(
        tmp_path, [*hours(1), timed(1, NOW + HOUR), timed(2, NOW + HOUR + 1)], bases=(0,)
    )
    assert time_answer(log, 0, NOW, PASSING) == TimeAnswer(1)
    found = time_answer(log, 0, NOW + HOUR + 1, PASSING)
    assert found == TimeAnswer(None, (DoubtfulRecord(2, NOW + HOUR + 1, is_ahead=True),))


def test_of_one_batch_only_the_record_with_the_wrong_time_is_passed_over(tmp_path: Path) -> None:
    # F930
    batch = timed(0, NOW - 5 * HOUR, AHEAD, NOW - 4 * HOUR)
    log = partition(tmp_path, [batch, *hours(3, 2, first=3)], bases=(0,))
    assert time_answer(log, 0, NOW - 4 * HOUR, PASSING).offset == 2


@pytest.mark.parametrize("wrong", [1, 7])
@pytest.mark.parametrize("bases", [(0,), (0, 3)])
def test_a_clock_that_was_ahead_in_the_past_is_known_by_the_batches_that_follow(
    tmp_path: Path, wrong: int, bases: tuple[int, ...]
) -> None:
    # F931: up to 7 of the 15 batches that follow can be as wrong, in the next segment too.
    ahead = [timed(2 + i, NOW - 2 * HOUR) for i in range(wrong)]
    following = hours(*(90 - i for i in range(15)), first=2 + wrong)
    batches = [*hours(100, 99), *ahead, *following]
    cut = [batches] if len(bases) == 1 else [batches[:3], batches[3:]]
    log = partition(tmp_path, *cut, bases=bases)
    found = time_answer(log, 0, NOW - 80 * HOUR, PASSING)
    assert found.offset == 2 + wrong + 10
    assert [(each.offset, each.is_ahead) for each in found.doubtful] == [
        (2 + i, False) for i in range(wrong)
    ]


def test_late_records_do_not_make_the_others_doubtful(tmp_path: Path) -> None:
    # F931: every third record is a day late, and the day still ends with its first record.
    times = [hour if i % 3 else hour + 24 for i, hour in enumerate(range(60, 0, -1))]
    log = partition(tmp_path, hours(*times), bases=(0,))
    first = next(i for i, hour in enumerate(times) if hour <= 30)
    assert time_answer(log, 0, NOW - 30 * HOUR, PASSING) == TimeAnswer(first)


def test_batches_without_a_time_are_no_neighbours(tmp_path: Path) -> None:
    # F931
    batches = [
        *hours(5),
        timed(1, NOW - 3 * HOUR),
        timed(2, -1),
        timed(3, -1),
        *hours(2.5, first=4),
    ]
    log = partition(tmp_path, batches, bases=(0,))
    assert time_answer(log, 0, NOW - 4 * HOUR, PASSING) == TimeAnswer(1)
