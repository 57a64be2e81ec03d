"""What a run adds to a table of records, and what it must not. Rules: F530 to F534."""

import json
from dataclasses import replace

import pytest

from kafkalog.errors import OptionError, StatePositionError
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.storage.partition_log import SegmentFile
from kafkalog.views.planning.ingest_positions import (
    IngestPositions,
    IngestRun,
    Replaces,
    ingest_run,
    ingest_starting_offsets,
)
from kafkalog.views.planning.table_positions import StateSource
from tests.support.jobs.state_source import SOURCE as LOG

SOURCE = replace(
    LOG,
    start_offset=10,
    segments=(
        SegmentFile("/logs/a", 10, 60, 500, "/logs"),
        SegmentFile("/logs/b", 60, None, 300, "/logs"),
    ),
)
OTHER = replace(SOURCE, partition=1, log_start_offset=0, end_offset=7, log_end_offset=7,
                start_offset=0, leader_epochs=())  # fmt: skip
NOTHING = IngestPositions("read_committed")
KEY = "orders", 0


def added(recorded: IngestPositions, *sources: StateSource) -> IngestRun:
    return ingest_run(recorded, sources, is_bounded=False)


def bounded(recorded: IngestPositions, *sources: StateSource) -> IngestRun:
    return ingest_run(recorded, sources, is_bounded=True)


READ = added(NOTHING, SOURCE, OTHER).positions


def test_a_first_run_reads_all() -> None:
    run = added(NOTHING, SOURCE, OTHER)
    assert (run.starts, run.ends) == ({KEY: 10, ("orders", 1): 0}, {KEY: 90, ("orders", 1): 7})
    assert [(each.segments, each.segment_bytes) for each in run.ranges] == [(2, 800), (0, 0)]
    assert (run.replaces, run.findings, run.positions.run) == (Replaces.NOTHING, (), 1)


def test_the_commit_has_the_number_of_rows_of_each_range() -> None:
    run = added(NOTHING, SOURCE).with_rows({KEY: 12})
    read = IngestPositions.from_json(run.positions.to_json())
    assert read == run.positions
    assert [each.rows for each in run.ranges] == [12]
    assert [each.rows for each in added(NOTHING, SOURCE, OTHER).with_rows({}).ranges] == [0, 0]


def test_a_second_run_adds_what_is_new() -> None:
    run = added(READ, replace(SOURCE, end_offset=95), OTHER)
    assert (run.starts, run.ends, run.positions.run) == ({KEY: 90}, {KEY: 95}, 2)
    assert run.positions.next_offsets == {KEY: 95, ("orders", 1): 7}
    assert not added(READ, SOURCE, OTHER).has_work


def test_a_mark_that_goes_back_takes_nothing_back() -> None:
    run = added(READ, replace(SOURCE, end_offset=80))
    assert (run.has_work, run.findings, run.positions.next_offsets[KEY]) == (False, (), 90)


def test_positions_are_read_from_the_commit_as_they_were_written() -> None:
    assert IngestPositions.from_json(READ.to_json()) == READ
    for text in (None, "", "[]", '{"job":"another"}'):
        assert IngestPositions.from_json(text) is None


def test_what_was_deleted_before_it_was_read_is_a_gap_and_the_run_goes_on() -> None:
    later = replace(SOURCE, log_start_offset=120, end_offset=130, log_end_offset=130)
    run = added(READ, later)
    (found,) = run.findings
    assert (found.finding, run.starts, run.ends) == ("gap", {KEY: 120}, {KEY: 130})
    assert "offsets 90 to 119 were deleted before they were read" in str(found.detail)


def test_a_gap_is_found_once_also_where_nothing_is_after_it() -> None:
    emptied = replace(SOURCE, log_start_offset=120, end_offset=120, log_end_offset=120)
    run = added(READ, emptied)
    assert (run.has_work, run.written, len(run.findings)) == (True, (), 1)
    assert not added(run.positions, emptied).findings


@pytest.mark.parametrize(
    ("finding", "source"),
    [
        ("truncated", replace(SOURCE, end_offset=89, log_end_offset=89)),
        ("recreated", replace(SOURCE, topic_id="second", end_offset=200, log_end_offset=200)),
        (
            "rewritten",
            replace(SOURCE, leader_epochs=(EpochStart(1, 10), EpochStart(5, 70)), end_offset=95),
        ),
    ],
)
@pytest.mark.parametrize("plan", [added, bounded])
def test_a_log_that_is_not_the_one_that_was_read_is_found_and_not_read(
    finding: str, source: StateSource, plan: type
) -> None:
    run = plan(READ, source, replace(OTHER, end_offset=9, log_end_offset=9))
    assert [(each.key, each.finding) for each in run.findings] == [(KEY, finding)]
    assert ("orders", 0) not in run.starts
    assert run.ends == {("orders", 1): 9}
    assert run.positions.next_offsets == {KEY: 90, ("orders", 1): 9}
    assert run.positions.topic_ids == {"orders": "first"}


def test_a_full_refresh_takes_whatever_is_there() -> None:
    again = replace(SOURCE, topic_id="second", end_offset=30, log_end_offset=30)
    run = ingest_run(READ, [again, replace(OTHER, topic_id="second")], is_bounded=False,
                     full_refresh=True)  # fmt: skip
    assert (run.findings, run.replaces) == ((), Replaces.PARTITIONS)
    assert run.starts == {KEY: 10, ("orders", 1): 0}
    assert run.positions.next_offsets == {KEY: 30, ("orders", 1): 7}
    assert run.positions.topic_ids == {"orders": "second"}


def test_a_full_refresh_takes_out_what_is_empty_now_and_what_a_new_topic_does_not_have() -> None:
    emptied = replace(SOURCE, log_start_offset=100, end_offset=100)
    run = ingest_run(READ, [emptied], is_bounded=False, full_refresh=True)
    assert (run.ranges, run.replaced, run.has_work) == ((), frozenset({KEY}), True)
    assert run.positions.next_offsets == {KEY: 100, ("orders", 1): 7}
    again = replace(SOURCE, topic_id="second")
    run = ingest_run(READ, [again], is_bounded=False, full_refresh=True)
    assert run.replaced == {KEY, ("orders", 1)}
    assert run.positions.next_offsets == {KEY: 90}


def test_another_cluster_is_refused() -> None:
    with pytest.raises(StatePositionError, match="cluster cluster, /logs is of cluster other"):
        added(READ, replace(SOURCE, cluster_id="other"))


def test_a_bounded_run_writes_its_range_again_and_takes_nothing_back() -> None:
    run = bounded(READ, replace(SOURCE, start_offset=20, end_offset=40))
    assert (run.starts, run.ends, run.replaces) == ({KEY: 20}, {KEY: 40}, Replaces.RANGES)
    assert run.positions.next_offsets[KEY] == 90
    run = bounded(READ, replace(SOURCE, start_offset=90, end_offset=95))
    assert run.positions.next_offsets[KEY] == 95


def test_a_bounded_run_leaves_no_hole() -> None:
    with pytest.raises(
        OptionError,
        match=r"--from-time or --offsets: orders-0 would begin at offset 91 .*ends at offset 90",
    ):
        bounded(READ, replace(SOURCE, start_offset=91, end_offset=95))


def test_a_first_run_from_a_time_that_is_not_reached_decides_nothing() -> None:
    run = bounded(NOTHING, replace(SOURCE, start_offset=10, end_offset=10))
    assert (run.has_work, run.positions.next_offsets) == (False, {})


def test_the_hand_over_names_all_partitions_and_leaves_out_topics_that_stopped() -> None:
    # F534
    empty = replace(OTHER, partition=2, end_offset=0, log_end_offset=0)
    other = replace(OTHER, topic="payments", partition=0, topic_id="third")
    run = added(NOTHING, SOURCE, OTHER, empty, other)
    told = {"orders": {"0": 90, "1": 7, "2": 0}, "payments": {"0": 7}}
    assert json.loads(ingest_starting_offsets(run.positions, run.ranges)) == told
    run = added(run.positions, replace(SOURCE, log_end_offset=1, end_offset=1))
    assert json.loads(ingest_starting_offsets(run.positions, run.ranges)) == {"payments": {"0": 7}}
