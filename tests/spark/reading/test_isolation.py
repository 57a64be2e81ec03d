"""`isolationLevel` through Spark, under both of its names."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafkalog.format.transaction_marker import COMMIT
from tests.support.golden.fixture_sets import consumed, topics
from tests.support.logs.damageable_logs import SampleLog
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import kafkalog_read, offsets_read


@pytest.mark.parametrize("name", ["isolationLevel", "kafka.isolation.level"])
def test_committed_records_are_those_a_read_committed_consumer_received(
    name: str, spark: SparkSession, unpacked: Unpack
) -> None:
    # F211
    golden = unpacked("kafka44.golden")
    transactional = [topic for topic in topics(golden, "read_committed") if "tx" in topic]
    options = {name: "read_committed", "subscribe": ",".join(transactional)}
    frame = kafkalog_read(spark, unpacked("kafka44.logs") / "log-dirs", **options)
    expected: dict[tuple[str, int], list[int]] = {}
    for topic in transactional:
        for row in consumed(golden, topic, "read_committed"):
            expected.setdefault((topic, row["partition"]), []).append(row["offset"])
    assert offsets_read(frame) == {key: sorted(offsets) for key, offsets in expected.items()}


@pytest.mark.deep
def test_an_asked_offset_behind_the_last_stable_one_is_data_loss(
    spark: SparkSession, tmp_path: Path
) -> None:
    # F214
    log = SampleLog(1_700_000_000_000)
    log.add(4)
    log.add(2, 7, in_transaction=True)
    log.add(2, 8, in_transaction=True)
    log.end(8, COMMIT)
    log.write(tmp_path / "orders-0", 4096)
    options = {
        "isolationLevel": "read_committed",
        "subscribe": "orders",
        "endingOffsets": '{"orders":{"0":7}}',
    }
    with pytest.raises(PySparkException, match="offset 7 of orders-0 is not in the log"):
        kafkalog_read(spark, tmp_path, **options).count()
    frame = kafkalog_read(spark, tmp_path, failOnDataLoss="false", **options)
    assert offsets_read(frame) == {("orders", 0): [0, 1, 2, 3]}
