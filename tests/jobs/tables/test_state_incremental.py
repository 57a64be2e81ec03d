"""The state job run after run: what it ends with is what reading everything would give.

Rules: F270, F271, F276, F277, F279, F280.
"""

import json
import shutil
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from jobs.reconstruct_state import build
from kafkalog.spark.jobs.job import ExitCode, JobSettings
from kafkalog.spark.jobs.tables import state_by_tasks
from kafkalog.spark.jobs.tables.state_table import write_rows
from kafkalog.views.options.state_options import StateRequest
from kafkalog.views.planning.state_positions import StatePositions, StateSettings, incremental_run
from kafkalog.views.planning.state_sources import found_sources
from tests.support.jobs.job_runs import needs_delta, written_schema
from tests.support.jobs.state_runs import State, run_state, state_in
from tests.support.logs.growing_logs import GrowingLog, write_logs

pytestmark = needs_delta


def state_of(logs: list[GrowingLog], level: str, *, deletes: bool = False) -> State:
    whole: State = {}
    for log in logs:
        whole |= log.state(level, deletes=deletes)
    return whole


@pytest.mark.deep
@pytest.mark.parametrize(
    ("seed", "level", "deletes", "by_spark"),
    [
        (1, "read_uncommitted", False, True),
        (1, "read_uncommitted", True, False),
        (2, "read_committed", False, False),
    ],
)
def test_after_each_step_the_table_is_that_of_reading_everything(
    seed: int,
    level: str,
    deletes: bool,
    by_spark: bool,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if by_spark:
        monkeypatch.setattr(state_by_tasks, "MOST_NEW_OFFSETS", 0)
    logs = [GrowingLog("orders", 0, seed), GrowingLog("orders", 1, seed)]
    place, output = tmp_path / "logs", tmp_path / "tables"
    asked = f"--format delta --isolation-level {level}{' --keep-tombstones' * deletes}"
    for step in range(4):
        for log in logs:
            log.grow(12)
        if step == 2:  # a topic that was not there before
            logs.append(GrowingLog("users", 0, seed))
            logs[-1].grow(12)
        write_logs(place, logs)
        assert run_state(place, output=output, arguments=asked) == ExitCode.DONE
        assert state_in(spark, output, "delta") == state_of(logs, level, deletes=deletes)
    # Spark names files so.
    assert any((output / "state").glob("part-*.parquet")) == by_spark
    everything = tmp_path / "again"
    assert run_state(place, output=everything, arguments=asked) == ExitCode.DONE
    grown, again = (
        spark.read.format("delta").load(str(path / "state")) for path in (output, everything)
    )
    assert grown.schema == written_schema("state")
    assert_df_equality(grown, again, ignore_row_order=True)


def history(spark: SparkSession, output: Path) -> list[tuple[int, str, dict[str, object] | None]]:
    """Version, operation and what stands in the commit, the oldest first."""
    rows = spark.sql(f"DESCRIBE HISTORY delta.`{output / 'state'}`").collect()
    return [
        (row.version, row.operation, json.loads(row.userMetadata) if row.userMetadata else None)
        for row in reversed(rows)
    ]


@pytest.mark.deep
def test_a_repeated_run_writes_no_version_and_history_tells_the_offsets_of_each(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = GrowingLog("orders", 0, 3)
    place, output = tmp_path / "logs", tmp_path / "tables"
    asked = "--format delta --isolation-level read_uncommitted"
    ends = []
    for _ in range(2):
        log.grow(10)
        ends.append(log.next_offset)
        write_logs(place, [log])
        for _ in range(2):
            assert run_state(place, output=output, arguments=asked) == ExitCode.DONE
        assert "nothing is new" in capsys.readouterr().out
    first, second = history(spark, output)
    assert [(entry[0], entry[1]) for entry in (first, second)] == [(0, "WRITE"), (1, "MERGE")]
    assert second[2] == {
        "job": "kafkalog reconstruct_state",
        "cluster_id": "growing",
        "isolation_level": "read_uncommitted",
        "keep_tombstones": False,
        "next_offsets": {"orders": {"0": ends[1]}},
        "log_start_offsets": {"orders": {"0": log.log_start}},
        "leader_epochs": {},
        "topic_ids": {"orders": "AAAAAAAAAAAAAAAAAAAAAQ"},
    }
    assert first[2] is not None
    assert first[2]["next_offsets"] == {"orders": {"0": ends[0]}}


@pytest.mark.deep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("upkeep", ["optimize", "restore", "history gone"])
def test_upkeep_between_runs_costs_no_record(
    upkeep: str, spark: SparkSession, tmp_path: Path
) -> None:
    log = GrowingLog("orders", 0, 4)
    place, output = tmp_path / "logs", tmp_path / "tables"
    asked = "--format delta --isolation-level read_uncommitted"
    for step in range(3):
        log.grow(10)
        write_logs(place, [log])
        assert run_state(place, output=output, arguments=asked) == ExitCode.DONE
        assert state_in(spark, output, "delta") == log.state("read_uncommitted")
        if upkeep == "optimize" and step == 1:
            spark.sql(f"OPTIMIZE delta.`{output / 'state'}`")
            spark.sql(f"VACUUM delta.`{output / 'state'}`")
        elif upkeep == "restore" and step:
            spark.sql(f"RESTORE TABLE delta.`{output / 'state'}` TO VERSION AS OF {step - 1}")
        elif upkeep == "history gone":
            forget_history(spark, output)


def forget_history(spark: SparkSession, output: Path) -> None:
    """A table without a commit's text: as it is when Delta has cleaned its log up."""
    path = str(output / "state")
    frame = spark.read.format("delta").load(path).localCheckpoint()
    shutil.rmtree(path)
    frame.write.format("delta").save(path)


@pytest.mark.deep
def test_an_old_copy_of_the_log_brings_no_deleted_key_back(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = GrowingLog("orders", 0, 5)
    log.grow(20)
    old, new, output = tmp_path / "old", tmp_path / "new", tmp_path / "tables"
    write_logs(old, [log])
    log.grow(20)
    write_logs(new, [log])
    asked = "--format delta --isolation-level read_uncommitted"
    assert run_state(new, output=output, arguments=asked) == ExitCode.DONE
    capsys.readouterr()
    assert run_state(old, output=output, arguments=asked) == ExitCode.UNREADABLE_INPUT
    assert "this is an older copy of the log" in capsys.readouterr().err
    forget_history(spark, output)
    assert run_state(old, output=output, arguments=asked) == ExitCode.UNREADABLE_INPUT
    assert state_in(spark, output, "delta") == log.state("read_uncommitted")
    # Asked for, it is what one gets.
    earlier = f"{asked} --full-refresh"
    assert run_state(old, output=output, arguments=earlier) == ExitCode.DONE
    assert run_state(new, output=output, arguments=asked) == ExitCode.DONE
    assert state_in(spark, output, "delta") == log.state("read_uncommitted")


@pytest.mark.deep
@pytest.mark.parametrize("keep", [True, False])
def test_a_range_that_was_read_before_changes_nothing(
    keep: bool, spark: SparkSession, tmp_path: Path
) -> None:
    # As if positions were lost. With the deletes kept, an older copy of the log does no harm
    # either; without them what is read again must reach as far as before.
    log = GrowingLog("orders", 0, 6)
    log.grow(20)
    old, new, output = tmp_path / "old", tmp_path / "new", tmp_path / "tables"
    write_logs(old, [log])
    log.grow(20)
    write_logs(new, [log])
    tombstones = " --keep-tombstones" if keep else ""
    asked = f"--format delta --isolation-level read_uncommitted{tombstones}"
    assert run_state(new, output=output, arguments=asked) == ExitCode.DONE
    expected = log.state("read_uncommitted", deletes=keep)
    assert state_in(spark, output, "delta") == expected

    again = old if keep else new
    job = JobSettings((str(again),), str(output))
    request = StateRequest(
        topics=(),
        topic_pattern=None,
        isolation_level="read_uncommitted",
        stop_at="highWatermark",
        as_of=None,
        as_of_offsets=(),
        keep_tombstones=keep,
        full_refresh=False,
    )
    sources = found_sources(request.options(job.paths, job.mode, now_ms=1_795_000_000_000))
    settings = StateSettings(request.isolation_level, request.keep_tombstones)
    planned = incremental_run(StatePositions(*settings), settings, sources)
    write_rows(build(spark, job, planned, sources), job, [str(again)], planned)
    assert len(history(spark, output)) == 2
    assert state_in(spark, output, "delta") == expected


@pytest.mark.deep
def test_partitions_that_are_not_given_keep_their_rows(spark: SparkSession, tmp_path: Path) -> None:
    logs = [GrowingLog("orders", 0, 7), GrowingLog("orders", 1, 7)]
    for log in logs:
        log.grow(15)
    place, output = tmp_path / "logs", tmp_path / "tables"
    write_logs(place, logs)
    asked = "--format delta --isolation-level read_uncommitted"
    assert run_state(place, output=output, arguments=asked) == ExitCode.DONE
    for refresh in ("", " --full-refresh"):
        kept = logs[1].state("read_uncommitted")
        logs[0].grow(10)
        write_logs(place, logs)
        one = place / "orders-0"
        assert run_state(one, output=output, arguments=asked + refresh) == ExitCode.DONE
        expected = kept | logs[0].state("read_uncommitted")
        assert state_in(spark, output, "delta") == expected
