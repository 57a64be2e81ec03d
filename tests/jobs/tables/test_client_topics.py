"""Job client-topics; the rules are in tests/golden/commands/topics/test_client_topics.py."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.client_topics import main
from kafkalog.command_line.main import kafkalog
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import table, written_schema
from tests.support.repository import Unpack

TABLES = {
    "connect": ("connectors", "connector_tasks", "connector_offsets"),
    "mirror": ("mirror_checkpoints", "mirror_offset_syncs", "mirror_heartbeats"),
    "streams": ("streams_positions",),
    "ksql": ("ksql_statements",),
}


def test_the_job_writes_the_tables_of_the_commands(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Connect, MirrorMaker and Streams 4.3 ran on this cluster, ksqlDB did not.
    given = [str(unpacked("connect43.logs") / "log-dirs"), "--format", "parquet", "--output-dir"]
    assert main([*given, str(tmp_path / "job")]) == ExitCode.DONE
    assert "1 application of Kafka Streams with 2 partitions" in capsys.readouterr().out
    counts = {}
    for command, names in TABLES.items():
        result = CliRunner().invoke(kafkalog, [command, *given, str(tmp_path / command)])
        # A connector has failed, as its cluster's REST interface says too.
        code = ExitCode.FINDINGS if command == "connect" else ExitCode.DONE
        assert result.exit_code == code, result.output
        for name in names:
            found = table(spark, tmp_path / "job", name)
            assert found.schema == written_schema(name)
            rows = sorted(map(str, found.collect()))
            assert rows == sorted(map(str, table(spark, tmp_path / command, name).collect()))
            counts[name] = len(rows)
    expected = {
        "connectors": 6,
        "connector_tasks": 5,
        "mirror_checkpoints": 1,
        "mirror_offset_syncs": 1,
        "mirror_heartbeats": 1,
        "streams_positions": 2,
        "ksql_statements": 0,
    }
    assert {name: counts[name] for name in expected} == expected
