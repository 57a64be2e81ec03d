"""What a task says of a group's rows, and what the job makes of the totals, without a session."""

from collections import Counter
from typing import Any

import pyarrow as pa

from kafkalog.coordination.groups.offsets_replicas import OffsetsReplicas
from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster
from kafkalog.coordination.zookeeper.offset_migration import Members
from kafkalog.questions.zookeeper.migration import Migration, MigrationSettings, judged_rows
from kafkalog.views.engine import RowsInMemory
from kafkalog.views.options.zookeeper.migration_options import MigrationRequest

NOON_MS = 1_700_000_040_000
HELD: dict[str, Any] = {
    "zookeeper_offset": 7,
    "zookeeper_mtime_ms": NOON_MS,
    "kafka_offset": None,
    "commit_timestamp_ms": None,
    "detail": None,
    "log_start_offset": 0,
    "log_end_offset": 10,
    "has_topic": True,
    "offsets_partition": 1,
}
NO_WRITING = MigrationRequest().directions
BACK = MigrationRequest(write_zookeeper_commands="commands.txt").directions


NO_ROWS = RowsInMemory(pa.table({}))
NO_FAULT = OffsetsReplicas()


def judged(
    rows: list[dict[str, Any]],
    settings: MigrationSettings | None = None,
    replicas: OffsetsReplicas = NO_FAULT,
) -> list[dict[str, Any]]:
    return judged_rows(rows, Members(), settings or MigrationSettings(), replicas)


def warnings(
    expired_before_ms: int | None = None, to: str = "to_kafka", **changes: Any
) -> list[str]:
    settings = MigrationSettings(expired_before_ms=expired_before_ms)
    (row,) = judged([{**HELD, **changes}], settings)
    return list(row[f"{to}_warnings"])


def found(
    directions: list[str], counts: dict[str, int], replicas: OffsetsReplicas = NO_FAULT
) -> Migration:
    cluster = EnsembleCluster("/zk", "", "c", "0x2 1", 1)
    return Migration(NO_ROWS, NO_ROWS, cluster, replicas, (), Counter(counts), directions)


def move_words(migration: Migration) -> list[str]:
    """The lines after the first, which compares the stores."""
    return migration.words()[1:]


def test_what_is_moved_and_would_expire_is_said() -> None:
    # F479
    assert warnings(NOON_MS) == ["expired"]
    assert warnings(NOON_MS - 1) == []
    assert warnings(None) == []
    # Not moved, it does not expire.
    assert warnings(NOON_MS, kafka_offset=7) == []


def test_the_warnings_are_about_the_offset_that_would_be_gone_on_from() -> None:
    # F476
    both: dict[str, Any] = {"kafka_offset": 900, "commit_timestamp_ms": NOON_MS}
    assert warnings(None, **both) == []
    assert warnings(None, "to_zookeeper", **both) == ["beyond_log_end"]
    both = {"zookeeper_offset": 11, "kafka_offset": 5, "commit_timestamp_ms": NOON_MS}
    assert warnings(None, **both) == ["beyond_log_end"]
    assert warnings(None, "to_zookeeper", **both) == []
    only_kafka: dict[str, Any] = {
        "zookeeper_offset": None,
        "zookeeper_mtime_ms": None,
        "kafka_offset": 12,
    }
    assert warnings(None, **only_kafka, commit_timestamp_ms=NOON_MS) == []
    back = warnings(None, "to_zookeeper", **only_kafka, commit_timestamp_ms=NOON_MS)
    assert back == ["beyond_log_end"]


def test_a_znode_that_tells_no_offset_is_refused_with_its_group_judged() -> None:
    # F470, F474
    garbled = {**HELD, "zookeeper_offset": None, "detail": "not a decimal number"}
    rows = judged([HELD, garbled])
    assert [row["to_kafka"] for row in rows] == ["move", "unreadable"]
    assert {row["phase"] for row in rows} == {"zookeeper"}
    assert {tuple(row["objections"]) for row in rows} == {
        ("1 partition whose znode has no offset",)
    }


def test_a_group_whose_commits_can_be_missing_is_not_moved_and_the_brokers_are_named() -> None:
    # F486
    named = {0: frozenset({1}), 1: frozenset({2})}
    replicas = OffsetsReplicas(has_topic=True, named=named, given={0: frozenset({1})})
    (row,) = judged([HELD], replicas=replicas)
    fault = "__consumer_offsets-1 of broker 2 is missing"
    assert (row["comparison"], row["phase"]) == ("kafka_unknown", "kafka_unknown")
    assert (row["to_kafka"], row["to_zookeeper"]) == ("kafka_unknown", "kafka_unknown")
    assert (row["objections"], row["detail"]) == ([fault], fault)
    (row,) = judged([{**HELD, "offsets_partition": 0}], replicas=replicas)
    assert (row["comparison"], row["to_kafka"], row["detail"]) == ("only_zookeeper", "move", None)
    assert move_words(found(NO_WRITING, {"kafka_unknown_to_kafka": 4}, replicas)) == [
        "__consumer_offsets of broker 2 is missing: give all their log directories, and "
        "--broker-id for those that name no broker",
        "to Kafka: 0 offsets to move; refused: 4 of groups whose commits in Kafka are not all in "
        "the input",
    ]


def test_the_refusals_of_the_direction_that_was_requested_are_findings() -> None:
    # F475
    counts = {"move_to_kafka": 3, "rewind_to_kafka": 2, "active_to_zookeeper": 4}
    to_kafka = found(NO_WRITING, {**counts, "warned_to_kafka": 1})
    assert to_kafka.findings() == [
        "2 not moved to Kafka (would go back)",
        "offsets that no log has",
    ]
    back = found(BACK, counts)
    assert back.findings() == ["4 not moved to ZooKeeper (of groups with members)"]
    assert found(BACK, {"warned_to_zookeeper": 1}).findings() == ["offsets that no log has"]
    assert move_words(to_kafka) == [
        "to Kafka: 3 offsets to move; refused: 2 would go back (--allow-rewind)",
        "1 offset that no log has: see column to_kafka_warnings",
    ]


def test_offsets_that_would_expire_are_a_finding_where_they_go_to_kafka() -> None:
    # F479
    assert found(NO_WRITING, {"expired": 1}).findings() == ["offsets that would expire"]
    assert found(BACK, {"expired": 1}).findings() == []
    assert any("would expire" in line for line in move_words(found(NO_WRITING, {"expired": 1})))
    (line,) = move_words(found(BACK, {"expired": 1}))
    assert line == "to ZooKeeper: 0 offsets to move; refused: none"
