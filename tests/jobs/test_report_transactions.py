"""The job that reports transactions: its tables, what it says, its exit codes. Rule: F216."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from jobs.report_transactions import main
from kafkalog.command_line.main import kafkalog
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import table, written_schema
from tests.support.logs.damageable_logs import write_hanging_transaction
from tests.support.repository import Unpack

START_MS = 1_700_000_000_000
# The last record of the transaction in `hung` that has not ended.
LAST_MS = START_MS + 13
MINUTE_MS = 60_000
# Where the transaction is open that the coordinator of `__transaction_state-0` knows.
OF_PARTITION_0 = ("shop.tx.out", "__consumer_offsets")
Outcome = tuple[int, str, str | None]


# What `kafkalog txns` finds out without Spark.
JUDGED = (
    *("topic", "partition", "outcome", "reason", "transactional_id", "producer_id"),
    *("first_offset", "records", "started_ms", "is_stable_offset_holder"),
)


def told_by_command(log_dir: Path, *arguments: object) -> set[tuple[Any, ...]]:
    """The rows of all transactions, by the command."""
    given = ["txns", str(log_dir), "--all", "--format", "json", *map(str, arguments)]
    result = CliRunner().invoke(kafkalog, [*given, "--processes", "1"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return {tuple(row[name] for name in JUDGED) for row in rows}


def run(log_dir: Path, output: Path, *arguments: object) -> int:
    given = ["--output-dir", output, "--format", "parquet", *arguments]
    return main([str(log_dir), *map(str, given)])


def test_transactions_have_the_ids_and_states_that_kafka_transactions_listed(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = unpacked("kafka44.golden") / "tools" / "transactions_list.txt"
    told = {
        (words[0], int(words[2]), words[3])
        for words in map(str.split, listed.read_text().splitlines()[1:])
    }
    assert run(unpacked("kafka44.logs") / "log-dirs", tmp_path, "--fail-on-findings") == 0
    report = table(spark, tmp_path, "transaction_report")
    assert report.schema == written_schema("transaction_report")
    rows = report.collect()
    named = {(row.transactional_id, row.producer_id, row.transaction_state) for row in rows}
    assert named <= told
    # Of these the log has nothing left: an empty transaction, and what the cleaner has removed.
    assert {transactional_id for transactional_id, *_ in told - named} <= {
        "shop.tid-empty",
        "shop.compact-txdrop-tid1",
    }
    # The coordinator has all of them as Ongoing, whatever the name of one says.
    still_open = {(row.topic, row.partition, row.reason) for row in rows if row.outcome == "open"}
    assert still_open == {
        ("shop.tx", 1, "known"),
        ("shop.tx.out", 0, "known"),
        ("__consumer_offsets", 6, "known"),
    }
    assert all(row.is_stable_offset_holder for row in rows if row.outcome == "open")
    said = capsys.readouterr().out
    assert "3 open, 0 hanging; 3 partitions held back" in said
    assert told_by_command(unpacked("kafka44.logs") / "log-dirs") == {
        tuple(row[name] for name in JUDGED) for row in rows
    }


@pytest.mark.deep
def test_whose_coordinator_may_be_missing_does_not_hang(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    # F216, F940. kafka-transactions lists the transactional id of all three.
    logs = tmp_path / "logs"
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", logs)
    shutil.rmtree(logs / "__transaction_state-0")
    code = run(logs, tmp_path / "tables", "--fail-on-findings")
    assert code == ExitCode.UNREADABLE_INPUT
    rows = table(spark, tmp_path / "tables", "transaction_report").collect()
    reasons = {row.topic: row.reason for row in rows if row.outcome == "open"}
    assert reasons == {"shop.tx": "known", **dict.fromkeys(OF_PARTITION_0, "unknown")}
    assert told_by_command(logs) == {tuple(row[name] for name in JUDGED) for row in rows}


@pytest.fixture
def hung(tmp_path: Path) -> Path:
    """A log directory with a transaction that has not ended."""
    assert write_hanging_transaction(tmp_path / "logs", START_MS) == LAST_MS
    return tmp_path / "logs"


def outcomes(report: DataFrame) -> list[Outcome]:
    rows = report.orderBy("first_offset").collect()
    return [(row.first_offset, row.outcome, row.reason) for row in rows]


@pytest.mark.deep
def test_an_old_transaction_that_no_coordinator_knows_hangs(
    spark: SparkSession, hung: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[Outcome] = [(0, "committed", None), (6, "aborted", None)]
    given = ("--fail-on-findings", "--max-transaction-timeout", 1, "--as-of")
    assert run(hung, tmp_path, *given, LAST_MS + MINUTE_MS) == ExitCode.DONE
    report = table(spark, tmp_path, "transaction_report")
    assert outcomes(report) == [*ended, (12, "open", "recent")]
    assert run(hung, tmp_path, *given, LAST_MS + MINUTE_MS + 1) == ExitCode.FINDINGS
    report = table(spark, tmp_path, "transaction_report")
    assert outcomes(report) == [*ended, (12, "hanging", "no_transactional_id")]
    assert "1 committed, 1 aborted, 0 open, 1 hanging; 1 partition held" in capsys.readouterr().out
    stable = table(spark, tmp_path, "stable_offsets")
    assert stable.schema == written_schema("stable_offsets")
    row = stable.where("topic = 'orders'").first()
    assert row is not None
    assert (row.last_stable_offset, row.end_offset, row.holder_producer_id) == (12, 17, 9)


@pytest.mark.deep
def test_without_the_coordinators_topic_nothing_is_called_hanging(
    spark: SparkSession, hung: Path, tmp_path: Path
) -> None:
    assert run(hung / "orders-0", tmp_path, "--fail-on-findings") == ExitCode.DONE
    report = table(spark, tmp_path, "transaction_report")
    assert outcomes(report)[-1] == (12, "open", "unknown")


@pytest.mark.deep
def test_damage_stops_failfast_and_is_named_otherwise(
    spark: SparkSession, hung: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = hung / "orders-0" / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[20:60] = bytes(40)  # the first batch's header
    data[8:12] = b"\xff" * 4
    log.write_bytes(data)
    assert run(hung, tmp_path, "--mode", "FAILFAST") == ExitCode.UNREADABLE_INPUT
    assert f"{log}: position 0" in capsys.readouterr().err
    assert run(hung, tmp_path) == ExitCode.DONE
