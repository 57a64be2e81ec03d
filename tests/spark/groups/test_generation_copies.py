"""Generations where several brokers' copies of a partition are in the input. Rule: F339."""

from pyspark.sql import SparkSession

from kafkalog.analysis.lag.group_generations import group_generations
from tests.support.messages.group_records import frame, group_record


def test_a_generation_is_compared_with_one_of_its_own_copy(spark: SparkSession) -> None:
    copies = [
        group_record(2, offset, epoch=offset, broker_id=broker, input_path=f"/broker-{broker}")
        for offset in (1, 2)
        for broker in (1, 2)
    ]
    rows = group_generations(frame(spark, "group_metadata", *copies)).collect()
    found = {(row.broker_id, row.generation): row.previous_generation for row in rows}
    assert found == {(1, 1): None, (1, 2): 1, (2, 1): None, (2, 2): 1}
    assert len(rows) == len(copies)
