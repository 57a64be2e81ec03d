"""Views of the cluster's metadata: who led a partition when."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.repository import ROOT
from tests.support.spark.kafka_logs import kafkalog_read

CONTROLLER = ROOT / "examples" / "controller"


def test_leaders_of_a_partition_are_found_with_its_topics_configs(spark: SparkSession) -> None:
    changes = kafkalog_read(spark, CONTROLLER, view="metadata_changes")
    leaders = changes.where("kind = 'partition' AND column = 'leader' AND name = 'shop.raw-0'")
    rows = leaders.orderBy("offset").select("offset", "old", "new").collect()
    # By kafka-dump-log: the broker was stopped twice, and started in between.
    assert [(row.old, row.new) for row in rows] == [("1", "-1"), ("-1", "1"), ("1", "-1")]
    assert [row.offset for row in rows[1:]] == [419, 699]
    topics = kafkalog_read(spark, CONTROLLER, view="cluster_topics", asOf="1795246919912")
    (row,) = topics.where("topic = 'shop.to-be-deleted'").select(
        "partitions", F.col("configs")["internal.segment.bytes"].alias("bytes")
    ).collect()  # fmt: skip
    assert (row.partitions, row.bytes) == (1, "65536")
