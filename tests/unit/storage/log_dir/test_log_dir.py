"""Which partitions are under a path: log directories, partition directories and globs. F90 to F92.

Single files are in test_log_files_by_path.py.
"""

from pathlib import Path

import pytest

from kafkalog.errors import LogDirError
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import LogDir, PartitionLog
from tests.support.logs.log_dirs import (
    UNIQUE,
    add_meta_properties,
    add_partition,
    checkpoint_text,
    log_name,
    log_of,
    segments_in,
)
from tests.support.logs.samples import batch


def found_log(
    partition: Path, topic: str, number: int, *base_offsets: int, size: int = 0
) -> PartitionLog:
    """A live partition found in the log directory that was given."""
    return PartitionLog(
        topic=topic,
        partition=number,
        path=str(partition),
        log_dir=LogDir(str(partition.parent)),
        segments=segments_in(partition, *base_offsets, size=size, found_under=partition.parent),
    )


def named_log(partition: Path, topic: str, number: int, *base_offsets: int) -> PartitionLog:
    """A live partition given by its own path."""
    return PartitionLog(
        topic=topic,
        partition=number,
        path=str(partition),
        log_dir=LogDir(str(partition.parent)),
        segments=segments_in(partition, *base_offsets, found_under=partition),
        is_named=True,
    )


def places(logs: list[PartitionLog]) -> list[str]:
    return [log.path for log in logs]


def test_a_log_dir_holds_partitions_of_segments(tmp_path: Path) -> None:
    # F90, F91.
    first = add_partition(tmp_path, "orders-0", 0, 100, 250, size=10)
    second = add_partition(tmp_path, "orders-1", 77, size=20)
    assert find_partitions([str(tmp_path)]) == [
        found_log(first, "orders", 0, 0, 100, 250, size=10),
        found_log(second, "orders", 1, 77, size=20),
    ]


def test_topics_keep_their_dashes_and_dots(tmp_path: Path) -> None:
    # F90, T32.
    dotted = add_partition(tmp_path, "eu.orders.v2-3", 0)
    dashed = add_partition(tmp_path, "web-shop-orders-12", 0)
    assert find_partitions([str(tmp_path)]) == [
        found_log(dotted, "eu.orders.v2", 3, 0),
        found_log(dashed, "web-shop-orders", 12, 0),
    ]


def test_a_topic_may_have_249_characters(tmp_path: Path) -> None:
    # F90.
    partition = add_partition(tmp_path, f"{'t' * 249}-0", 0)
    assert find_partitions([str(tmp_path)]) == [found_log(partition, "t" * 249, 0, 0)]


def test_partitions_are_sorted_by_topic_and_number(tmp_path: Path) -> None:
    names = ["b-10", "b-9", "a-2", "a-b-0", "a-10"]
    for name in names:
        add_partition(tmp_path, name, 0)
    found = [(log.topic, log.partition) for log in find_partitions([str(tmp_path)])]
    assert found == [("a", 2), ("a", 10), ("a-b", 0), ("b", 9), ("b", 10)]


def test_segments_are_sorted_by_their_offsets(tmp_path: Path) -> None:
    # F91.
    partition = add_partition(tmp_path, "t-0", 2**40, 9, 10, 0)
    assert find_partitions([str(tmp_path)]) == [found_log(partition, "t", 0, 0, 9, 10, 2**40)]


def test_all_that_is_not_a_partition_is_left_out(tmp_path: Path) -> None:
    # F90, F92, T32.
    live = add_partition(tmp_path, "orders-0", 0)
    for name in (
        f"orders-0.{UNIQUE}-delete",
        f"orders-1.{UNIQUE}-stray",
        f"orders-2.{UNIQUE}-future",
        "lost+found",
        "remote-log-index-cache",
        "snapshots",
    ):
        add_partition(tmp_path, name, 0)
    (tmp_path / "notes-1").write_text("a file, whatever it is called")
    assert find_partitions([str(tmp_path)]) == [found_log(live, "orders", 0, 0)]


def test_marked_files_are_not_segments(tmp_path: Path) -> None:
    # F92, T32.
    partition = add_partition(tmp_path, "orders-0", 100, 200)
    for base_offset, mark in ((0, ".deleted"), (100, ".cleaned"), (150, ".swap"), (300, ".tmp")):
        (partition / log_name(base_offset, mark)).touch()
    assert find_partitions([str(tmp_path)]) == [found_log(partition, "orders", 0, 100, 200)]


def test_an_empty_partition_has_no_segments(tmp_path: Path) -> None:
    empty = tmp_path / "orders-0"
    empty.mkdir()
    other = add_partition(tmp_path, "orders-1")
    assert find_partitions([str(tmp_path)]) == [
        found_log(empty, "orders", 0),
        found_log(other, "orders", 1),
    ]


@pytest.mark.parametrize("name", ["meta.properties", "replication-offset-checkpoint"])
def test_a_log_dir_may_have_no_partition_yet(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    (tmp_path / "lost+found").mkdir()
    assert find_partitions([str(tmp_path)]) == []


def test_no_path_finds_nothing() -> None:
    assert find_partitions([]) == []


def test_a_log_dir_may_be_named_like_a_partition(tmp_path: Path) -> None:
    # F90.
    add_meta_properties(tmp_path / "data-1")
    partition = add_partition(tmp_path / "data-1", "orders-0", 0)
    (log,) = find_partitions([str(tmp_path / "data-1")])
    assert (log.name, log.path, log.log_dir.path) == (
        "orders-0",
        str(partition),
        str(tmp_path / "data-1"),
    )


def test_an_empty_log_dir_may_be_named_like_a_partition(tmp_path: Path) -> None:
    # F90.
    add_meta_properties(tmp_path / "data-1")
    assert find_partitions([str(tmp_path / "data-1")]) == []


def test_a_partition_directory_is_found_by_its_path(tmp_path: Path) -> None:
    # F90, F91.
    partition = add_partition(tmp_path, "web-shop.v2-3", 5, 10)
    add_partition(tmp_path, "other-0", 0)
    assert find_partitions([str(partition)]) == [named_log(partition, "web-shop.v2", 3, 5, 10)]


def test_an_empty_partition_directory_is_found_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    assert find_partitions([str(tmp_path / "orders-0")]) == [
        named_log(tmp_path / "orders-0", "orders", 0)
    ]


@pytest.mark.parametrize("mark", ["delete", "stray", "future"])
def test_a_marked_directory_is_read_when_given_by_path(mark: str, tmp_path: Path) -> None:
    # F92, T32.
    marked = add_partition(tmp_path, f"web-shop-0.{UNIQUE}-{mark}", 0, 10)
    assert find_partitions([str(marked)]) == [
        PartitionLog(
            topic="web-shop",
            partition=0,
            path=str(marked),
            log_dir=LogDir(str(tmp_path)),
            segments=segments_in(marked, 0, 10, found_under=marked),
            is_live=False,
            is_named=True,
        )
    ]


def test_a_directory_of_another_name_with_segments_is_a_log_of_no_topic(tmp_path: Path) -> None:
    # F91.
    copy = add_partition(tmp_path, "rescued files", 0, 10)
    assert find_partitions([str(copy)]) == [
        PartitionLog(
            topic=None,
            partition=None,
            path=str(copy),
            log_dir=LogDir(str(tmp_path)),
            segments=segments_in(copy, 0, 10, found_under=copy),
            is_live=False,
            is_named=True,
        )
    ]


@pytest.mark.parametrize(
    ("topic", "partition", "key"),
    [("a-b.c", 3, ("a-b.c", 3)), ("a", 0, ("a", 0)), (None, None, None)],
)
def test_a_log_has_the_key_that_checkpoints_use(
    topic: str | None, partition: int | None, key: tuple[str, int] | None
) -> None:
    # F81.
    assert log_of(topic, partition).topic_partition == key


def test_several_log_dirs_are_read_together(tmp_path: Path) -> None:
    first = add_partition(tmp_path / "disk1", "orders-1", 0)
    second = add_partition(tmp_path / "disk2", "orders-0", 0)
    assert find_partitions([str(tmp_path / "disk1"), str(tmp_path / "disk2")]) == [
        found_log(second, "orders", 0, 0),
        found_log(first, "orders", 1, 0),
    ]


def test_each_partition_has_the_checkpoints_of_its_own_log_dir(tmp_path: Path) -> None:
    # F81.
    for disk, start in (("disk1", 5), ("disk2", 6)):
        add_partition(tmp_path / disk, f"{disk}-0", 0)
        text = checkpoint_text({(disk, 0): start})
        (tmp_path / disk / "log-start-offset-checkpoint").write_text(text)
    found = [log.log_dir for log in find_partitions([str(tmp_path / "disk*")])]
    assert found == [
        LogDir(str(tmp_path / "disk1"), log_starts={("disk1", 0): 5}),
        LogDir(str(tmp_path / "disk2"), log_starts={("disk2", 0): 6}),
    ]


def test_globs_match_log_dirs_and_partitions(tmp_path: Path) -> None:
    add_partition(tmp_path / "disk1", "orders-0", 0)
    add_partition(tmp_path / "disk2", "orders-1", 0)
    add_partition(tmp_path / "disk2", "users-0", 0)
    whole = find_partitions([str(tmp_path / "disk*")])
    some = find_partitions([str(tmp_path / "disk*" / "orders-[0-9]")])
    assert [log.name for log in whole] == ["orders-0", "orders-1", "users-0"]
    assert [log.name for log in some] == ["orders-0", "orders-1"]


def test_paths_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = add_partition(tmp_path / "data", "orders-0", 0)
    monkeypatch.chdir(tmp_path)
    assert find_partitions(["data"]) == [found_log(partition, "orders", 0, 0)]
    assert find_partitions(["./data/orders-0/"]) == [named_log(partition, "orders", 0, 0)]
    monkeypatch.chdir(partition)
    assert find_partitions([".."]) == [found_log(partition, "orders", 0, 0)]
    assert find_partitions(["."]) == [named_log(partition, "orders", 0, 0)]


def test_a_path_given_twice_is_read_once(tmp_path: Path) -> None:
    partition = add_partition(tmp_path / "data", "orders-0", 0)
    twice = [str(tmp_path / "data"), str(tmp_path / "da*"), f"{tmp_path}/data/"]
    assert find_partitions(twice) == [found_log(partition, "orders", 0, 0)]


def test_a_partition_found_twice_is_an_error_naming_both_places(tmp_path: Path) -> None:
    first = add_partition(tmp_path / "disk1", "web-shop-3", 0)
    second = add_partition(tmp_path / "disk2", "web-shop-3", 0)
    with pytest.raises(LogDirError) as caught:
        find_partitions([str(tmp_path / "disk*")])
    for said in ("web-shop-3", str(first), str(second)):
        assert said in str(caught.value)


def test_a_partition_found_in_a_log_dir_and_by_path_is_an_error(tmp_path: Path) -> None:
    partition = add_partition(tmp_path, "orders-0", 0)
    with pytest.raises(LogDirError, match="orders-0"):
        find_partitions([str(tmp_path), str(partition)])


def test_a_partition_may_be_read_with_its_marked_namesakes(tmp_path: Path) -> None:
    # F92: a topic that was deleted and made again, and a replica on its way to another disk.
    live = add_partition(tmp_path, "orders-0", 0)
    deleted = add_partition(tmp_path, f"orders-0.{UNIQUE}-delete", 0)
    future = add_partition(tmp_path, f"orders-0.{UNIQUE}-future", 0)
    paths = [str(tmp_path), str(deleted), str(future)]
    assert places(find_partitions(paths)) == sorted(map(str, (live, deleted, future)))


@pytest.mark.parametrize("pattern", ["nowhere", "disk*", "da[12]ta/*"])
def test_a_path_that_leads_nowhere_is_an_error_naming_it(pattern: str, tmp_path: Path) -> None:
    add_partition(tmp_path / "data", "orders-0", 0)
    wanted = str(tmp_path / pattern)
    with pytest.raises(LogDirError) as caught:
        find_partitions([str(tmp_path / "data"), wanted])
    assert str(caught.value).startswith(f"{wanted}: ")


@pytest.mark.parametrize("name", [f"{0:020d}.index", f"{0:020d}.snapshot", "meta.properties"])
def test_what_is_beside_logs_is_not_a_log_by_its_own_path(name: str, tmp_path: Path) -> None:
    # As in `orders-0/*`, which the shell makes all files of.
    add_partition(tmp_path, "orders-0", 0)
    (tmp_path / "orders-0" / name).write_bytes(bytes(100))
    assert "beside logs" in refusal(*(tmp_path / "orders-0").iterdir())


def test_a_directory_of_other_things_is_an_error_that_tells_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "holiday").mkdir()
    (tmp_path / "holiday" / "photo.jpg").touch()
    with pytest.raises(LogDirError) as caught:
        find_partitions([str(tmp_path / "holiday")])
    for said in (str(tmp_path / "holiday"), "<topic>-<partition>", "<offset>.log"):
        assert said in str(caught.value)


def refusal(*paths: Path) -> str:
    with pytest.raises(LogDirError) as caught:
        find_partitions([str(path) for path in paths])
    return str(caught.value)


@pytest.mark.parametrize("place", ["disk1", "brokers/one"])
def test_a_parent_of_log_dirs_is_an_error_that_names_them(place: str, tmp_path: Path) -> None:
    add_partition(tmp_path / place, "orders-0", 0)
    assert f"did you mean {tmp_path / place} below it?" in refusal(tmp_path)


def test_what_is_not_a_log_dir_beside_some_is_an_error_that_names_them(tmp_path: Path) -> None:
    add_partition(tmp_path / "disk1", "orders-0", 0)
    (tmp_path / "photos" / "2026").mkdir(parents=True)
    said = refusal(tmp_path / "*")
    assert said.startswith(
        f"{tmp_path / 'photos'}: not a log directory, and there is none below it; "
    )
    assert f"did you mean {tmp_path / 'disk1'} beside it?" in said
    # A path alone does not show that it has to do with its neighbours.
    assert "disk1" not in refusal(tmp_path / "photos")


def test_an_empty_directory_is_called_empty(tmp_path: Path) -> None:
    assert refusal(tmp_path).startswith(f"{tmp_path}: an empty directory")


def test_a_directory_that_is_named_like_a_segment_is_none(tmp_path: Path) -> None:
    # F91: brokers take files only.
    partition = add_partition(tmp_path, "orders-0", 0)
    (partition / log_name(3)).mkdir()
    (log,) = find_partitions([str(tmp_path)])
    assert log.segments == segments_in(partition, 0, found_under=tmp_path)


def test_a_number_of_more_than_64_bits_is_not_an_offset(tmp_path: Path) -> None:
    # F91 and F154
    partition = add_partition(tmp_path, "orders-0")
    for name in ("9" * 20 + ".log", "9" * 20 + ".kafka"):
        (partition / name).touch()
    (log,) = find_partitions([str(tmp_path)])
    assert log.segments == ()


def swapped(partition: Path, base_offset: int) -> Path:
    log = partition / log_name(base_offset)
    return log.rename(log.with_name(f"{log.name}.swap"))


def test_a_finished_swap_is_the_segment_that_it_becomes(tmp_path: Path) -> None:
    # F117, T32: a broker that was killed while it renamed a cleaned segment.
    partition = add_partition(tmp_path, "orders-0", 0, 10, 20)
    swap = swapped(partition, 10)
    (log,) = find_partitions([str(tmp_path)])
    found = [
        (segment.path, segment.base_offset, segment.next_base_offset) for segment in log.segments
    ]
    assert found == [
        (str(partition / log_name(0)), 0, 10),
        (str(swap), 10, 20),
        (str(partition / log_name(20)), 20, None),
    ]


def test_a_finished_swap_takes_the_place_of_all_that_it_covers(tmp_path: Path) -> None:
    # F117, T32: what it was made from is not gone yet.
    partition = add_partition(tmp_path, "orders-0", 0, 3, 6)
    swap = partition / f"{log_name(0)}.swap"
    swap.write_bytes(batch(0) + batch(3))
    (log,) = find_partitions([str(tmp_path)])
    assert [segment.path for segment in log.segments] == [str(swap), str(partition / log_name(6))]


def test_a_swap_that_was_not_finished_is_left_aside(tmp_path: Path) -> None:
    # F117, T32: files still being cleaned show that it was not.
    partition = add_partition(tmp_path, "orders-0", 0, 10)
    (partition / f"{log_name(0)}.swap").write_bytes(batch(0))
    (partition / f"{log_name(0)}.cleaned").touch()
    (log,) = find_partitions([str(tmp_path)])
    assert [segment.base_offset for segment in log.segments] == [0, 10]
    assert all(segment.path.endswith(".log") for segment in log.segments)


def test_a_directory_of_log_directories_that_are_named_like_partitions_is_not_one(
    tmp_path: Path,
) -> None:
    # F958. As "one empty partition" it would be sound, and nothing of it would be lost.
    for name in ("kafka-1", "kafka-2"):
        add_partition(tmp_path / "disks-1" / name, "orders-0", 0)
    for path in (tmp_path / "disks-1", tmp_path):
        with pytest.raises(LogDirError, match=r"did you mean .*/disks-1"):
            find_partitions([str(path)])
    add_meta_properties(tmp_path / "kafka-0" / "kafka-1")
    with pytest.raises(LogDirError, match=r"did you mean .*/kafka-1 below it"):
        find_partitions([str(tmp_path / "kafka-0")])


def test_partitions_beside_a_log_directory_that_is_named_like_one_are_found(tmp_path: Path) -> None:
    # F958.
    partition = add_partition(tmp_path, "orders-0", 0)
    add_partition(tmp_path / "kafka-1", "orders-0", 0)
    assert places(find_partitions([str(tmp_path)])) == [str(partition)]


def test_a_parent_of_log_directories_that_is_named_like_a_partition_is_not_one(
    tmp_path: Path,
) -> None:
    # F958.
    add_partition(tmp_path / "logs-1" / "ssd", "orders-0", 0)
    with pytest.raises(LogDirError, match=r"did you mean .*/logs-1/ssd below it"):
        find_partitions([str(tmp_path / "logs-1")])
    empty = add_partition(tmp_path / "logs-2", "orders-0")
    assert places(find_partitions([str(empty)])) == [str(empty)]


def test_parents_of_log_dirs_are_named_together(tmp_path: Path) -> None:
    names = ("node1", "node2", "node3")
    for name in names:
        add_partition(tmp_path / name / "data", "orders-0", 0)
    said = refusal(tmp_path / "*")
    parents = ", ".join(str(tmp_path / name) for name in names)
    below = ", ".join(str(tmp_path / name / "data") for name in names)
    assert said.startswith(f"{parents}: not log directories; did you mean {below} below them? (")
    (tmp_path / "notes").mkdir()
    said = refusal(tmp_path / "node1", tmp_path / "notes")
    assert f"did you mean {tmp_path / 'node1' / 'data'} below it?; {tmp_path / 'notes'}: an" in said
