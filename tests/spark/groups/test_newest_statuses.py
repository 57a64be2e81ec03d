"""The statuses of groups in a DataFrame are those of the plain rules. Rules: F332, F338."""

import random

from pyspark.sql import SparkSession

from kafkalog.analysis.lag.lag_history import newest_statuses, status_totals
from kafkalog.coordination.groups.burrow import BurrowRule, BurrowSettings, BurrowStatus
from kafkalog.coordination.groups.lag_status import LagStatus
from kafkalog.spark.tables import spark_schema
from tests.support.lag.burrow_oracle import PartitionStatus, group_status
from tests.support.lag.lag_oracle import group_lag_status


def test_a_group_is_as_bad_as_its_partitions(spark: SparkSession) -> None:
    draw = random.Random(338)
    of_partitions = [status for status in LagStatus if status is not LagStatus.ERR]
    rules = [rule for rule in BurrowRule if rule.status is not BurrowStatus.NOTFOUND]
    rows, expected = [], {}
    schema = spark_schema("lag_history")
    for number in range(60):
        group = f"group-{number}"
        count = draw.randint(1, 3)
        statuses = draw.choices(of_partitions, k=count)
        burrow = [PartitionStatus(rule, (), 0, 1.0) for rule in draw.choices(rules, k=count)]
        told = group_status(burrow, 0, 0, BurrowSettings()).status
        expected[group] = (group_lag_status(statuses).value, told.value, count)
        for partition, (status, of_burrow) in enumerate(zip(statuses, burrow, strict=True)):
            row = {
                "group_id": group,
                "topic": "orders",
                "partition": partition,
                "event": "end",
                "status": status.value,
                "burrow_status": of_burrow.status.value,
            }
            # What came before the end does not count.
            earlier = row | {"event": "commit", "status": "STOP", "burrow_status": "STOP"}
            rows += [tuple(each.get(name) for name in schema.names) for each in (row, earlier)]
    newest = newest_statuses(spark.createDataFrame(rows, schema))
    found = newest.collect()
    assert {
        row.group_id: (row.status, row.burrow_status, row.partitions) for row in found
    } == expected
    order = ["OK", "UNKNOWN", "WARN", "ERR"]
    places = [order.index(row.status) for row in found]
    assert places == sorted(places, reverse=True)
    totals = {row.status: row.groups for row in status_totals(newest).collect()}
    assert totals == {name: sum(row.status == name for row in found) for name in order}
