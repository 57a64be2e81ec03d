"""Reads of very many segments: as columns they are the same as one by one."""

import pickle
from array import array
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.storage.partition_log import ListedSegments, PartitionLog
from kafkalog.storage.reading.offset_ranges import OffsetRange
from kafkalog.storage.reading.read_plan import (
    MOST_TASKS,
    OPEN_COST_BYTES,
    LogReads,
    TaskSize,
    packed,
    segment_reads,
    task_reads,
)
from tests.support.logs.log_dirs import log_of

GIB = 1024**3
BASES = st.lists(st.integers(0, 60), unique=True, max_size=8).map(sorted)
OFFSETS = st.integers(0, 70)
WHOLE = OffsetRange(0, None)


def listed(log: PartitionLog) -> PartitionLog:
    """The log with its segments as columns."""
    bases = array("q", [segment.base_offset or 0 for segment in log.segments])
    sizes = array("q", [segment.size for segment in log.segments])
    return replace(log, segments=ListedSegments(log.path, bases, sizes, "logs"))


def sized(bases: Sequence[int]) -> PartitionLog:
    log = log_of("orders", 3, *bases)
    segments = [
        replace(each, size=100 * number * OPEN_COST_BYTES)
        for number, each in enumerate(log.segments)
    ]
    return replace(log, segments=tuple(segments))


@given(BASES, st.slices(8))
def test_segments_as_columns_are_the_same_segments(bases: list[int], part: slice) -> None:
    log = sized(bases)
    columns = listed(log).segments
    assert columns == log.segments
    assert log.segments == columns
    assert repr(columns) == repr(log.segments)
    assert hash(columns) == hash(log.segments)
    assert tuple(columns[part]) == log.segments[part]
    assert [columns[number] for number in range(len(bases))] == list(log.segments)
    assert pickle.loads(pickle.dumps(columns)) == columns


def test_what_comes_after_a_part_is_known() -> None:
    segments = listed(log_of("orders", 3, 0, 10, 20, 30)).segments
    assert [segment.next_base_offset for segment in segments[1:3][:1]] == [20]


@given(BASES, OFFSETS, st.none() | OFFSETS, st.none() | OFFSETS)
def test_the_same_segments_are_read_of_columns(
    bases: list[int], start: int, end: int | None, requested: int | None
) -> None:
    """F91, F98."""
    log = sized(bases)
    offsets = OffsetRange(start, end, requested_start=requested)
    one_by_one = segment_reads(log, offsets)
    columns = segment_reads(listed(log), offsets)
    assert columns == tuple(one_by_one)
    assert pickle.loads(pickle.dumps(columns)) == columns


@given(st.lists(BASES, max_size=4), st.integers(1, 900), st.integers(1, 4), st.integers(1, 5))
def test_logs_are_divided_between_tasks_as_single_reads_are(
    logs: list[list[int]], max_mib: int, cores: int, tasks: int
) -> None:
    whole = [segment_reads(listed(sized(bases)), WHOLE) for bases in logs]
    task = TaskSize(max_mib * OPEN_COST_BYTES, cores, tasks)
    groups = [task_reads(group) for group in packed(whole, task)]
    assert groups == packed([read for reads in whole for read in reads], task)
    assert pickle.loads(pickle.dumps(groups)) == groups


def test_a_task_with_single_reads_has_no_columns() -> None:
    (reads,) = packed([segment_reads(listed(log_of("t", 0, 5)), WHOLE)], TaskSize(1, 1))
    assert not any(isinstance(piece, LogReads) for piece in reads)


@pytest.mark.parametrize("most_bytes", [2**20, 2**27])
def test_there_are_no_more_tasks_than_a_driver_can_plan(most_bytes: int) -> None:
    """F905."""
    count = 10**6
    columns = array("q", range(count)), array("q", [GIB] * count)
    log = replace(log_of("t", 0), segments=ListedSegments("logs/t-0", *columns, "logs"))
    reads = [segment_reads(log, WHOLE)]
    task = TaskSize(most_bytes, cores=4)
    part_bytes, tasks = task.part_bytes(reads), len(packed(reads, task))
    # A segment is not looked into to divide it, and a task has ten.
    assert part_bytes == count * GIB // MOST_TASKS
    assert tasks == pytest.approx(MOST_TASKS, rel=0.12)


def test_the_least_number_of_tasks_is_not_bounded() -> None:
    """F905: `minPartitions` is a request."""
    reads = [replace(read, size=10**15) for read in segment_reads(log_of("t", 0, 0), WHOLE)]
    assert TaskSize(2**27, 4, min_tasks=10**6).part_bytes(reads) == 10**9
