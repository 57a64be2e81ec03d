"""Directories of Kafka 0.7's layout, made by hand from the documents. F154 to F157, F159."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.records.oldest_records import OldestRecords
from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.format.faults import Fault, Severity
from kafkalog.format.records import Record
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import PartitionName, oldest_base_offset, oldest_partition_name
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.oldest_log import (
    OldestRange,
    is_oldest_layout,
    is_unfinished,
    read_oldest_file,
)
from tests.support.logs.oldest_logs import ONE, PACKED, THREE, TWO, entry, write_files


def read_oldest_log(log: PartitionLog) -> Iterator[Record]:
    """Return all records of a log, with the plain reader. An unfinished end is not damage."""
    for segment in log.segments:
        with InputFile(segment.path) as file:
            for found in read_oldest_file(file, segment.base_offset or 0):
                is_last = segment.next_base_offset is None
                if found.fault is not Fault.NONE and not (is_last and is_unfinished(found)):
                    raise CorruptDataError(
                        found.fault.label, found.detail, position=found.position, path=segment.path
                    )
                yield from found.records


def only_log(path: Path) -> PartitionLog:
    (log,) = find_partitions([str(path)])
    return log


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [
        ("my_topic_0", "my_topic", 0),
        ("my_topic_1", "my_topic", 1),
        ("clicks-12", "clicks", 12),
        ("a_1-2_3", "a_1-2", 3),
        ("a_1_2-3", "a_1_2", 3),
    ],
)
def test_the_partition_follows_the_last_underscore_or_dash(
    name: str, topic: str, partition: int
) -> None:
    # F154
    assert oldest_partition_name(name) == PartitionName(topic, partition)


@pytest.mark.parametrize("name", ["topic", "topic_", "_0", "topic_x", "topic_2147483648"])
def test_other_names_are_none_of_a_partition(name: str) -> None:
    # F154
    assert oldest_partition_name(name) is None


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("00000000000.kafka", 0),
        ("00000001024.kafka", 1024),
        ("00000000000000001024.kafka", 1024),
        ("0000000000.kafka", None),
        ("00000000000.log", None),
        ("00000000000.kafka.deleted", None),
    ],
)
def test_files_are_named_by_an_offset_in_11_digits_or_more(name: str, offset: int | None) -> None:
    # F154
    assert oldest_base_offset(name) == offset


def test_a_log_directory_may_hold_them_beside_others(tmp_path: Path) -> None:
    # F154: a directory without such files is none, whatever it is called.
    write_files(tmp_path / "my_topic_0", ONE)
    write_files(tmp_path / "my_topic_1", TWO)
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020d}.log").touch()
    (tmp_path / "lost_found_0").mkdir()
    found = {log.name: is_oldest_layout(log) for log in find_partitions([str(tmp_path)])}
    assert found == {"my_topic-0": True, "my_topic-1": True, "orders-0": False}


def test_such_files_can_be_given_by_path_and_by_glob(tmp_path: Path) -> None:
    # F154
    directory = write_files(tmp_path / "my_topic_0", ONE, TWO)
    for path in (tmp_path, directory, directory / "*.kafka"):
        log = only_log(path)
        assert (log.topic, log.partition) == ("my_topic", 0)
        assert [segment.base_offset for segment in log.segments] == [0, len(ONE)]
    log = only_log(directory / f"{len(ONE):011d}.kafka")
    assert [record.value for record in read_oldest_log(log)] == [b"two"]


def test_a_directory_called_like_one_is_not_a_log_by_its_name_alone(tmp_path: Path) -> None:
    # F154
    (tmp_path / "my_topic_0").mkdir()
    with pytest.raises(LogDirError):
        find_partitions([str(tmp_path / "my_topic_0")])


def test_files_follow_each_other_by_number_not_by_name(tmp_path: Path) -> None:
    # F154, F156
    directory = tmp_path / "t_0"
    directory.mkdir()
    (directory / f"{0:020d}.kafka").write_bytes(ONE)
    (directory / f"{len(ONE):011d}.kafka").write_bytes(TWO)
    records = list(read_oldest_log(only_log(directory)))
    assert [record.value for record in records] == [b"one", b"two"]


def test_an_offset_is_the_place_of_the_message_in_all_that_was_written(tmp_path: Path) -> None:
    # F155, F156: ONE has 4 + 5 + 3 bytes, TWO 4 + 6 + 3.
    log = only_log(write_files(tmp_path / "t_0", ONE + TWO, THREE + PACKED))
    assert [(record.offset, record.value) for record in read_oldest_log(log)] == [
        (0, b"one"),
        (12, b"two"),
        (25, b""),
        (35, b"four"),
        (35, b"five"),
    ]


def ranges(path: Path, content: bytes, **options: Any) -> list[OldestRange]:
    path.write_bytes(content)
    with InputFile(str(path)) as file:
        return list(read_oldest_file(file, 100, **options))


@pytest.mark.parametrize(
    ("first", "end", "values"),
    [
        (0, 10**9, [b"one", b"two", b""]),
        (100, 112, [b"one"]),
        (100, 113, [b"one", b"two"]),
        (101, 10**9, [b"two", b""]),
        (112, 125, [b"two"]),
        (126, 10**9, []),
    ],
)
def test_entries_are_read_whose_offset_is_requested(
    first: int, end: int, values: list[bytes], tmp_path: Path
) -> None:
    # F141, F156
    found = ranges(tmp_path / "f", ONE + TWO + THREE, first_offset=first, end_offset=end)
    assert [record.value for part in found for record in part.records] == values


@pytest.mark.parametrize(
    ("tail", "fault"),
    [
        (TWO[:1], Fault.TRUNCATED),
        (TWO[:4], Fault.TRUNCATED),
        (TWO[:-1], Fault.TRUNCATED),
        (bytes(3), Fault.TRUNCATED),
        (bytes(4), Fault.ZEROS),
        (bytes(3_000_000), Fault.ZEROS),
        (b"garbage, garbage", Fault.LENGTH),
        (b"\0\0\0\x02 garbage", Fault.LENGTH),
        (bytes(50) + b"x", Fault.LENGTH),
    ],
)
def test_both_kinds_of_damage_at_the_end_are_told_apart(
    tail: bytes, fault: Fault, tmp_path: Path
) -> None:
    # F159, T3: what was not written any more, and nonsense that was. All bytes are accounted for.
    found = ranges(tmp_path / "f", ONE + tail)
    assert [part.fault for part in found] == [Fault.NONE, fault]
    assert (found[1].position, found[1].size) == (len(ONE), len(tail))


def test_an_unfinished_message_is_normal_in_the_last_file_only(tmp_path: Path) -> None:
    # F159
    last = only_log(write_files(tmp_path / "a_0", ONE, TWO[:-1]))
    assert [record.value for record in read_oldest_log(last)] == [b"one"]
    first = only_log(write_files(tmp_path / "b_0", ONE[:-1], TWO))
    with pytest.raises(CorruptDataError, match="truncated"):
        list(read_oldest_log(first))


def test_a_wrong_checksum_leaves_the_messages_around_it(tmp_path: Path) -> None:
    # F75, F157, F159
    broken = TWO[:-1] + b"!"
    found = ranges(tmp_path / "f", ONE + broken + THREE)
    assert [part.fault for part in found] == [Fault.NONE, Fault.CHECKSUM, Fault.NONE]
    (part,) = ranges(tmp_path / "f", broken, check_crcs=False)
    assert [record.value for record in part.records] == [b"tw!"]


def test_a_message_above_the_largest_size_is_not_loaded(tmp_path: Path) -> None:
    # F51, F143
    found = ranges(tmp_path / "f", ONE + TWO, max_message_bytes=8)
    assert [part.fault for part in found] == [Fault.NONE, Fault.TOO_LARGE]


def test_columns_of_view_records(tmp_path: Path) -> None:
    # F155 to F157: neither key, time nor headers; what Kafka 0.7 did not know is null.
    path = tmp_path / "f"
    path.write_bytes(ONE + PACKED + b"\0")
    columns = (
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
        "timestampMs", "leaderEpoch", "isTransactional", "compression", "magic",
        "batchBaseOffset", "position",
    )  # fmt: skip
    faults: list[Any] = []
    with InputFile(str(path)) as file:
        constants: dict[str, str | int | None] = {"topic": "t", "partition": 3}
        options = SegmentOptions(base_offset=100)
        batches = list(OldestRecords(file, options, columns, constants, faults.append).rows())
    common = {
        "key": None, "topic": "t", "partition": 3, "timestamp": None, "timestampType": -1,
        "headers": None, "timestampMs": -1, "leaderEpoch": None, "isTransactional": False,
    }  # fmt: skip
    packed = {"offset": 112, "compression": "gzip", "magic": 1, "batchBaseOffset": 112}
    assert [row for batch in batches for row in batch.to_pylist()] == [
        common
        | {"value": b"one", "offset": 100, "compression": "none", "magic": 0}
        | {"batchBaseOffset": 100, "position": 0},
        common | packed | {"value": b"four", "position": 12},
        common | packed | {"value": b"five", "position": 12},
    ]
    (fault,) = faults
    assert (fault.fault, fault.severity) == (Fault.TRUNCATED, Severity.INFORMATION)


def test_many_messages_come_in_batches_of_bounded_size(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(entry(b"x" * 100) * 10_000)
    with InputFile(str(path)) as file:
        batches = list(
            OldestRecords(file, SegmentOptions(base_offset=0), ("offset",), {}, print).rows()
        )
    assert [batch.num_rows for batch in batches] == [4096, 4096, 1808]
