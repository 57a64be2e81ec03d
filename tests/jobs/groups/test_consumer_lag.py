"""The job that tells consumer lag: its table, what it says, its exit codes. Rules: F310 to F328.

That the table's rows are what kafka-consumer-groups printed of real brokers' groups is in
tests/golden/groups/test_consumer_groups.py.
"""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.consumer_lag import main
from kafkalog.inspection.groups.commit_reach import CommitReach
from kafkalog.inspection.lag.lag_table import LagTotals
from kafkalog.questions.groups.lag import lag_findings
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import table, written_schema
from tests.support.logs.commit_logs import SampleCommit, write_commits, write_topic
from tests.support.logs.log_dirs import LOG_STARTS, add_meta_properties, checkpoint_text

NOON_MS = 1_700_000_040_000
LAST_S = 600
LOG_START = 200


def at(second: float) -> int:
    return NOON_MS + int(1000 * second)


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Topics orders and clicks have a record every second, with the second as its offset; of clicks
    those below LOG_START are deleted."""
    place = tmp_path_factory.mktemp("lag") / "logs"
    add_meta_properties(place)
    for topic in ("orders", "clicks"):
        write_topic(place, topic, [at(second) for second in range(LAST_S + 1)])
    (place / LOG_STARTS).write_text(checkpoint_text({("clicks", 0): LOG_START}))
    write_commits(
        place,
        [
            SampleCommit("reader", "orders", at(110.25), 100),
            SampleCommit("reader", "orders", at(310.25), 300),
            SampleCommit("reader", "orders", at(510.25), 500),
            SampleCommit("done", "orders", at(605), LAST_S + 1),
            SampleCommit("late", "clicks", at(50), 40),
            SampleCommit("gone", "orders", at(20), 10),
            SampleCommit("gone", "orders", at(400), None),
            SampleCommit("orphan", "deleted-topic", at(20), 10),
        ],
    )
    return place


def run(log_dir: Path, output: Path, *arguments: object, table_format: str = "parquet") -> int:
    given = ["--output-dir", output, "--format", table_format, *arguments]
    return main([str(log_dir), *map(str, given)])


def rows(spark: SparkSession, output: Path) -> dict[str, Any]:
    """By group, each of which has one row."""
    found = table(spark, output, "consumer_lag")
    assert found.schema == written_schema("consumer_lag")
    collected = found.collect()
    assert len({row.group_id for row in collected}) == len(collected)
    return {row.group_id: row for row in collected}


def test_lag_as_of_the_last_record_and_what_was_lost(
    spark: SparkSession, log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moment = at(LAST_S + 10)
    code = run(log_dir, tmp_path, "--as-of", moment, "--fail-on-findings")
    assert code == ExitCode.FINDINGS
    found = rows(spark, tmp_path)
    assert set(found) == {"reader", "done", "late", "orphan"}
    reader = found["reader"]
    assert (reader.committed_offset, reader.high_watermark, reader.lag) == (500, 601, 101)
    assert reader.readable_records == 101
    assert (reader.next_offset, reader.time_lag_ms) == (500, 110_000)
    assert reader.freshness_ms == 100_000
    assert (reader.commit_timestamp_ms, reader.wait_before_commit_ms) == (at(510.25), 11_250)
    assert (reader.commit_status, reader.group_state, reader.member_id) == (
        "current",
        "Empty",
        None,
    )
    done = found["done"]
    assert (done.lag, done.time_lag_ms, done.next_offset) == (0, 0, None)
    late = found["late"]
    assert (late.lag, late.below_log_start, late.readable_records) == (561, 160, 401)
    assert (late.next_offset, late.time_lag_ms) == (LOG_START, moment - at(LOG_START))
    orphan = found["orphan"]
    assert (orphan.commit_status, orphan.committed_offset, orphan.lag) == (
        "unknown_topic",
        10,
        None,
    )
    said = capsys.readouterr().out
    assert "4 groups, 4 partitions: 2 behind, 502 records to read, the oldest 7 min old" in said
    assert "1 commit not counted; offsets lost to deletion in 1 partition" in said
    assert "lag unknown for 1 partition: no log in the input, or it starts after --as-of" in said
    assert "commits: none has been removed by cleaning" in said
    assert "findings: offsets lost to deletion\n" in said
    assert "101 to read" in said
    assert "401 to read, 160 deleted" in said
    assert "110 s" in said


@pytest.mark.deep
def test_tables_of_all_formats_have_the_same_rows(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    moment = at(LAST_S + 10)
    found = {}
    for table_format in ("parquet", "delta", "delta", "json"):
        output = tmp_path / table_format
        code = run(log_dir, output, "--as-of", moment, "--show", 0, table_format=table_format)
        assert code == ExitCode.DONE
        reader = spark.read.format(table_format)
        if table_format == "json":
            reader = reader.schema(written_schema("consumer_lag"))
        rows_of_format = reader.load(str(output / "consumer_lag")).collect()
        found[table_format] = sorted(rows_of_format, key=lambda row: row.group_id)
    assert [row.group_id for row in found["parquet"]] == ["done", "late", "orphan", "reader"]
    assert found["delta"] == found["json"] == found["parquet"]


@pytest.mark.deep
def test_a_past_moment_has_its_commits_and_its_log_end(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    # F312, F324
    assert run(log_dir, tmp_path, "--as-of", at(350.5), "--show", 0) == ExitCode.DONE
    found = rows(spark, tmp_path)
    assert set(found) == {"reader", "late", "gone", "orphan"}
    reader = found["reader"]
    assert (reader.at_ms, reader.committed_offset) == (at(350.5), 300)
    assert (reader.high_watermark, reader.lag, reader.time_lag_ms) == (351, 51, 50_500)
    assert reader.high_watermark_from == "create_time"
    assert (found["gone"].committed_offset, found["gone"].lag) == (10, 341)


@pytest.mark.deep
def test_nothing_is_reported_of_a_moment_that_the_log_has_lost(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    # F312: the commit is known, where the log ended then is not.
    only = ("--as-of", at(60), "--group-pattern", "^late$", "--fail-on-findings")
    assert run(log_dir, tmp_path, *only, "--max-lag", 0) == ExitCode.DONE
    (late,) = rows(spark, tmp_path).values()
    assert (late.committed_offset, late.high_watermark, late.lag) == (40, None, None)
    assert (late.time_lag_ms, late.log_start_offset) == (None, LOG_START)


@pytest.mark.deep
def test_now_ages_are_as_of_now_and_commits_expire(
    spark: SparkSession, log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F325: groups without members lose their commits after a week, by default.
    run(log_dir, tmp_path, "--topic-pattern", "orders")
    found = rows(spark, tmp_path)
    assert set(found) == {"reader", "done"}
    assert {row.commit_status for row in found.values()} == {"expired"}
    assert found["reader"].time_lag_ms > 365 * 86_400_000
    assert found["reader"].high_watermark_from == "log_end"
    said = capsys.readouterr().out
    assert "1 behind, 101 records to read" in said
    assert "findings: none; 1 partition is behind, which is a finding with --max-lag only" in said
    assert "a running broker would have dropped 2 commits by now" in said


@pytest.mark.deep
def test_names_without_rows_are_reported(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(log_dir, tmp_path, "--group", "reader", "--group", "redaer", "--topic", "orders")
    said = capsys.readouterr().out
    assert "1 group, 1 partition: " in said
    (missing,) = re.findall("no rows of (.*)", said)
    assert missing.startswith("--group redaer; in the input: did you mean reader?")


@pytest.mark.deep
def test_more_lag_than_allowed_is_a_finding() -> None:
    totals = LagTotals(most_records=101)
    reaches = [CommitReach(False, None, 0)]
    assert lag_findings(totals, reaches, 101) == []
    assert lag_findings(totals, reaches, None) == []
    assert lag_findings(totals, reaches, 100) == ["101 records to read in one partition"]


@pytest.mark.deep
def test_without_the_offsets_topic_the_job_says_what_is_missing(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(log_dir / "orders-0", tmp_path) == ExitCode.UNREADABLE_INPUT
    said = capsys.readouterr().err
    assert "there is no partition of __consumer_offsets" in said
    assert "give the log directories of all brokers" in said


@pytest.mark.deep
def test_damage_that_hides_commits_is_a_finding(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F314 says it of topics; of groups whose commits are hidden nothing else tells.
    copy = tmp_path / "logs"
    shutil.copytree(log_dir, copy)
    segment = copy / "__consumer_offsets-0" / f"{0:020d}.log"
    data = bytearray(segment.read_bytes())
    data[-3] ^= 1
    segment.write_bytes(data)
    only = ("--as-of", at(LAST_S), "--group-pattern", "reader", "--fail-on-findings")
    assert run(copy, tmp_path / "tables", *only) == ExitCode.FINDINGS
    said = capsys.readouterr().out
    assert "commits: 1 damaged places in __consumer_offsets hide some" in said
    assert "findings: damage\n" in said


@pytest.mark.deep
def test_a_record_from_the_future_has_no_age(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F315: the table has a negative number, people get the words of `kafkalog groups`.
    add_meta_properties(tmp_path / "logs")
    in_2100_ms = 4_102_444_800_000
    write_topic(tmp_path / "logs", "orders", [in_2100_ms])
    write_commits(tmp_path / "logs", [SampleCommit("early", "orders", at(0), 0)])
    assert run(tmp_path / "logs", tmp_path / "tables") == ExitCode.DONE
    said = capsys.readouterr().out
    age = r"[0-9,]+ d( [0-9]+ h)? in the future"
    assert re.search(rf"\|{age} *\|", said)
    assert re.search(rf", 1 record to read, the oldest {age};", said)
    assert rows(spark, tmp_path / "tables")["early"].time_lag_ms < 0


def test_a_wrong_pattern_is_named(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(log_dir, tmp_path, "--group-pattern", "(") == ExitCode.WRONG_ARGUMENTS
    assert "'(' is not a valid regular expression" in capsys.readouterr().err


def test_what_is_missing_of_the_offsets_topic_is_named(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F940: the broker had flushed twice as many records.
    copy = tmp_path / "logs"
    shutil.copytree(log_dir, copy)
    flushed = checkpoint_text({("__consumer_offsets", 0): 16})
    (copy / "recovery-point-offset-checkpoint").write_text(flushed)
    code = run(copy, tmp_path / "out", "--as-of", at(LAST_S + 10))
    assert code == ExitCode.UNREADABLE_INPUT
    said = capsys.readouterr()
    assert "commits, as far as they are here: " in said.out
    assert "commits: 8 offsets are missing: 8 of __consumer_offsets-0: " in said.out
    assert "__consumer_offsets-0: offsets 8 to 15 are missing: " in said.err
