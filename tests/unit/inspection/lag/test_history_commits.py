"""Commits on their way to the tasks that read logs. Rules: docs/format.md F300, F302, F332."""

import pickle
from typing import Any

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.inspection.lag.history_commits import (
    COMMITTED_OFFSET,
    EFFECTIVE_OFFSET,
    HISTORY_COLUMNS,
    IS_DELETION,
    KEY,
    NO_OFFSET,
    CommitBlock,
    CommitBlocks,
    LogCommits,
    commits_by_log,
    place_of,
)

PLACES = 3


def commit(group: str, topic: str, place: int, offset: int | None, **more: Any) -> dict[str, Any]:
    return {
        "cluster_id": "c",
        "internal_partition": 7,
        "group_id": group,
        "topic": topic,
        "partition": 0,
        "record_offset": place,
        "effective_offset": place,
        "effect": "applied",
        "commit_timestamp_ms": None if offset is None else 10 * place,
        "effective_timestamp_ms": 10 * place,
        "committed_offset": offset,
        "is_tombstone": offset is None,
        "input_path": "/logs",
        "broker_id": 1,
        **more,
    }


def by_log(rows: list[dict[str, Any]], *topics: str) -> dict[str, LogCommits]:
    """The commits of rows that come one by one, as the tasks have them that read logs."""
    blocks = CommitBlocks(1000, PLACES, topics.__contains__ if topics else None)
    passed_on: dict[int, list[CommitBlock]] = {place: [] for place in range(PLACES)}
    for row in rows:
        batch = pa.RecordBatch.from_pylist(
            [row], schema=arrow_schema("offset_commits", HISTORY_COLUMNS)
        )
        for place, block in blocks.add(batch):
            passed_on[place].append(block)
    for place, block in blocks.last():
        passed_on[place].append(pickle.loads(pickle.dumps(block)))
    found = {}
    for place, received in passed_on.items():
        for commits in commits_by_log(received):
            assert place_of(commits.topic, commits.partition, PLACES) == place
            found[commits.topic] = commits
    return found


def test_a_task_has_all_commits_for_its_logs_in_the_order_of_their_effect() -> None:
    found = by_log(
        [
            *(commit("g", "a", 5, 50), commit("h", "a", 4, 40), commit("g", "a", 2, 20)),
            *(commit("g", "b", 3, 30), commit("g", "a", 6, None), commit("g", "b", 7, -1)),
            *(commit("h", "a", 8, 80, effect="aborted"), commit("h", "a", 101, 90)),
        ]
    )
    assert {topic: described(commits) for topic, commits in found.items()} == {
        # After 1000 ms nothing counts, nor does what was aborted; a negative offset is a deletion.
        "a": [("g", 2, 20, False), ("g", 5, 50, False), ("g", 6, None, True), ("h", 4, 40, False)],
        "b": [("g", 3, 30, False), ("g", 7, -1, True)],
    }
    assert found["a"].is_last.tolist() == [False, False, True, True]
    # The group's last commit is one of the other topic.
    assert found["a"].group_commit_ms.tolist() == [70, 70, 70, 40]


def described(found: LogCommits) -> list[tuple[str, int, int | None, bool]]:
    numbers = found.commits.numbers
    groups = found.commits.keys["group_id"].to_pylist()
    offsets = [None if each == NO_OFFSET else each for each in numbers[COMMITTED_OFFSET].tolist()]
    deletions = (numbers[IS_DELETION] != 0).tolist()
    places = numbers[EFFECTIVE_OFFSET].tolist()
    names = [groups[key] for key in numbers[KEY].tolist()]
    return list(zip(names, places, offsets, deletions, strict=True))


def test_commits_for_other_topics_are_left_out() -> None:
    found = by_log([commit("g", "a", 1, 1), commit("g", "b", 2, 2)], "a")
    assert list(found) == ["a"]
    assert found["a"].group_commit_ms.tolist() == [10]


def test_nothing_comes_of_nothing() -> None:
    assert by_log([]) == {}
    assert by_log([commit("g", "a", 1, 1)], "b") == {}
