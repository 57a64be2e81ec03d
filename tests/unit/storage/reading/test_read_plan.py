"""Which segments are read for which offsets, and how they are packed into tasks."""

import pickle
from dataclasses import replace

import pytest

from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.storage.partition_log import LogDir
from kafkalog.storage.reading.log_bounds import RecordedEnd
from kafkalog.storage.reading.offset_ranges import OffsetRange
from kafkalog.storage.reading.read_plan import (
    LEAST_PART_BYTES,
    OPEN_COST_BYTES,
    SegmentRead,
    TaskSize,
    packed,
    segment_reads,
)
from tests.support.logs.log_dirs import log_of

LOG = log_of("orders", 3, 0, 100, 200)
MIB = 1024 * 1024


def read_bases(offsets: OffsetRange) -> list[int | None]:
    return [read.base_offset for read in segment_reads(LOG, offsets)]


def test_a_read_carries_all_that_a_task_needs() -> None:
    # F81, F82, F91.
    directory = LogDir("logs", "cluster", 7, cleaner_checkpoints={("orders", 3): 90})
    log = log_of("orders", 3, 0, 100, log_dir=directory, size=55)
    common = SegmentRead(
        path="logs/orders-3/00000000000000000000.log",
        topic="orders",
        partition=3,
        base_offset=0,
        next_base_offset=100,
        size=55,
        first_offset=20,
        end_offset=150,
        log_start=5,
        cluster_id="cluster",
        broker_id=7,
        input_path="logs",
        is_compacted=True,
    )
    last = replace(
        common,
        path="logs/orders-3/00000000000000000100.log",
        base_offset=100,
        next_base_offset=None,
        requested_start=20,
        requested_end=150,
        recorded_end=RecordedEnd(0, is_clean=False, last_log=log.segments[1].path),
    )
    offsets = OffsetRange(20, 150, log_start=5, requested_start=20, requested_end=150)
    assert list(segment_reads(log, offsets)) == [common, last]


def test_a_partition_that_was_never_cleaned_is_not_compacted() -> None:
    # F81.
    directory = LogDir("logs", cleaner_checkpoints={("orders", 4): 90, ("users", 3): 90})
    log = log_of("orders", 3, 0, log_dir=directory)
    assert [read.is_compacted for read in segment_reads(log, OffsetRange(0, None))] == [False]


def test_without_an_end_a_segment_is_read_to_the_largest_offset() -> None:
    # F96.
    ends = [read.end_offset for read in segment_reads(LOG, OffsetRange(0, None))]
    assert ends == [LARGEST_OFFSET] * 3


@pytest.mark.parametrize(
    ("start", "bases"),
    [
        (0, [0, 100, 200]),
        (99, [0, 100, 200]),
        (100, [100, 200]),
        (199, [100, 200]),
        (200, [200]),
        (10**6, [200]),
    ],
)
def test_segments_wholly_before_the_start_are_left_out(start: int, bases: list[int]) -> None:
    # F91: the last one is read in any case, it tells where the log ends (F98).
    assert read_bases(OffsetRange(start, None)) == bases


@pytest.mark.parametrize(
    ("end", "bases"),
    [
        (1, [0, 200]),
        (100, [0, 200]),
        (101, [0, 100, 200]),
        (200, [0, 100, 200]),
        (201, [0, 100, 200]),
    ],
)
def test_segments_wholly_behind_the_end_are_left_out_but_for_the_last(
    end: int, bases: list[int]
) -> None:
    # F91, F98.
    assert read_bases(OffsetRange(0, end)) == bases


@pytest.mark.parametrize(("start", "end"), [(0, 0), (100, 100), (150, 120)])
def test_an_empty_range_reads_no_segment(start: int, end: int) -> None:
    assert read_bases(OffsetRange(start, end)) == []


def test_a_partition_without_segments_has_nothing_to_read() -> None:
    assert list(segment_reads(log_of("orders", 3), OffsetRange(0, None))) == []


def test_a_file_that_tells_no_offset_is_read_whole() -> None:
    log = log_of(None, None, 0)
    segments = (replace(log.segments[0], base_offset=None),)
    (read,) = segment_reads(replace(log, segments=segments), OffsetRange(0, None))
    assert read == SegmentRead(
        path="logs/None-None/00000000000000000000.log",
        topic=None,
        partition=None,
        base_offset=None,
        next_base_offset=None,
        size=100,
        first_offset=0,
        end_offset=LARGEST_OFFSET,
        input_path="logs",
        recorded_end=RecordedEnd(0, is_clean=False, last_log=log.segments[0].path),
    )


def test_a_read_survives_the_way_to_a_task() -> None:
    offsets = OffsetRange(20, 150, log_start=5, requested_start=20, requested_end=150)
    reads = list(segment_reads(LOG, offsets))
    assert pickle.loads(pickle.dumps(reads)) == reads


def reads_of(*sizes: int) -> list[SegmentRead]:
    return [
        SegmentRead(f"{number}.log", "t", 0, number, None, size, 0, LARGEST_OFFSET)
        for number, size in enumerate(sizes)
    ]


def grouped_sizes(sizes: list[int], max_bytes: int, cores: int) -> list[list[int]]:
    groups = packed(reads_of(*sizes), TaskSize(max_bytes, cores))
    return [[read.size for read in group] for group in groups]


@pytest.mark.parametrize(
    ("sizes", "cores", "groups"),
    [
        pytest.param([], 4, [], id="nothing"),
        pytest.param([5 * MIB], 4, [[5 * MIB]], id="one"),
        pytest.param([0, 0, 0, 0], 1, [[0, 0, 0, 0]], id="all for one core"),
        pytest.param([0, 0, 0, 0], 2, [[0, 0], [0, 0]], id="half for each"),
        pytest.param([0, 0, 0, 0], 4, [[0], [0], [0], [0]], id="one for each"),
        pytest.param([0, 0, 0, 0], 100, [[0], [0], [0], [0]], id="more cores than files"),
        pytest.param([9 * MIB] * 2, 1, [[9 * MIB], [9 * MIB]], id="no more than allowed"),
        pytest.param([40 * MIB, 0], 1, [[40 * MIB], [0]], id="a file larger than allowed"),
    ],
)
def test_reads_are_packed_for_the_cores_there_are(
    sizes: list[int], cores: int, groups: list[list[int]]
) -> None:
    assert grouped_sizes(sizes, 16 * MIB, cores) == groups


def test_opening_a_file_has_its_price() -> None:
    # 16 empty files count for 16 MiB, and one more does not fit beside them.
    assert OPEN_COST_BYTES == MIB
    assert grouped_sizes([0] * 17, 16 * MIB, 1) == [[0] * 16, [0]]


def test_packing_keeps_every_read_in_its_order() -> None:
    reads = reads_of(*(size * MIB for size in (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5)))
    groups = packed(reads, TaskSize(12 * MIB, 3))
    assert [read for group in groups for read in group] == reads
    assert all(
        len(group) == 1 or sum(read.size + MIB for read in group) <= 12 * MIB for group in groups
    )


@pytest.mark.parametrize("cores", [0, 1])
def test_a_machine_that_does_not_tell_its_cores_has_one(cores: int) -> None:
    assert grouped_sizes([1, 1], 16 * MIB, cores) == [[1, 1]]


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 20])
def test_a_least_number_of_tasks_is_made_of_small_reads_as_well(tasks: int) -> None:
    groups = packed(reads_of(*[100] * 20), TaskSize(16 * MIB, 1, tasks))
    assert len(groups) == {1: 2, 2: 2, 3: 4, 7: 10, 20: 20}[tasks]


def test_reads_of_more_offsets_than_a_task_may_have_are_not_packed() -> None:
    reads = reads_of(*[100] * 5)
    groups = packed(reads, TaskSize(128 * MIB, 1, max_offsets=10), [4, 6, 1, 10, 12])
    assert [len(group) for group in groups] == [2, 1, 1, 1]


@pytest.mark.parametrize(
    ("task", "part_bytes"),
    [
        (TaskSize(128 * MIB, 2), 128 * MIB),
        (TaskSize(1024 * MIB, 2), 500 * MIB),
        (TaskSize(1024 * MIB, 1000), LEAST_PART_BYTES),
        (TaskSize(128 * MIB, 2, 1000), MIB),
        (TaskSize(128 * MIB, 2, 2**31), 1),
    ],
)
def test_parts_of_segments_keep_cores_busy_and_are_not_too_small(
    task: TaskSize, part_bytes: int
) -> None:
    assert task.part_bytes(reads_of(400 * MIB, 600 * MIB)) == part_bytes
