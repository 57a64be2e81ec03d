"""How both stores of a group's offsets compare, how far its migration is, what may be moved."""

import pytest

from kafkalog.coordination.groups.commit_status import offsets_partition_of
from kafkalog.coordination.zookeeper.offset_migration import (
    REFUSALS,
    Members,
    Move,
    OffsetPair,
    Phase,
    StoreComparison,
    comparison_of,
    group_verdict,
    move_to_kafka,
    move_to_zookeeper,
    offset_warnings,
)

NOON_MS = 1_700_000_040_000
MINUTE_MS = 60_000
NO_MEMBERS = Members()
ONLY_ZOOKEEPER = OffsetPair(zookeeper_offset=5, zookeeper_ms=NOON_MS)
ONLY_KAFKA = OffsetPair(kafka_offset=5, kafka_ms=NOON_MS)
EQUAL = OffsetPair(5, NOON_MS + 2, 5, NOON_MS)
GARBLED = OffsetPair(None, NOON_MS, None, None, fault="not a decimal number")


def pair(zookeeper: int, at: float, kafka: int, committed_at: float) -> OffsetPair:
    """Offsets and times, these in minutes after noon."""
    times = (NOON_MS + int(minutes * MINUTE_MS) for minutes in (at, committed_at))
    zookeeper_ms, kafka_ms = times
    return OffsetPair(zookeeper, zookeeper_ms, kafka, kafka_ms)


def phase(*pairs: OffsetPair, members: Members = NO_MEMBERS) -> Phase:
    return group_verdict(pairs, members).phase


def objections(*pairs: OffsetPair, members: Members = NO_MEMBERS) -> tuple[str, ...]:
    return group_verdict(pairs, members).objections


def test_both_stores_are_compared_by_their_offsets() -> None:
    # F470
    assert [
        comparison_of(each)
        for each in (ONLY_ZOOKEEPER, ONLY_KAFKA, EQUAL, pair(7, 0, 5, 9), pair(5, 9, 7, 0), GARBLED)
    ] == [
        StoreComparison.ONLY_ZOOKEEPER,
        StoreComparison.ONLY_KAFKA,
        StoreComparison.EQUAL,
        StoreComparison.ZOOKEEPER_AHEAD,
        StoreComparison.KAFKA_AHEAD,
        StoreComparison.UNREADABLE,
    ]


def test_what_one_store_alone_has_is_stored_there() -> None:
    # F471
    assert phase(ONLY_ZOOKEEPER, ONLY_ZOOKEEPER) is Phase.ZOOKEEPER
    assert phase(ONLY_KAFKA) is Phase.KAFKA


def test_stores_that_go_on_together_are_a_dual_commit() -> None:
    # F472: a round of commits can lie between the two; without progress only Kafka is written.
    assert phase(EQUAL, pair(5, 0, 5, 600)) is Phase.DUAL_COMMIT
    assert phase(pair(5, 0, 7, 1)) is Phase.DUAL_COMMIT
    assert phase(pair(7, 1, 5, 0), EQUAL) is Phase.DUAL_COMMIT


def test_a_store_that_goes_on_alone_for_longer_than_a_round_is_in_use_alone() -> None:
    # F472
    assert phase(pair(5, 0, 7, 1.1), EQUAL) is Phase.LEFT_OVER
    assert phase(pair(7, 1.1, 5, 0), EQUAL) is Phase.ROLL_BACK
    assert phase(pair(5, 0, 7, 2), pair(7, 2, 5, 0)) is Phase.MIXED


def test_the_later_store_counts_whichever_is_ahead() -> None:
    # F472: a group that was set back goes on at a lower offset.
    assert phase(pair(7, 0, 5, 2)) is Phase.LEFT_OVER
    assert phase(pair(5, 2, 7, 0)) is Phase.ROLL_BACK


def test_a_partition_of_one_store_is_compared_with_the_end_of_the_other() -> None:
    # F473
    late = OffsetPair(zookeeper_offset=5, zookeeper_ms=NOON_MS + 5 * MINUTE_MS)
    assert phase(EQUAL, ONLY_ZOOKEEPER) is Phase.DUAL_COMMIT
    assert phase(EQUAL, late) is Phase.ROLL_BACK
    late = OffsetPair(kafka_offset=5, kafka_ms=NOON_MS + 5 * MINUTE_MS)
    assert phase(EQUAL, ONLY_KAFKA) is Phase.DUAL_COMMIT
    assert phase(EQUAL, late) is Phase.LEFT_OVER


def test_znodes_that_tell_no_offset_do_not_decide_the_phase() -> None:
    # F471, F472
    late = GARBLED._replace(zookeeper_ms=NOON_MS + 5 * MINUTE_MS)
    early = GARBLED._replace(zookeeper_ms=NOON_MS - 5 * MINUTE_MS)
    over_kafka = late._replace(kafka_offset=5, kafka_ms=NOON_MS)
    for garbled in (late, early, over_kafka):
        assert phase(EQUAL, garbled) is Phase.DUAL_COMMIT
        assert phase(ONLY_KAFKA, garbled) is Phase.KAFKA
    assert phase(ONLY_ZOOKEEPER, late) is phase(late) is Phase.ZOOKEEPER
    assert phase(over_kafka) is Phase.KAFKA


def test_it_is_safe_to_begin_with_nothing_in_kafka() -> None:
    # F474
    verdict = group_verdict([ONLY_ZOOKEEPER], Members(in_zookeeper=2))
    assert verdict.next_step.startswith("offsets.storage=kafka and dual.commit.enabled=true")
    assert verdict.objections == ()
    (said,) = objections(ONLY_ZOOKEEPER, members=Members(in_kafka=1))
    assert said == "1 member by Kafka's protocol in the same group"


def test_dual_commit_ends_once_all_is_in_kafka_and_nothing_behind() -> None:
    # F474
    verdict = group_verdict([EQUAL, pair(5, 0, 7, 1)], Members(in_zookeeper=1))
    assert verdict.next_step.startswith("dual.commit.enabled=false")
    assert verdict.objections == ()
    assert objections(EQUAL, ONLY_ZOOKEEPER) == (
        "1 partition in ZooKeeper only: not committed to Kafka",
    )
    assert objections(EQUAL, pair(7, 0, 5, 0), pair(9, 0, 5, 0)) == (
        "2 partitions in which Kafka is behind, 6 offsets together: they would be read again",
    )


def test_dual_commit_after_a_rewind_in_zookeeper_would_skip_records() -> None:
    # F474
    (said,) = objections(pair(5, 2, 7, 0))
    assert "Kafka's older commit is ahead: with dual commit" in said
    assert objections(pair(9, 2, 7, 0)) == ()


def test_two_storages_at_once_and_znodes_without_offsets_speak_against_any_step() -> None:
    # F474
    assert objections(pair(5, 0, 7, 2), pair(7, 2, 5, 0)) == (
        "consumers of both storages are at work",
    )
    assert objections(EQUAL, GARBLED) == ("1 partition whose znode has no offset",)
    assert objections(ONLY_KAFKA, members=Members(in_kafka=3)) == ()


def test_an_offset_is_moved_where_the_other_store_has_none_or_is_behind() -> None:
    # F475
    assert move_to_kafka(ONLY_ZOOKEEPER, NO_MEMBERS) is Move.MOVE
    assert move_to_kafka(pair(7, 0, 5, 9), NO_MEMBERS) is Move.MOVE
    assert move_to_kafka(EQUAL, NO_MEMBERS) is Move.SAME
    assert move_to_kafka(ONLY_KAFKA, NO_MEMBERS) is Move.ABSENT
    assert move_to_kafka(GARBLED, NO_MEMBERS) is Move.UNREADABLE
    assert move_to_zookeeper(ONLY_KAFKA, NO_MEMBERS) is Move.MOVE
    assert move_to_zookeeper(ONLY_ZOOKEEPER, NO_MEMBERS) is Move.ABSENT
    assert move_to_zookeeper(pair(5, 9, 7, 0), NO_MEMBERS) is Move.MOVE


def test_what_a_znode_without_an_offset_says_is_not_written_over() -> None:
    # F475
    over_kafka = GARBLED._replace(kafka_offset=5, kafka_ms=NOON_MS)
    allowed = set(REFUSALS)
    assert move_to_zookeeper(over_kafka, NO_MEMBERS, allowed) is Move.UNREADABLE
    assert move_to_zookeeper(GARBLED, NO_MEMBERS, allowed) is Move.ABSENT


@pytest.mark.parametrize("offset", [-1, -7])
def test_a_negative_offset_is_not_moved(offset: int) -> None:
    # F475: PartitionTopicInfo.isOffsetInvalid
    allowed = set(REFUSALS)
    negative = ONLY_ZOOKEEPER._replace(zookeeper_offset=offset)
    assert move_to_kafka(negative, NO_MEMBERS, allowed) is Move.UNREADABLE
    assert move_to_kafka(pair(offset, 0, 5, 0), NO_MEMBERS, allowed) is Move.UNREADABLE
    assert move_to_zookeeper(pair(offset, 0, 5, 0), NO_MEMBERS) is Move.MOVE


def test_no_group_goes_back_unless_allowed() -> None:
    # F475
    behind = pair(5, 9, 7, 0)
    assert move_to_kafka(behind, NO_MEMBERS) is Move.REWIND
    assert move_to_kafka(behind, NO_MEMBERS, {Move.REWIND}) is Move.MOVE
    assert move_to_zookeeper(pair(7, 0, 5, 9), NO_MEMBERS) is Move.REWIND
    assert move_to_zookeeper(pair(7, 0, 5, 9), NO_MEMBERS, {Move.REWIND}) is Move.MOVE


@pytest.mark.parametrize("members", [Members(in_zookeeper=1), Members(in_kafka=1)])
def test_offsets_of_a_group_at_work_are_not_moved_unless_allowed(members: Members) -> None:
    # F475
    assert move_to_kafka(ONLY_ZOOKEEPER, members) is Move.ACTIVE
    assert move_to_kafka(ONLY_ZOOKEEPER, members, {Move.ACTIVE}) is Move.MOVE
    assert move_to_kafka(EQUAL, members) is Move.SAME
    assert move_to_kafka(pair(5, 9, 7, 0), members, {Move.ACTIVE}) is Move.REWIND


def test_refusals_are_those_that_leave_something_undone() -> None:
    assert {
        Move.UNREADABLE,
        Move.REWIND,
        Move.ACTIVE,
        Move.UNKNOWN_TOPIC,
        Move.KAFKA_UNKNOWN,
    } == REFUSALS


def test_where_commits_in_kafka_can_be_missing_nothing_is_said_of_them_nor_moved() -> None:
    # F486
    lost = "__consumer_offsets-1 of broker 2 is missing"
    unseen = ONLY_ZOOKEEPER._replace(kafka_fault=lost)
    behind = EQUAL._replace(kafka_fault=lost)
    only_kafka = ONLY_KAFKA._replace(kafka_fault=lost)
    pairs = (unseen, behind, only_kafka)
    assert {comparison_of(each) for each in pairs} == {StoreComparison.KAFKA_UNKNOWN}
    assert phase(*pairs) is Phase.KAFKA_UNKNOWN
    assert objections(*pairs) == (lost,)
    everything = frozenset(Move)
    assert move_to_kafka(unseen, NO_MEMBERS, everything) is Move.KAFKA_UNKNOWN
    assert move_to_kafka(behind, NO_MEMBERS, everything) is Move.KAFKA_UNKNOWN
    assert move_to_kafka(only_kafka, NO_MEMBERS, everything) is Move.ABSENT
    moves = {move_to_zookeeper(each, NO_MEMBERS, everything) for each in pairs}
    assert moves == {Move.KAFKA_UNKNOWN}


def test_an_offset_for_a_topic_that_is_nowhere_is_not_moved_unless_allowed() -> None:
    # F475
    assert move_to_kafka(ONLY_ZOOKEEPER, NO_MEMBERS, has_topic=False) is Move.UNKNOWN_TOPIC
    allowed = {Move.UNKNOWN_TOPIC}
    assert move_to_kafka(ONLY_ZOOKEEPER, NO_MEMBERS, allowed, has_topic=False) is Move.MOVE
    assert move_to_kafka(EQUAL, NO_MEMBERS, has_topic=False) is Move.SAME


def test_a_group_belongs_to_the_partition_that_brokers_keep_it_in() -> None:
    # F484: where the fixtures' brokers with 4 and with 3 partitions have these groups.
    assert (
        offsets_partition_of("o8.g-old-dual", 4) == offsets_partition_of("o8.g-old-kafka", 4) == 1
    )
    assert offsets_partition_of("old.g-old-kafka", 3) == 1
    assert offsets_partition_of("old.g-new", 3) == 0
    # "polygenelubricants" has the least hash of all.
    assert offsets_partition_of("polygenelubricants", 3) == 0


def test_offsets_that_no_log_has_are_said() -> None:
    # F476
    assert offset_warnings(5, 0, 10, has_topic=True) == ()
    assert offset_warnings(10, 0, 10, has_topic=True) == ()
    assert offset_warnings(11, 0, 10, has_topic=True) == ("beyond_log_end",)
    assert offset_warnings(2, 3, 10, has_topic=True) == ("below_log_start",)
    assert offset_warnings(2, None, None, has_topic=True) == ("unknown_partition",)
    assert offset_warnings(2, None, None, has_topic=False) == ("unknown_topic",)
    assert offset_warnings(-1, 0, 10, has_topic=True) == ("negative",)
