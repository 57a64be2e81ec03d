"""The status of a group from those of its partitions, for every face. Rules: F332, F338."""

import random
from typing import Any

from kafkalog.coordination.groups.burrow import BurrowRule, BurrowSettings, BurrowStatus
from kafkalog.coordination.groups.group_statuses import group_statuses
from kafkalog.coordination.groups.lag_status import LagStatus
from tests.support.lag.burrow_oracle import PartitionStatus, group_status
from tests.support.lag.lag_oracle import group_lag_status


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


def test_a_group_is_as_bad_as_its_partitions() -> None:
    draw = random.Random(338)
    of_partitions = [status for status in LagStatus if status is not LagStatus.ERR]
    rules = [rule for rule in BurrowRule if rule.status is not BurrowStatus.NOTFOUND]
    rows, expected = [], {}
    for number in range(60):
        group = f"group-{number}"
        count = draw.randint(1, 3)
        statuses = draw.choices(of_partitions, k=count)
        burrow = [PartitionStatus(rule, (), 0, 1.0) for rule in draw.choices(rules, k=count)]
        told = group_status(burrow, 0, 0, BurrowSettings()).status
        expected[group] = (group_lag_status(statuses).value, told.value, count)
        rows += [
            partition(group, place, status.value, None, burrow_status=of_burrow.status.value)
            for place, (status, of_burrow) in enumerate(zip(statuses, burrow, strict=True))
        ]
    found = group_statuses(rows)
    assert {
        each.group_id: (each.status, each.burrow_status, each.partitions) for each in found
    } == expected
    order = ["OK", "UNKNOWN", "WARN", "ERR"]
    places = [order.index(each.status) for each in found]
    assert places == sorted(places, reverse=True)
