"""Single log files given by their own paths: live ones, marked ones, copies. F91, F92."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.errors import LogDirError
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import LogDir, PartitionLog, SegmentFile
from tests.support.logs.log_dirs import UNIQUE, add_partition, log_name


def log_of_files(
    directory: Path, topic: str | None, number: int | None, *segments: SegmentFile
) -> PartitionLog:
    return PartitionLog(
        topic=topic,
        partition=number,
        path=str(directory),
        log_dir=LogDir(str(directory.parent)),
        segments=segments,
        is_live=False,
        is_named=True,
    )


def file_at(path: Path, base_offset: int | None, follower: int | None, size: int) -> SegmentFile:
    return SegmentFile(str(path), base_offset, follower, size, str(path))


@pytest.mark.parametrize(("base_offset", "follower"), [(0, 10), (10, 25), (25, None)])
def test_a_log_file_knows_where_the_next_one_beside_it_begins(
    base_offset: int, follower: int | None, tmp_path: Path
) -> None:
    # F91.
    partition = add_partition(tmp_path, "web-shop.v2-3", 0, 10, 25, size=7)
    path = partition / log_name(base_offset)
    assert find_partitions([str(path)]) == [
        log_of_files(partition, "web-shop.v2", 3, file_at(path, base_offset, follower, 7))
    ]


def test_log_files_of_one_partition_make_one_log_in_the_order_of_offsets(tmp_path: Path) -> None:
    # F91.
    partition = add_partition(tmp_path, "orders-0", 0, 10, 25, size=7)
    last, first = partition / log_name(25), partition / log_name(0)
    assert find_partitions([str(last), str(first)]) == [
        log_of_files(partition, "orders", 0, file_at(first, 0, 10, 7), file_at(last, 25, None, 7))
    ]


def test_a_glob_of_log_files_matches_them(tmp_path: Path) -> None:
    partition = add_partition(tmp_path, "orders-0", 0, 10, size=7)
    first, second = (partition / log_name(base_offset) for base_offset in (0, 10))
    assert find_partitions([str(partition / "*.log")]) == [
        log_of_files(partition, "orders", 0, file_at(first, 0, 10, 7), file_at(second, 10, None, 7))
    ]


def test_a_glob_of_all_files_of_a_partition_gives_its_logs_only(tmp_path: Path) -> None:
    # F91: a path is a log directory, a partition directory, a log file, or a glob of these.
    partition = add_partition(tmp_path, "orders-0", 0)
    path = partition / log_name(0)
    assert find_partitions([str(partition / "*")]) == [
        log_of_files(partition, "orders", 0, file_at(path, 0, None, 0))
    ]


@pytest.mark.parametrize("mark", [".deleted", ".cleaned", ".swap"])
def test_a_marked_file_is_read_when_given_by_path(mark: str, tmp_path: Path) -> None:
    # F92, T32.
    partition = add_partition(tmp_path, "orders-0", 100)
    path = partition / log_name(0, mark)
    path.write_bytes(bytes(5))
    assert find_partitions([str(path)]) == [
        log_of_files(partition, "orders", 0, file_at(path, 0, None, 5))
    ]


def test_a_file_in_a_marked_directory_is_of_that_topic(tmp_path: Path) -> None:
    # F92, T32.
    partition = add_partition(tmp_path, f"web-shop-7.{UNIQUE}-delete", 0, 10)
    path = partition / log_name(0)
    assert find_partitions([str(path)]) == [
        log_of_files(partition, "web-shop", 7, file_at(path, 0, 10, 0))
    ]


def test_a_file_of_another_name_is_of_no_topic_and_tells_no_offset(tmp_path: Path) -> None:
    # F91.
    (tmp_path / "mail").mkdir()
    path = tmp_path / "mail" / "segment.bin"
    path.write_bytes(bytes(9))
    assert find_partitions([str(path)]) == [
        log_of_files(tmp_path / "mail", None, None, file_at(path, None, None, 9))
    ]


def test_a_file_of_another_name_in_a_partition_is_of_that_partition(tmp_path: Path) -> None:
    partition = add_partition(tmp_path, "orders-0", 0)
    path = partition / "rescued"
    path.write_bytes(bytes(9))
    assert find_partitions([str(path)]) == [
        log_of_files(partition, "orders", 0, file_at(path, None, None, 9))
    ]


def test_files_of_several_directories_are_several_logs(tmp_path: Path) -> None:
    orders = add_partition(tmp_path, "orders-0", 0) / log_name(0)
    users = add_partition(tmp_path, "users-1", 5) / log_name(5)
    assert find_partitions([str(users), str(orders)]) == [
        log_of_files(orders.parent, "orders", 0, file_at(orders, 0, None, 0)),
        log_of_files(users.parent, "users", 1, file_at(users, 5, None, 0)),
    ]


def test_a_relative_path_of_a_file_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = add_partition(tmp_path, "orders-0", 0)
    monkeypatch.chdir(partition)
    path = partition / log_name(0)
    assert find_partitions([log_name(0)]) == [
        log_of_files(partition, "orders", 0, file_at(path, 0, None, 0))
    ]


def test_a_file_that_is_not_there_is_an_error_naming_it(tmp_path: Path) -> None:
    partition = add_partition(tmp_path, "orders-0", 0)
    with pytest.raises(LogDirError) as caught:
        find_partitions([str(partition / log_name(10))])
    assert str(caught.value).startswith(f"{partition / log_name(10)}: ")


def test_a_link_that_leads_nowhere_is_an_error_naming_it(tmp_path: Path) -> None:
    link = tmp_path / log_name(0)
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(LogDirError) as caught:
        find_partitions([str(link)])
    assert str(caught.value).startswith(f"{link}: ")


@pytest.mark.parametrize(
    ("compress", "said"),
    [
        (gzip.compress, "is compressed by gzip and not a log: unpack it first, with gunzip -k "),
        (lzma.compress, "is compressed by xz and not a log: unpack it first, with unxz -k "),
        (bz2.compress, "is compressed by bzip2 and not a log: unpack it first, with bunzip2 -k "),
    ],
)
def test_a_compressed_file_is_refused_with_what_to_type(
    compress: Callable[[bytes], bytes], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "2.log.packed"
    path.write_bytes(compress(bytes(100)))
    with pytest.raises(LogDirError, match=f"^{path} {said}{path}$"):
        find_partitions([str(path)])
    # With a broker's name it is damage, as on a broker.
    (named,) = find_partitions([str(path.rename(tmp_path / log_name(0)))])
    assert len(named.segments) == 1
