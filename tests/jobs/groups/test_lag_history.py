"""The job that tells lag and statuses over time. Rules: F330 to F339."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.lag_history import main
from kafkalog.coordination.groups.group_statuses import group_statuses
from kafkalog.report.contents import ReportMoment
from kafkalog.report.reading.report_reading import ReportRequest, read_report
from kafkalog.spark.jobs.job import ExitCode
from kafkalog.spark.tables import read_table
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.views.engine import LocalViews
from kafkalog.views.options.parameter_types import Duration
from tests.support.golden.described_groups import printed_lags
from tests.support.jobs.job_runs import needs_delta, table, written_schema
from tests.support.logs.commit_logs import SampleCommit, write_commits, write_topic
from tests.support.logs.log_dirs import add_meta_properties
from tests.support.messages.printed_messages import LINE
from tests.support.repository import Unpack

NOON_MS = 1_700_000_040_000
LAST_S, EVERY_S = 600, 10
LOG_START = 200


def at(second: int) -> int:
    return NOON_MS + 1000 * second


def commits_of(group_id: str, seconds: range, *offsets: int) -> list[SampleCommit]:
    """A commit of each offset, one every EVERY_S."""
    places = zip(seconds, offsets, strict=True)
    return [SampleCommit(group_id, "orders", at(second), offset) for second, offset in places]


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Topics orders and clicks have a record every second, with the second as its offset; of clicks
    those below LOG_START are deleted. All groups commit orders every ten seconds, but that group
    late commits clicks twice."""
    place = tmp_path_factory.mktemp("history") / "logs"
    add_meta_properties(place)
    for topic in ("orders", "clicks"):
        write_topic(place, topic, [at(second) for second in range(LAST_S + 1)])
    (place / "log-start-offset-checkpoint").write_text(f"0\n1\nclicks 0 {LOG_START}\n")
    seconds = range(EVERY_S, LAST_S + 1, EVERY_S)
    caught_up = [second + 1 for second in seconds]
    write_commits(
        place,
        [
            *commits_of("steady", seconds, *caught_up),
            *commits_of("stopped", seconds[:10], *caught_up[:10]),
            *commits_of("stalled", seconds, *[5] * len(seconds)),
            *commits_of("rewound", seconds, *caught_up[:-1], 300),
            *commits_of("slow", seconds, *(second // 2 for second in seconds)),
            *commits_of("deleted", seconds[:10], *caught_up[:10]),
            SampleCommit("deleted", "orders", at(125), None),
            SampleCommit("late", "clicks", at(100), 50),
            SampleCommit("late", "clicks", at(300), 150),
        ],
    )
    return place


def run(log_dir: Path, output: Path, *arguments: object) -> int:
    table_format = () if "--format" in arguments else ("--format", "parquet")
    given = ["--output-dir", output, *table_format, *arguments]
    return main([str(log_dir), *map(str, given)])


@pytest.fixture(scope="module")
def rows(spark: SparkSession, log_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The history until the last record; the errors at its end are findings."""
    output = tmp_path_factory.mktemp("tables")
    code = run(log_dir, output, "--until-time", at(LAST_S), "--fail-on-findings")
    assert code == ExitCode.FINDINGS
    history = table(spark, output, "lag_history")
    assert history.schema == written_schema("lag_history")
    generations = table(spark, output, "group_generations")
    assert generations.schema == written_schema("group_generations")
    return history.orderBy("at_ms", "group_id").collect()


@pytest.mark.deep
def test_a_group_that_is_behind_says_since_when(rows: list[Any]) -> None:
    newest = group_statuses(row.asDict() for row in rows if row.event == "end")
    told = {each.group_id: (each.behind_since_ms, each.last_commit_ms) for each in newest}
    # The first record that the group has not read, and its last commit.
    assert told["stopped"] == (at(101), at(100))
    assert told["steady"] == (None, at(LAST_S))


@pytest.mark.deep
def test_every_commit_has_the_lag_of_its_moment(rows: list[Any]) -> None:
    found = [row for row in rows if row.topic == "orders" and row.event == "commit"]
    for row in found:
        second = (row.at_ms - NOON_MS) // 1000
        left = second + 1 - row.committed_offset
        assert (row.readable_records, row.lag, row.high_watermark) == (left, left, second + 1)
        age_ms = row.at_ms - at(row.committed_offset) if left else 0
        assert (row.time_lag_ms, row.at_ms) == (age_ms, row.commit_timestamp_ms)
        # The record before the committed one is as old as that.
        assert row.wait_before_commit_ms == row.at_ms - at(row.committed_offset - 1)
    assert len(found) == 4 * LAST_S // EVERY_S + 2 * 10


def test_the_end_has_the_status_that_the_groups_were_made_for(rows: list[Any]) -> None:
    # F331, F333 to F337: the two kinds of statuses agree here but where the log begins too late.
    ends = {row.group_id: row for row in rows if row.event == "end"}
    found = {group: (row.status, row.burrow_status) for group, row in ends.items()}
    assert found == {
        "steady": ("OK", "OK"),
        "stopped": ("STOP", "STOP"),
        "stalled": ("STALL", "STALL"),
        "rewound": ("REWIND", "REWIND"),
        "slow": ("WARN", "WARN"),
        "late": ("UNKNOWN", "STOP"),
    }
    assert ends["stopped"].reason == "500 records left to read for 8 min, no commit since"
    assert ends["stopped"].burrow_reason == "no commit for 8 min, and the 10 held span 90 s"
    assert ends["stalled"].burrow_reason == "10 commits held, all of offset 5, lag is 596"
    assert ends["rewound"].reason == "rewound from offset 591 to 300 and has not caught up again"
    assert ends["slow"].reason == "301 records left to read, 256 records at the first of 10 commits"
    assert ends["slow"].burrow_reason == "lag is 301, and never fell over 10 commits held"


@pytest.mark.deep
def test_the_share_of_burrows_window_grows_with_the_commits(rows: list[Any]) -> None:
    # F330
    found = [row for row in rows if row.group_id == "steady" and row.event == "commit"]
    shares = [row.burrow_complete for row in found]
    assert shares[:11] == pytest.approx([*(count / 10 for count in range(1, 11)), 1.0])
    assert {row.burrow_lag for row in found} == {0}


@pytest.mark.deep
def test_of_a_log_that_begins_later_nothing_is_made_up(rows: list[Any]) -> None:
    # F333: at 100 s all that was there is deleted now, at 300 s what the group had left to read is.
    first, second = (row for row in rows if row.group_id == "late" and row.event == "commit")
    assert (first.high_watermark, first.status, first.burrow_status) == (None, "UNKNOWN", None)
    assert (second.high_watermark, second.lag, second.below_log_start) == (301, 151, 50)
    assert second.status == "UNKNOWN"


@pytest.mark.deep
def test_moments_have_the_commit_that_was_in_effect(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    span = ("--every", "1m", "--from-time", at(60), "--until-time", at(185))
    given = (*span, "--group-pattern", "slow|deleted")
    assert run(log_dir, tmp_path, *given) == ExitCode.DONE
    history = table(spark, tmp_path, "lag_history").orderBy("group_id", "at_ms").collect()
    found = [
        (row.group_id, row.event, (row.at_ms - NOON_MS) // 1000, row.committed_offset, row.lag)
        for row in history
    ]
    assert found == [
        *(("deleted", "tick", second, min(second, 100) + 1, second - min(second, 100))
          for second in (60, 120)),
        *(("slow", "tick", second, second // 2, second + 1 - second // 2)
          for second in (60, 120, 180)),
        ("slow", "end", 185, 90, 96),
    ]  # fmt: skip


@pytest.mark.deep
def test_the_end_is_about_the_log_as_it_is_without_until(
    spark: SparkSession, log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F334, F332: the group's last commit is years old.
    given = ("--topic", "clicks", "--topic", "clikcs", "--fail-on-findings")
    assert run(log_dir, tmp_path, *given) == ExitCode.FINDINGS
    end = table(spark, tmp_path, "lag_history").where("event = 'end'").first()
    assert end is not None
    assert (end.status, end.burrow_status) == ("LOST", "NOTFOUND")
    assert end.reason == "the log starts 50 offsets after the committed one"
    assert end.burrow_reason.endswith(", over 7 d")
    said = capsys.readouterr().out
    assert "1 group at the end: 1 ERR" in said
    assert "no rows of --topic clikcs; in the input: did you mean clicks?" in said
    assert "commits: none has been removed by cleaning" in said


@pytest.mark.deep
def test_spark_writes_the_rows_of_tasks_where_these_cannot(
    spark: SparkSession, log_dir: Path, tmp_path: Path, rows: list[Any]
) -> None:
    given = ("--until-time", at(LAST_S), "--format", "json")
    assert run(log_dir, tmp_path, *given) == ExitCode.DONE
    found = read_table(spark, str(tmp_path), "lag_history", "json").collect()
    assert sorted(map(str, found)) == sorted(map(str, rows))


@pytest.mark.deep
@needs_delta
def test_a_delta_table_keeps_rows_of_other_inputs(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(log_dir, other)
    output, until = tmp_path / "tables", ("--until-time", at(LAST_S), "--format", "delta")
    for logs in (log_dir, other, log_dir):
        assert run(logs, output, *until) == ExitCode.DONE
    found = table(spark, output, "lag_history", "delta")
    assert found.schema == written_schema("lag_history")
    of_input = {
        row.input_path: row["count"] for row in found.groupBy("input_path").count().collect()
    }
    assert len(of_input) == 2
    assert len(set(of_input.values())) == 1
    assert run(log_dir, output, *until, "--topic", "clicks") == ExitCode.DONE
    found = table(spark, output, "lag_history", "delta")
    topics = found.select("input_path", "topic").distinct().collect()
    assert sorted((str(row.input_path) == str(other), row.topic) for row in topics) == [
        *((False, "clicks"), (True, "clicks"), (True, "orders"))
    ]


@pytest.mark.deep
def test_commits_and_lags_are_those_that_kafkas_tools_printed(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    assert run(unpacked("kafka44.logs") / "log-dirs", tmp_path) == ExitCode.DONE
    rows = table(spark, tmp_path, "lag_history").collect()
    ends = {(row.group_id, row.topic, row.partition): row for row in rows if row.event == "end"}
    told = {key: lag for key, lag in printed_lags(unpacked("kafka44.golden")).items()
            if lag.lag is not None}  # fmt: skip
    assert len(told) > 20
    assert {key: ends[key].lag for key in told} == {key: lag.lag for key, lag in told.items()}
    found = sorted(
        (row.internal_partition, row.record_offset, row.committed_offset, row.commit_timestamp_ms)
        for row in rows
        if row.event == "commit" and "txn" not in row.group_id
    )
    assert found == sorted(_printed_commits(unpacked("kafka44.messages")))


def _printed_commits(dumped: Path) -> list[tuple[int, int, int, int]]:
    """Commits that kafka-dump-log printed, but those of groups that commit in transactions."""
    commits = []
    for path in sorted(dumped.glob("__consumer_offsets-*/*.txt")):
        partition = int(path.parent.name.rpartition("-")[2])
        for match in filter(None, map(LINE.fullmatch, path.read_text().splitlines())):
            key, _, value = match[2].removeprefix("key: ").partition(" payload: ")
            if key.startswith('{"type":"1"') and value != "<DELETE>" and "txn" not in key:
                data = json.loads(value)["data"]
                place = (partition, int(match[1]))
                commits.append((*place, data["offset"], data["commitTimestamp"]))
    return commits


@pytest.mark.parametrize(
    ("text", "expected"), [("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("1d", 86_400_000)]
)
def test_lengths_of_time_have_a_unit(text: str, expected: int) -> None:
    assert Duration().convert(text, None, None) == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--every", "5"), "--every: '5' is not a duration"),
        (("--from-time", "2", "--until-time", "1"), "a time not before --from-time"),
        (("--burrow-intervals", "0"), "--burrow-intervals: 0 is not in the range 1<=x<=10000"),
        (("--allowed-records", "-1"), "--allowed-records: -1 is not in the range x>=0"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: tuple[str, ...], said: str, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(log_dir, log_dir, *arguments) == ExitCode.WRONG_ARGUMENTS
    assert said in capsys.readouterr().err


def test_what_is_missing_of_the_offsets_topic_is_named(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F940
    copy = tmp_path / "logs"
    shutil.copytree(log_dir, copy)
    flushed = "0\n1\n__consumer_offsets 0 100000\n"
    (copy / "recovery-point-offset-checkpoint").write_text(flushed)
    given = ["--output-dir", str(tmp_path / "out"), "--format", "parquet"]
    assert main([str(copy), *given]) == ExitCode.UNREADABLE_INPUT
    said = capsys.readouterr()
    assert "commits, as far as they are here: " in said.out
    assert " to 99999 are missing: the checkpoints of " in said.err


@pytest.mark.parametrize("until_ms", [at(LAST_S + 1), None])
def test_the_report_gives_groups_the_same_statuses_at_the_same_moment(
    spark: SparkSession, log_dir: Path, tmp_path: Path, until_ms: int | None
) -> None:
    # F942, F338: now, long after the copy, groups that stopped with it are errors in both.
    given = () if until_ms is None else ("--until-time", str(until_ms))
    main([str(log_dir), "--output-dir", str(tmp_path), "--format", "parquet", *given])
    ends = table(spark, tmp_path, "lag_history").where("event = 'end'").collect()
    newest = group_statuses(row.asDict() for row in ends)
    told = {row.group_id: (row.status, row.readable_records) for row in newest}
    logs = find_partitions([str(log_dir)])
    views = LocalViews([str(log_dir)], logs, 1)
    moment = ReportMoment.of(until_ms)
    groups = read_report(views, ReportRequest([str(log_dir)], logs, moment)).groups
    assert groups is not None
    found = {row.group_id: (row.status, row.readable_records) for row in groups.statuses}
    assert found == told
    assert [status for status, _ in found.values()].count("ERR") == (5 if until_ms is None else 3)
    assert groups.totals.warned == sum(status in ("WARN", "ERR") for status, _ in told.values())
