"""The status of a group from those of its partitions, for every face. Rules: F332, F338.

That statuses of random groups are those of the plain rules is in
tests/spark/groups/test_newest_statuses.py.
"""

from typing import Any

from kafkalog.coordination.groups.group_statuses import group_statuses


def partition(group: str, number: int, status: str, records: int | None, **others: Any) -> Any:
    return {
        "cluster_id": "c",
        "group_id": group,
        "topic": "orders",
        "partition": number,
        "status": status,
        "reason": f"{status} of {number}",
        "readable_records": records,
        "next_timestamp_ms": None,
        "commit_timestamp_ms": None,
        **others,
    }


def test_a_group_has_the_worst_status_and_the_sums_of_its_partitions() -> None:
    worst, well = group_statuses(
        [
            partition("well", 1, "OK", 0, next_timestamp_ms=5, commit_timestamp_ms=8),
            partition("well", 0, "OK", 0, commit_timestamp_ms=9),
            partition("bad", 0, "WARN", 7, next_timestamp_ms=30),
            partition("bad", 1, "STOP", 2, next_timestamp_ms=20),
            partition("bad", 2, "STALL", None),
        ]
    )
    assert (worst.group_id, worst.status, worst.errors, worst.partitions) == ("bad", "ERR", 2, 3)
    assert (worst.readable_records, worst.behind_since_ms) == (9, 20)
    assert (worst.partition, worst.reason) == (1, "STOP of 1")
    # Nothing is left to read: the group is behind nothing. Of equal partitions the first counts.
    assert (well.status, well.behind_since_ms, well.last_commit_ms) == ("OK", None, 9)
    assert (well.partition, well.burrow_status) == (0, None)


def test_what_is_left_is_unknown_where_no_partition_knows_it() -> None:
    (found,) = group_statuses([partition("g", 0, "UNKNOWN", None, burrow_status="STOP")])
    assert (found.status, found.burrow_status, found.readable_records) == ("UNKNOWN", "ERR", None)
