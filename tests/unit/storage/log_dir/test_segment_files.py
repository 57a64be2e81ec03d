"""What a broker makes of the segment files in a partition's directory. F92, F117, F137; T32."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.format.segment_writer import write_segment
from kafkalog.storage.files.files import list_directory
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.segment_files import FoundSegment, SegmentStatus, found_segments
from kafkalog.storage.recovery.temporary_files import dropped_files, finished_swaps, is_replaced
from tests.support.logs.log_dirs import UNIQUE, add_partition, log_name
from tests.support.logs.samples import consecutive


def found_in(path: Path, *files: str) -> list[FoundSegment]:
    (log,) = find_partitions([str(path / file) for file in files] or [str(path)])
    return found_segments(log, list_directory(log.path))


def statuses(path: Path, *files: str) -> Mapping[str, str]:
    return {
        Path(segment.file.path).name: segment.status.value for segment in found_in(path, *files)
    }


def test_the_last_segment_is_the_active_one(tmp_path: Path) -> None:
    # F137.
    partition = add_partition(tmp_path, "orders-0", 0, 10, 20)
    assert statuses(partition) == {
        log_name(0): "live",
        log_name(10): "live",
        log_name(20): "active",
    }
    assert [segment.next_base_offset for segment in found_in(partition)] == [10, 20, None]
    assert set(found_in(partition)[0].files) == {".log", ".index", ".timeindex"}


def test_what_is_deleted_or_half_cleaned_is_dropped(tmp_path: Path) -> None:
    # F117, F137; T32.
    partition = add_partition(tmp_path, "orders-0", 10)
    for mark in (".deleted", ".cleaned"):
        (partition / log_name(0, mark)).touch()
    assert statuses(partition) == {
        log_name(0, ".cleaned"): "dropped",
        log_name(0, ".deleted"): "dropped",
        log_name(10): "active",
    }


def test_a_finished_swap_takes_the_place_of_all_it_covers(tmp_path: Path) -> None:
    # F117, F137; T32: offsets 0 to 11 are in it.
    partition = add_partition(tmp_path, "orders-0", 0, 6, 12)
    files = write_segment(consecutive(4), 0)
    (partition / log_name(0, ".swap")).write_bytes(files.log)
    found = {Path(segment.file.path).name: segment for segment in found_in(partition)}
    assert {name: segment.status for name, segment in found.items()} == {
        log_name(0): SegmentStatus.REPLACED,
        log_name(0, ".swap"): SegmentStatus.TAKES_OVER,
        log_name(6): SegmentStatus.REPLACED,
        log_name(12): SegmentStatus.ACTIVE,
    }
    assert found[log_name(6)].reason == (
        f"deleted for {log_name(0, '.swap')}, which covers offsets 0 to 11"
    )


def test_a_swap_of_an_unfinished_cleaning_is_dropped(tmp_path: Path) -> None:
    # F117, F137.
    partition = add_partition(tmp_path, "orders-0", 0, 6)
    (partition / log_name(0, ".swap")).write_bytes(write_segment(consecutive(4), 0).log)
    (partition / log_name(0, ".cleaned")).touch()
    assert statuses(partition) == {
        log_name(0): "live",
        log_name(0, ".cleaned"): "dropped",
        log_name(0, ".swap"): "dropped",
        log_name(6): "active",
    }


def test_a_swap_that_keeps_a_broker_from_starting_says_so(tmp_path: Path) -> None:
    # F113, F117.
    partition = add_partition(tmp_path, "orders-0", 12)
    (partition / log_name(0, ".swap")).write_bytes(bytes(100))
    swap, active = found_in(partition)
    assert (swap.status, active.status) == (SegmentStatus.TAKES_OVER, SegmentStatus.ACTIVE)
    assert swap.reason.startswith("keeps a broker from starting: ")


def test_an_index_without_its_log_is_dropped(tmp_path: Path) -> None:
    # F117, F137.
    partition = add_partition(tmp_path, "orders-0", 0, 10)
    (partition / log_name(0)).unlink()
    first, _ = found_in(partition)
    assert (Path(first.file.path).name, first.status) == (f"{0:020d}.index", SegmentStatus.DROPPED)
    assert first.reason == "an index without its log"


@pytest.mark.parametrize("mark", ["delete", "stray", "future"])
def test_nothing_in_a_marked_directory_is_served(tmp_path: Path, mark: str) -> None:
    # F92, F137; T32.
    partition = add_partition(tmp_path, f"orders-0.{UNIQUE}-{mark}", 0, 10)
    assert set(statuses(partition).values()) == {"not_served"}


def test_segments_of_tiered_storage_are_not_a_brokers(tmp_path: Path) -> None:
    # F137.
    partition = add_partition(tmp_path, "orders-0")
    (partition / f"{7:020d}-AAAAAAAAAAAAAAAAAAAAAQ.log").touch()
    (segment,) = found_in(partition)
    assert (segment.status, segment.name.base_offset) == (SegmentStatus.NOT_SERVED, 7)


def test_segments_below_the_log_start_wait_for_retention(tmp_path: Path) -> None:
    # F95, F137.
    partition = add_partition(tmp_path, "orders-0", 0, 10, 20)
    (log,) = find_partitions([str(partition)])
    log_dir = replace(log.log_dir, log_starts={("orders", 0): 10})
    found = found_segments(replace(log, log_dir=log_dir), list_directory(log.path))
    assert [segment.status for segment in found] == [
        SegmentStatus.LIVE,
        SegmentStatus.LIVE,
        SegmentStatus.ACTIVE,
    ]
    assert [segment.reason.startswith("all of it") for segment in found] == [True, False, False]


def test_of_files_given_by_path_those_are_reported_only(tmp_path: Path) -> None:
    partition = add_partition(tmp_path, "orders-0", 0, 10)
    (partition / log_name(5, ".deleted")).touch()
    assert statuses(partition, log_name(5, ".deleted")) == {log_name(5, ".deleted"): "dropped"}
    assert statuses(partition, log_name(0)) == {log_name(0): "live"}


def test_names_that_are_not_segments_are_not_swaps_either() -> None:
    # F117.
    names = ["a.swap", "b.cleaned", "x.deleted", "00000000000000000003-0.checkpoint.deleted"]
    assert finished_swaps(names) == []
    assert dropped_files(names) == names[:3]
    assert not is_replaced("leader-epoch-checkpoint", 0, 100)
