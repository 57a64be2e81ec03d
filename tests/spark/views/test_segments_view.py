"""View `segments`: a row for every segment that there are files of. F136, F137; T32."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import kafkalog_read

LIVE = ("active", "live")


def test_every_log_file_has_a_row_and_their_batches_are_those_of_view_batches(
    spark: SparkSession, unpacked: Unpack
) -> None:
    # F137.
    logs = unpacked("kafka44.logs") / "log-dirs"
    rows = kafkalog_read(spark, logs, view="segments", subscribe="*").select(
        "file", "status", "size", "batches", "base_offset", "last_offset", "index_verdict"
    )
    found = {row.file: row for row in rows.collect()}
    files = {str(path): path for path in logs.glob("*/*.log*") if "-delete" not in str(path)}
    assert found.keys() == files.keys()
    assert all(found[name].size == path.stat().st_size for name, path in files.items())
    assert {row.index_verdict for row in found.values()} == {"sound"}
    batches = kafkalog_read(spark, logs, view="batches", subscribe="*").groupBy("file")
    counted = batches.agg(
        F.count("*").alias("batches"), F.min("base_offset"), F.max("last_offset")
    ).collect()
    live = {
        name: (row.batches, row.base_offset, row.last_offset)
        for name, row in found.items()
        if row.status in LIVE and row.batches
    }
    assert live == {row[0]: tuple(row)[1:] for row in counted}


@pytest.mark.deep
def test_findings_are_rows_within_the_row(spark: SparkSession, unpacked: Unpack) -> None:
    # F136.
    variants = unpacked("unclean.logs") / "variants"
    frame = kafkalog_read(spark, variants / "index-garbage" / "log-dirs", view="segments")
    wrong = frame.where("index_verdict = 'findings'")
    found = wrong.select("segment_base_offset", F.explode("index_findings").alias("found"))
    rows = found.select("segment_base_offset", "found.*").orderBy("kind").collect()
    assert [(row.segment_base_offset, row.file, row.kind, row.severity) for row in rows] == [
        (0, ".index", "beyond_end", "error"),
        (0, ".index", "not_rising", "error"),
        (0, ".index", "position", "error"),
    ]
    assert [(row.entry, row.entries) for row in rows] == [(0, 6), (1, 5), (3, 2)]
