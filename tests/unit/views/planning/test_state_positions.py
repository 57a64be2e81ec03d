"""Where a table of state goes on, and where it must not. Rules: F274, F276, F278, F279."""

import json
from dataclasses import replace

import pytest

from kafkalog.errors import StatePositionError
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.views.planning.state_positions import (
    StatePositions,
    StateSettings,
    full_run,
    incremental_run,
)
from tests.support.jobs.state_source import SOURCE

SETTINGS = StateSettings("read_committed", keep_tombstones=False)
OTHER = replace(SOURCE, partition=1, log_start_offset=0, end_offset=7, leader_epochs=())
READ = StatePositions(*SETTINGS).with_sources([SOURCE, OTHER])


def test_a_first_run_reads_all() -> None:
    run = full_run(None, SETTINGS, [SOURCE, replace(OTHER, end_offset=0)])
    assert run.starts == {("orders", 0): 10}
    assert run.replaced == frozenset({("orders", 0), ("orders", 1)})
    assert run.positions.next_offsets == {("orders", 0): 90, ("orders", 1): 0}


def test_a_second_run_reads_what_is_new_and_keeps_the_positions_of_what_is_not_there() -> None:
    run = incremental_run(READ, SETTINGS, [replace(SOURCE, end_offset=95)])
    assert (run.starts, run.replaced) == ({("orders", 0): 90}, None)
    assert run.positions.next_offsets == {("orders", 0): 95, ("orders", 1): 7}
    assert run.offsets_to_read == 5


def test_without_anything_new_there_is_no_work() -> None:
    assert not incremental_run(READ, SETTINGS, [SOURCE, OTHER]).has_work


def test_a_log_start_that_went_up_is_work_without_a_new_record() -> None:
    run = incremental_run(READ, SETTINGS, [replace(SOURCE, log_start_offset=40), OTHER])
    assert (run.starts, run.raised_log_starts) == ({}, {("orders", 0): 40})
    assert run.has_work


def test_a_new_partition_is_read_from_its_log_start() -> None:
    found = replace(SOURCE, partition=2)
    run = incremental_run(READ, SETTINGS, [SOURCE, found])
    assert (run.starts, run.raised_log_starts) == ({("orders", 2): 10}, {})


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"cluster_id": "another"}, "holds state of cluster cluster, /logs is of cluster another"),
        ({"topic_id": "second"}, "it was deleted and recreated"),
        ({"end_offset": 80, "log_end_offset": 80}, "this is an older copy of the log"),
        ({"end_offset": 80}, "another --stop-at"),
        ({"end_offset": 80, "end_from": "asked"}, "the state at offset 80 was requested"),
        ({"log_start_offset": 91, "end_offset": 95}, "deleted before it was read"),
        (
            {"leader_epochs": (EpochStart(1, 10), EpochStart(4, 50))},
            "offset 89 is of leader epoch 4, when the table read it it was of 3",
        ),
    ],
)
def test_where_a_table_cannot_go_on_it_says_why(found: dict[str, object], said: str) -> None:
    with pytest.raises(StatePositionError, match=said):
        incremental_run(READ, SETTINGS, [replace(SOURCE, **found)])  # type: ignore[arg-type]


def test_what_files_do_not_tell_is_not_a_contradiction() -> None:
    found = replace(SOURCE, cluster_id=None, topic_id=None, leader_epochs=())
    run = incremental_run(READ, SETTINGS, [found])
    assert (run.positions.cluster_id, run.positions.topic_ids) == ("cluster", {"orders": "first"})


@pytest.mark.parametrize(
    "asked", [StateSettings("read_uncommitted", False), StateSettings("read_committed", True)]
)
def test_a_table_keeps_to_its_settings(asked: StateSettings) -> None:
    with pytest.raises(StatePositionError, match="ask for the same"):
        incremental_run(READ, asked, [SOURCE])
    with pytest.raises(StatePositionError, match="ask for the same"):
        full_run(READ, asked, [SOURCE])  # partition 1 would stay as it is
    assert full_run(READ, asked, [SOURCE, OTHER]).positions.settings == asked


def test_a_refresh_of_a_topic_that_was_created_again_drops_its_old_partitions() -> None:
    found = replace(SOURCE, topic_id="second", end_offset=20)
    run = full_run(READ, SETTINGS, [found])
    assert run.replaced == frozenset({("orders", 0), ("orders", 1)})
    assert run.positions.next_offsets == {("orders", 0): 20}
    assert run.positions.topic_ids == {"orders": "second"}


def test_a_refresh_does_not_mix_clusters() -> None:
    users = replace(SOURCE, topic="users", topic_id="users")
    recorded = READ.with_sources([users])
    found = replace(SOURCE, cluster_id="another")
    with pytest.raises(StatePositionError, match="holds state of cluster cluster"):
        full_run(recorded, SETTINGS, [found])
    run = full_run(READ, SETTINGS, [found])
    assert run.positions.cluster_id == "another"


def test_positions_are_read_as_they_were_written() -> None:
    text = READ.to_json()
    assert json.loads(text)["next_offsets"] == {"orders": {"0": 90, "1": 7}}
    assert StatePositions.from_json(text) == READ


@pytest.mark.parametrize("text", [None, "", "nightly", "[1]", '{"job": "another"}'])
def test_what_others_write_into_commits_are_not_positions(text: str | None) -> None:
    assert StatePositions.from_json(text) is None


@pytest.mark.parametrize(
    ("cleaned", "end", "exact_from", "is_exact"),
    [(None, 90, 10, True), (5, 90, 10, True), (90, 90, 90, True), (91, 90, 91, False)],
)
def test_a_state_is_exact_from_the_cleaners_checkpoint_on(
    cleaned: int | None, end: int, exact_from: int, is_exact: bool
) -> None:
    # F274: a checkpoint below the log start is void.
    found = replace(SOURCE, cleaner_checkpoint=cleaned, end_offset=end)
    assert (found.exact_from_offset, found.is_exact) == (exact_from, is_exact)


@pytest.mark.parametrize(
    ("start", "missing_until", "end", "exact_from"),
    [(0, 0, 90, 0), (0, 91, 90, 91), (0, 90, 90, 90), (10, 0, 90, 100), (10, 0, 100, 10)],
)
def test_without_a_checkpoint_missing_offsets_and_the_beginning_decide(
    start: int, missing_until: int, end: int, exact_from: int
) -> None:
    # F1425: the log ends at 100.
    found = replace(
        SOURCE,
        log_start_offset=start,
        missing_until=missing_until,
        end_offset=end,
        end_from="asked",
    )
    assert (found.exact_from_offset, found.is_exact) == (exact_from, exact_from <= end)
    if not found.is_exact:
        assert ("the log begins at offset 10" in found.doubt) == (start == 10)
