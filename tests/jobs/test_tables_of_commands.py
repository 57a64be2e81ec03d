"""A command with --output-dir writes the tables that the job of its question writes: the same
names, columns, comments and rows."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.support.jobs.job_runs import table, written_schema
from tests.support.repository import EXAMPLES, Unpack

AS_OF = ("--as-of", "2026-12-01T00:00:00Z")
QUESTIONS = {
    "check": ("validate_checksums", ()),
    "compaction": ("verify_compaction", AS_OF),
    "connect": ("client_topics", ()),
    "groups": ("consumer_lag", AS_OF),
    "keys": ("key_usage", ()),
    "lag-history": ("lag_history", ("--until-time", "2026-12-01T00:00:00Z")),
    "recover": ("plan_recovery", ("--shutdown", "unclean")),
    "retention": ("plan_retention", AS_OF),
    "schemas": ("schema_ids", ()),
    "state": ("reconstruct_state", ("--topic", "*", "--mode", "PERMISSIVE")),
    "txns": ("report_transactions", AS_OF),
}
TABLES = {
    "check": ("checksum_report", "faults"),
    "compaction": ("compaction_report", "compaction_findings"),
    "connect": ("connectors", "connector_tasks", "connector_offsets"),
    "groups": ("consumer_lag",),
    "keys": ("key_usage", "heavy_keys"),
    "lag-history": ("lag_history", "group_generations"),
    "recover": ("recovery_plan", "node_starts", "log_dir_starts", "producer_sequences"),
    "retention": ("retention_plan",),
    "schemas": ("schema_ids",),
    "state": ("state", "state_partitions"),
    "txns": ("transaction_report", "stable_offsets"),
    "audit-consumers": ("partition_ownership", "consumer_findings", "ownership_history"),
    "migrate-offsets": ("offset_migration", "migration_phases"),
}
# What a job answers besides: it can lack what the command's own answer does not need.
BESIDES = {"connect": ("streams",)}
# The present, which the two runs do not share.
TIMES = ("at_ms", "as_of_ms")


def run_command(*arguments: object) -> int:
    has_findings = arguments[0] not in ("groups", "keys", "streams")
    given = [*map(str, arguments), *(["--no-fail-on-findings"] if has_findings else [])]
    return CliRunner().invoke(kafkalog, given).exit_code


def rows_of(frame: DataFrame) -> list[str]:
    kept = [each for each in frame.columns if each not in TIMES]
    return sorted(str(row) for row in frame.select(kept).collect())


def assert_the_same(
    spark: SparkSession, question: str, job: str, arguments: Sequence[Any], tmp_path: Path
) -> None:
    given = [*map(str, arguments), "--output-dir"]
    main = import_module(f"jobs.{job}").main
    code = main([*given, str(tmp_path / "job"), "--format", "parquet"])
    own = run_command(question, *given, tmp_path / "parquet")
    besides = (run_command(each, *arguments) for each in BESIDES.get(question, ()))
    assert max(own, *besides, 0) == code
    assert run_command(question, *given, tmp_path / "json", "--format", "json") == own
    for name in TABLES[question]:
        wanted, found = (table(spark, tmp_path / each, name) for each in ("job", "parquet"))
        assert found.schema.jsonValue() == wanted.schema.jsonValue()
        in_json = spark.read.schema(wanted.schema).json(str(tmp_path / "json" / name))
        rows = rows_of(wanted)
        assert rows_of(found) == rows
        assert rows_of(in_json) == rows


@pytest.mark.parametrize("question", list(QUESTIONS))
@pytest.mark.parametrize("log_dir", ["kafka-4.4", "damaged"])
def test_command_and_job_write_the_same(
    spark: SparkSession, question: str, log_dir: str, tmp_path: Path
) -> None:
    job, options = QUESTIONS[question]
    if question in ("groups", "lag-history") and log_dir == "damaged":
        log_dir = "../shop-week"
    path = EXAMPLES / log_dir
    if log_dir == "damaged":
        path = next(each for each in sorted(path.iterdir()) if each.is_dir())
    assert_the_same(spark, question, job, [path, *options], tmp_path)


def test_why_groups_wait_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    # F781: the job writes it with --why, the command of the groups that are named.
    given = [str(EXAMPLES / "../shop-week"), *AS_OF, "--output-dir"]
    groups = ("billing", "reports")
    main = import_module("jobs.consumer_lag").main
    chosen = [each for group in groups for each in ("--group", group)]
    job = [*given, str(tmp_path / "job"), "--format", "parquet", "--why", *chosen]
    assert main(job) == ExitCode.DONE
    named = [each for group in groups for each in ("--why", group)]
    assert run_command("groups", *given, tmp_path / "parquet", *named) == ExitCode.DONE
    name = "group_reasons"
    found, own = (table(spark, tmp_path / each, name) for each in ("job", "parquet"))
    assert rows_of(own) == rows_of(found)
    assert found.schema == written_schema(name)
    assert {row.group_id for row in found.select("group_id").collect()} == set(groups)
    assert found.where("reason IS NULL OR what_to_do IS NULL").count() == 0


def test_answers_about_zookeeper_are_the_same(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    (offsets,) = unpacked("kafka010.logs").rglob("__consumer_offsets-1")
    data_dir = unpacked("kafka010.zookeeper") / "zookeeper-live"
    given = [offsets.parent, "--zookeeper", data_dir, "--allow-unknown-cluster"]
    assert_the_same(spark, "migrate-offsets", "migrate_offsets", given, tmp_path / "migration")
    assert_the_same(spark, "audit-consumers", "audit_consumers", [data_dir], tmp_path / "audit")


def test_decoded_state_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    # F1276: Spark decodes for the job, Arrow for the command.
    schema = "order BIGINT, customer STRING, amount DECIMAL(9,2), missing ARRAY<INT>"
    given = ["--topic", "orders", "--key-format", "string", "--value-format", "json"]
    given = [str(EXAMPLES / "../shop-week"), *given, "--value-schema", schema, "--output-dir"]
    main = import_module("jobs.reconstruct_state").main
    assert main([*given, str(tmp_path / "job"), "--format", "parquet"]) == ExitCode.DONE
    assert run_command("state", *given, tmp_path / "parquet") == ExitCode.DONE
    job, command = (
        spark.read.parquet(str(tmp_path / each / "state_decoded")) for each in ("job", "parquet")
    )
    assert command.dtypes == job.dtypes
    assert sorted(map(str, command.collect())) == sorted(map(str, job.collect()))
    assert command.where("value_decoded.order IS NOT NULL").count() == 60
