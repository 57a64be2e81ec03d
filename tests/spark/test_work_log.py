"""What a read costs is found where Spark keeps what its workers log."""

import pytest
from pyspark.sql import SparkSession

from kafkalog.views.reading.work_log import PLANNED, READ
from tests.support.repository import Unpack


@pytest.mark.usefixtures("worker_logs")
def test_numbers_of_planning_and_of_tasks_are_in_the_worker_log(
    spark: SparkSession, unpacked: Unpack
) -> None:
    place = unpacked("kafka44.logs") / "log-dirs"
    before = {line: told(spark, line) for line in (PLANNED, READ)}
    read = spark.read.format("kafkalog").option("subscribe", "shop.multi-3-part-0")
    assert read.load(str(place)).count() == 3800
    planned, *others = told(spark, PLANNED)[len(before[PLANNED]) :]
    assert not others
    tasks = told(spark, READ)[len(before[READ]) :]
    assert len(tasks) == int(planned["tasks"])
    assert int(planned["segments_listed"]) > int(planned["reads_planned"]) >= 3
    assert sum(int(task["reads"]) for task in tasks) == int(planned["reads_planned"])
    assert sum(int(task["bytes_read"]) for task in tasks) == int(planned["bytes_planned"])


def told(spark: SparkSession, line: str) -> list[dict[str, str]]:
    """The numbers of all lines of this kind, in the order of their times."""
    logs = spark.tvf.python_worker_logs().where(f"msg = '{line}'").orderBy("ts")
    return [row["context"] for row in logs.select("context").collect()]
