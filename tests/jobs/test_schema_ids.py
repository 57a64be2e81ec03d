"""The job that lists schema ids; the command's tests have the rules."""

import struct
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.schema_ids import main
from kafkalog.spark.jobs.job import ExitCode
from kafkalog.testing import LogDirectory, ProducerRecord
from tests.support.jobs.job_runs import table, written_schema


def test_the_table_has_a_row_for_each_id_of_a_partition(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F1159
    made = LogDirectory(tmp_path / "logs")
    payload = b"\0" + struct.pack(">i", 5) + b"x"
    made.topic("orders", partitions=2).records(
        [ProducerRecord("a", payload), ProducerRecord("b", payload), ProducerRecord("d", payload)]
    )
    arguments = [made.write(), "--output-dir", str(tmp_path / "tables"), "--format", "parquet"]
    assert main(arguments) == ExitCode.DONE
    assert "1 schema id in use in 1 topic" in capsys.readouterr().out
    found = table(spark, tmp_path / "tables", "schema_ids")
    assert found.schema == written_schema("schema_ids")
    assert {(row.field, row.schema_id) for row in found.collect()} == {("value", 5)}
    assert sum(row.records for row in found.collect()) == 3
