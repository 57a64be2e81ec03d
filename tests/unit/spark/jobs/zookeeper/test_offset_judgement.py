"""What a task says of a group's rows, and what the job makes of the totals, without a session."""

from typing import Any

from pyspark.sql import Row

from kafkalog.coordination.groups.offsets_replicas import OffsetsReplicas
from kafkalog.coordination.zookeeper.offset_migration import Move, StoreComparison
from kafkalog.spark.jobs.zookeeper.migration_request import MigrationRequest
from kafkalog.spark.jobs.zookeeper.migration_words import migration_findings, move_words
from kafkalog.spark.jobs.zookeeper.offset_judgement import Judgement, judged_rows

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
    "zookeeper_members": 0,
    "kafka_members": 0,
    "offsets_partition": 1,
}
NO_WRITING = MigrationRequest().directions
BACK = MigrationRequest(write_zookeeper_commands="commands.txt").directions


def warnings(judgement: Judgement, to: str = "to_kafka", **changes: Any) -> list[str]:
    (row,) = judged_rows([{**HELD, **changes}], judgement)
    return list(row[f"{to}_warnings"])


def totals(**counts: int) -> Row:
    names = [each.value for each in StoreComparison]
    names += [f"{move.value}_{to}" for to in ("to_kafka", "to_zookeeper") for move in Move]
    names += ["expired", "warned_to_kafka", "warned_to_zookeeper"]
    return Row(**{**dict.fromkeys(names, 0), **counts})


def test_what_is_moved_and_would_expire_is_said() -> None:
    # F479
    assert warnings(Judgement(expired_before_ms=NOON_MS)) == ["expired"]
    assert warnings(Judgement(expired_before_ms=NOON_MS - 1)) == []
    assert warnings(Judgement(expired_before_ms=None)) == []
    # Not moved, it does not expire.
    assert warnings(Judgement(expired_before_ms=NOON_MS), kafka_offset=7) == []


def test_the_warnings_are_about_the_offset_that_would_be_gone_on_from() -> None:
    # F476
    both: dict[str, Any] = {"kafka_offset": 900, "commit_timestamp_ms": NOON_MS}
    assert warnings(Judgement(), **both) == []
    assert warnings(Judgement(), "to_zookeeper", **both) == ["beyond_log_end"]
    both = {"zookeeper_offset": 11, "kafka_offset": 5, "commit_timestamp_ms": NOON_MS}
    assert warnings(Judgement(), **both) == ["beyond_log_end"]
    assert warnings(Judgement(), "to_zookeeper", **both) == []
    only_kafka: dict[str, Any] = {
        "zookeeper_offset": None,
        "zookeeper_mtime_ms": None,
        "kafka_offset": 12,
    }
    assert warnings(Judgement(), **only_kafka, commit_timestamp_ms=NOON_MS) == []
    back = warnings(Judgement(), "to_zookeeper", **only_kafka, commit_timestamp_ms=NOON_MS)
    assert back == ["beyond_log_end"]


def test_a_znode_that_tells_no_offset_is_refused_with_its_group_judged() -> None:
    # F470, F474
    garbled = {**HELD, "zookeeper_offset": None, "detail": "not a decimal number"}
    found = judged_rows([HELD, garbled], Judgement())
    assert [row["to_kafka"] for row in found] == ["move", "unreadable"]
    assert {row["phase"] for row in found} == {"zookeeper"}
    assert {tuple(row["objections"]) for row in found} == {
        ("1 partition whose znode has no offset",)
    }


def test_a_group_whose_commits_can_be_missing_is_not_moved_and_the_brokers_are_named() -> None:
    # F486
    named = {0: frozenset({1}), 1: frozenset({2})}
    replicas = OffsetsReplicas(has_topic=True, named=named, given={0: frozenset({1})})
    (row,) = judged_rows([HELD], Judgement(replicas=replicas))
    fault = "__consumer_offsets-1 of broker 2 is missing"
    assert (row["comparison"], row["phase"]) == ("kafka_unknown", "kafka_unknown")
    assert (row["to_kafka"], row["to_zookeeper"]) == ("kafka_unknown", "kafka_unknown")
    assert (row["objections"], row["detail"]) == ([fault], fault)
    (row,) = judged_rows([{**HELD, "offsets_partition": 0}], Judgement(replicas=replicas))
    assert (row["comparison"], row["to_kafka"], row["detail"]) == ("only_zookeeper", "move", None)
    words = list(move_words(NO_WRITING, totals(kafka_unknown_to_kafka=4), {2}))
    assert words == [
        "__consumer_offsets of broker 2 is missing: give all their log directories, and "
        "--broker-id for those that name no broker",
        "to Kafka: 0 offsets to move; refused: 4 of groups whose commits in Kafka are not all in "
        "the input",
    ]


def test_the_refusals_of_the_direction_that_was_requested_are_findings() -> None:
    # F475
    found = totals(move_to_kafka=3, rewind_to_kafka=2, active_to_zookeeper=4, warned_to_kafka=1)
    assert migration_findings(NO_WRITING, found) == [
        "2 not moved to Kafka (would go back)",
        "offsets that no log has",
    ]
    assert migration_findings(BACK, found) == ["4 not moved to ZooKeeper (of groups with members)"]
    assert migration_findings(BACK, totals(warned_to_zookeeper=1)) == ["offsets that no log has"]
    assert list(move_words(NO_WRITING, found, set())) == [
        "to Kafka: 3 offsets to move; refused: 2 would go back (--allow-rewind)",
        "1 offset that no log has: see column to_kafka_warnings",
    ]


def test_offsets_that_would_expire_are_a_finding_where_they_go_to_kafka() -> None:
    # F479
    assert migration_findings(NO_WRITING, totals(expired=1)) == ["offsets that would expire"]
    assert migration_findings(BACK, totals(expired=1)) == []
    assert any("would expire" in line for line in move_words(NO_WRITING, totals(expired=1), set()))
    (line,) = move_words(BACK, totals(expired=1), set())
    assert line == "to ZooKeeper: 0 offsets to move; refused: none"
