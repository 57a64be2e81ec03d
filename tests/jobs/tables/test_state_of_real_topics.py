"""The state of every fixture topic against a replay of what a real consumer received.

Rules: F270, F271, F272, F273; T5 to T9, T14, T18, T42.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.lake.state.state_rows import STATE_RECORD_COLUMNS
from kafkalog.spark.jobs.job import ExitCode
from kafkalog.spark.jobs.tables.state_table import latest_by_key
from tests.support.golden.fixture_sets import CONSUMERS, topics
from tests.support.jobs.state_runs import consumed_state, run_state, state_in
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import kafkalog_read

pytestmark = pytest.mark.deep

# tiered43 is left out: the consumer also received what is not in the log directory.
CONSUMED = [
    *((name, CONSUMERS[name]) for name in sorted(CONSUMERS.keys() - {"tiered43"})),
    ("kafka44", "read_committed"),
    ("kafka39zk", "read_committed"),
]
LOG_DIRS = {"kafka39zk": "log-dirs/*"}


@pytest.mark.parametrize(("name", "consumer"), CONSUMED)
def test_state_is_that_of_replaying_what_a_consumer_received(
    name: str, consumer: str, spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    logs, golden = unpacked(f"{name}.logs"), unpacked(f"{name}.golden")
    places = logs.glob(LOG_DIRS.get(name, "log-dirs"))
    level = "read_committed" if consumer == "read_committed" else "read_uncommitted"
    arguments = f"--format parquet --isolation-level {level} --topic *"
    assert run_state(*places, output=tmp_path, arguments=arguments) == ExitCode.DONE
    found = state_in(spark, tmp_path)
    expected = consumed_state(golden, topics(golden, consumer), consumer)
    # No consumer can subscribe to the controllers' own log.
    assert {key: row for key, row in found.items() if key[0] != "__cluster_metadata"} == expected
    assert len(expected) > 100


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_state_is_the_same_where_every_segment_is_its_own_task(
    level: str, spark: SparkSession, unpacked: Unpack
) -> None:
    # T16 with it: a transaction's records and its end are in different tasks.
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    options = {"isolationLevel": level, "maxPartitionBytes": 2**20, "subscribePattern": "^shop"}
    records = kafkalog_read(
        spark, logs / "log-dirs", columns=",".join(STATE_RECORD_COLUMNS), **options
    )
    assert records.rdd.getNumPartitions() > 40
    rows = latest_by_key(records).where("value IS NOT NULL").toArrow().to_pylist()
    found = {
        (row["topic"], row["partition"], row["key"]): (row["offset"], row["value"]) for row in rows
    }
    shop = [topic for topic in topics(golden, level) if topic.startswith("shop")]
    assert found == consumed_state(golden, shop, level)
