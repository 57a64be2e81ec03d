"""View `offset_commits` through Spark."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.jobs.job_runs import written_schema
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import kafkalog_read


def test_the_columns_and_the_effects(spark: SparkSession, unpacked: Unpack) -> None:
    # F300
    commits = kafkalog_read(spark, unpacked("kafka44.logs") / "log-dirs", view="offset_commits")
    assert commits.schema == written_schema("offset_commits")
    effects = commits.where("is_transactional").groupBy("effect").agg(F.count("*").alias("n"))
    # As the markers in kafka-dump-log's output say, and what Kafka printed of the groups.
    assert {row.effect: row.n for row in effects.collect()} == {
        "applied": 4,
        "aborted": 2,
        "open": 1,
    }


@pytest.mark.deep
def test_another_topic_is_an_error(spark: SparkSession, unpacked: Unpack) -> None:
    logs = unpacked("kafka44.logs") / "log-dirs"
    with pytest.raises(PySparkException, match=r"offset_commits of shop\.tx"):
        kafkalog_read(spark, logs, view="offset_commits", subscribe="shop.tx").count()
