"""`format("kafkalog")` is found by itself, and can be registered where it is not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import kafkalog
from tests.support.logs.samples import batch
from tests.support.spark.kafka_logs import offsets_read, write_log
from tests.support.zookeeper.zookeeper_files import ROOT, snapshot_bytes, write_data_dir

ROWS = {("orders", 0): [0, 1, 2]}


@pytest.fixture
def new_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in which nothing has been registered."""
    yield spark.newSession()
    # A new session becomes the active one.
    spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)  # type: ignore[union-attr]


def test_spark_finds_the_source_by_itself(
    spark: SparkSession, new_session: SparkSession, tmp_path: Path
) -> None:
    from pyspark.sql.datasource import DataSource

    class Registered(DataSource):
        @classmethod
        def name(cls) -> str:
            return "registered_by_hand"

        def schema(self) -> str:
            return "n LONG"

    write_log(tmp_path, "orders-0", {0: [batch(0)]})
    spark.dataSource.register(Registered)
    assert spark.read.format("registered_by_hand").load().columns == ["n"]
    # What was registered in one session is not known to the other: nor would kafkalog be.
    with pytest.raises(Py4JJavaError, match="DATA_SOURCE_NOT_FOUND"):
        new_session.read.format("registered_by_hand").load()
    assert offsets_read(new_session.read.format("kafkalog").load(str(tmp_path))) == ROWS


@pytest.mark.deep
def test_register_makes_the_name_kafkalogs_own(new_session: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.datasource import DataSource

    class Impostor(DataSource):
        @classmethod
        def name(cls) -> str:
            return "kafkalog"

        def schema(self) -> str:
            return "impostor LONG"

    write_log(tmp_path, "orders-0", {0: [batch(0)]})
    # It hides what Spark found by itself, so that rows can only come by way of register().
    new_session.dataSource.register(Impostor)
    assert new_session.read.format("kafkalog").load(str(tmp_path)).columns == ["impostor"]
    kafkalog.register(new_session)
    assert offsets_read(new_session.read.format("kafkalog").load(str(tmp_path))) == ROWS


@pytest.mark.deep
def test_spark_finds_the_source_of_zookeepers_files_by_itself(
    new_session: SparkSession, tmp_path: Path
) -> None:
    write_data_dir(tmp_path, {0: snapshot_bytes([ROOT])})
    assert new_session.read.format("zookeeper").load(str(tmp_path)).count() == 1
