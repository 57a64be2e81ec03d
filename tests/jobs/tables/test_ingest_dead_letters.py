"""What cannot be decoded in a table of its own, by job ingest-topics and `kafkalog.export`. Rule:
F1275."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import kafkalog
from kafkalog.command_line.main import kafkalog as command
from kafkalog.errors import OptionError
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.ingest_runs import run_ingest
from tests.support.jobs.job_runs import needs_delta
from tests.support.spark.kafka_logs import write_records

pytestmark = [pytest.mark.spark, needs_delta]

CARTS: list[tuple[bytes | None, bytes | None]] = [
    (b"a", b'{"id": 1}'),
    (b"b", b"{"),
    (b"c", None),
    (b"\xff", b'{"id": 4}'),
]
MORE: list[tuple[bytes | None, bytes | None]] = [(b"e", b"x"), (b"f", b'{"id": 6}')]
GIVEN: dict[str, Any] = {
    "isolation_level": "read_uncommitted",
    "key_format": "string",
    "value_format": "json",
    "value_schema": "id BIGINT",
    "dead_letters": "dead",
}
AS_OPTIONS = (
    "--isolation-level read_uncommitted --key-format string --value-format json "
    "--value-schema id:BIGINT --dead-letters dead"
)


def _rows(
    output: Path, table_format: str, spark: SparkSession, table: str = "dead"
) -> list[tuple[Any, ...]]:
    """What another engine than the writer reads."""
    if table_format == "iceberg":
        found = IcebergTable(table, output_dir=str(output)).load()
        assert found is not None
        rows = found.scan().to_arrow()
    else:
        rows = spark.read.format(table_format).load(str(output / table)).toArrow()
    names = ["offset", "key", "value", "key_error", "value_error"]
    return sorted(tuple(row.values()) for row in rows.select(names).to_pylist())


@pytest.mark.parametrize(
    "table_format",
    [
        "delta",
        pytest.param("iceberg", marks=pytest.mark.deep),
        pytest.param("parquet", marks=pytest.mark.deep),
    ],
)
def test_python_and_command_add_to_the_same_dead_letters(
    table_format: str, spark: SparkSession, tmp_path: Path
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "lake"
    write_records(logs, "carts-0", CARTS)
    given = {**GIVEN, "format": table_format}
    dead: list[tuple[Any, ...]] = [
        (1, b"b", b"{", None, "not JSON"),
        (3, b"\xff", b'{"id": 4}', "not UTF-8", None),
    ]
    for expected_rows in ([4], []):
        # The second run finds nothing new.
        found = kafkalog.export(spark, logs, str(output), **given)
        assert [row.rows for row in found if row.rows] == expected_rows
        assert _rows(output, table_format, spark) == dead
    assert len(_rows(output, table_format, spark, "ingested_records")) == len(CARTS)
    shutil.rmtree(logs)
    write_records(logs, "carts-0", CARTS + MORE)
    arguments = ["export", str(logs), "--output-dir", str(output), "--format", table_format]
    done = CliRunner().invoke(command, [*arguments, *AS_OPTIONS.split()])
    assert "dead letters: 1 row in" in done.stdout, done.stderr
    assert _rows(output, table_format, spark) == [*dead, (4, b"e", b"x", None, "not JSON")]


@pytest.mark.deep
def test_the_job_says_where_they_are_and_replaces_them(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "lake"
    write_records(logs, "carts-0", CARTS)
    for more in ("", " --full-refresh"):
        assert run_ingest(logs, output=output, arguments=AS_OPTIONS + more) == ExitCode.DONE
        assert f"dead letters: 2 rows in {output / 'dead'}\n" in capsys.readouterr().out
        assert [row[0] for row in _rows(output, "delta", spark)] == [1, 3]
    assert len(_rows(output, "delta", spark, "ingested_records")) == len(CARTS)


@pytest.mark.deep
def test_a_table_of_records_keeps_its_name(spark: SparkSession, tmp_path: Path) -> None:
    logs, output = tmp_path / "logs", tmp_path / "lake"
    write_records(logs, "carts-0", CARTS)
    for other in (
        {"dead_letters": "ingested_records"},
        {"dead_letters": "carts", "table_per_topic": True},
        {"dead_letters": "a/b"},
        {"dead_letters": 7},
        {"key_format": None, "value_format": None, "value_schema": None},
    ):
        with pytest.raises(OptionError, match="dead_letters"):
            kafkalog.export(spark, logs, str(output), **{**GIVEN, **other})
        assert not output.exists()
