"""Generations from records one after another. Rule: F339."""

from typing import Any

from kafkalog.coordination.groups.group_generations import GENERATION_COLUMNS, GroupGenerations
from tests.support.messages.group_records import group_record

STREAMS_EPOCH, STREAMS_ASSIGNMENT = 17, 20
CONSUMER_EPOCH, CONSUMER_MEMBER = 3, 5


def rows_of(*records: dict[str, Any], group: str | None = None) -> list[dict[str, Any]]:
    generations = GroupGenerations(None if group is None else lambda name: name == group)
    for record in records:
        generations.add({name: record.get(name) for name in GENERATION_COLUMNS})
    return [{"members_joined": None, "partitions_moved": None, **row} for row in generations.rows()]


def test_after_a_deletion_a_group_is_compared_with_nothing() -> None:
    # F339: a member is there before and after, and its epochs begin again.
    found = rows_of(
        group_record(CONSUMER_MEMBER, 1, member_id="m"),
        group_record(CONSUMER_EPOCH, 2, epoch=1),
        group_record(CONSUMER_MEMBER, 3, member_id="m", is_tombstone=True),
        group_record(CONSUMER_EPOCH, 4, is_tombstone=True),
        group_record(CONSUMER_MEMBER, 5, member_id="m"),
        group_record(CONSUMER_EPOCH, 6, epoch=1),
        group_record(CONSUMER_MEMBER, 7, member_id="n"),
        group_record(CONSUMER_EPOCH, 8, epoch=2),
    )
    names = ("generation", "previous_generation", "state", "members", "members_joined")
    assert [tuple(row.get(name) for name in names) for row in found] == [
        (1, None, "Assigning", 1, None),
        (None, 1, "Dead", None, None),
        (1, None, "Assigning", 1, None),
        (2, 1, "Assigning", 2, ["n"]),
    ]


def test_of_streams_groups_no_partitions_are_counted() -> None:
    # F339: their tasks are not partitions.
    found = rows_of(
        *(group_record(STREAMS_EPOCH, 1, epoch=1), group_record(STREAMS_ASSIGNMENT, 2, epoch=1)),
        *(group_record(STREAMS_EPOCH, 3, epoch=2), group_record(STREAMS_ASSIGNMENT, 4, epoch=2)),
    )
    assert [row["partitions_moved"] for row in found] == [None, None]


def test_groups_that_are_not_chosen_are_left_out() -> None:
    # The second one's key cannot be read.
    records = [group_record(2, 1, epoch=1), group_record(2, 2, group_id=None)]
    records.append(group_record(2, 3, epoch=1, group_id="h"))
    assert [row["group_id"] for row in rows_of(*records)] == ["g", None, "h"]
    assert [row["group_id"] for row in rows_of(*records, group="h")] == ["h"]


def test_a_record_that_cannot_be_read_is_compared_with_nothing() -> None:
    # F339
    unread = {"reason": "malformed", "record_name": "ConsumerGroupMetadata"}
    found = rows_of(
        group_record(5, 1, member_id="m", record_name="ConsumerGroupMemberMetadata"),
        group_record(3, 2, epoch=1, record_name="ConsumerGroupMetadata"),
        group_record(3, 3, **unread),
        group_record(3, 4, epoch=3, record_name="ConsumerGroupMetadata"),
    )
    names = ("generation", "previous_generation", "state", "members")
    assert [tuple(row.get(name) for name in names) for row in found] == [
        (1, None, "Assigning", 1),
        (None, 1, None, 1),
        (3, None, "Assigning", 1),
    ]
    assert [row["members_joined"] for row in found] == [None, None, None]
