"""The table of state by tasks that pass keys on to each other, and its commit.

Rules: F270 to F277.
"""

import json
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.errors import StatePositionError
from kafkalog.lake.state import state_plan
from kafkalog.spark.jobs.job import ExitCode, JobSettings
from kafkalog.spark.jobs.tables import state_by_tasks
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.state_positions import StateSettings, full_run
from kafkalog.views.planning.state_sources import found_sources
from tests.support.jobs.job_runs import needs_delta
from tests.support.jobs.state_runs import run_state, state_in
from tests.support.logs.growing_logs import GrowingLog, write_logs
from tests.support.logs.samples import batch
from tests.support.spark.kafka_logs import write_log

LEVEL = "read_committed"


@pytest.fixture
def logs(tmp_path: Path) -> list[GrowingLog]:
    made = [GrowingLog("orders", number, 8) for number in range(2)]
    for log in made:
        log.grow(40)
    write_logs(tmp_path / "logs", made)
    return made


@pytest.mark.deep
def test_tasks_that_pass_keys_on_find_the_same_state(
    logs: list[GrowingLog],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = f"--format parquet --isolation-level {LEVEL}"
    assert run_state(tmp_path / "logs", output=tmp_path / "whole", arguments=asked) == ExitCode.DONE
    said = capsys.readouterr().out.splitlines()[0]
    # So few keys at once, and parts of so few bytes.
    small = partial(state_plan.plan_state, most_keys=9, least_bytes=200)
    monkeypatch.setattr(state_by_tasks, "plan_state", small)
    assert run_state(tmp_path / "logs", output=tmp_path / "parts", arguments=asked) == ExitCode.DONE
    assert capsys.readouterr().out.splitlines()[0] == said
    state = logs[0].state(LEVEL) | logs[1].state(LEVEL)
    assert state_in(spark, tmp_path / "whole") == state_in(spark, tmp_path / "parts") == state


@pytest.mark.deep
@needs_delta
def test_a_refreshed_table_has_the_new_files_only_and_an_outdated_run_changes_nothing(
    logs: list[GrowingLog], spark: SparkSession, tmp_path: Path
) -> None:
    place, output = tmp_path / "logs", tmp_path / "tables"
    asked = f"--format delta --isolation-level {LEVEL} --full-refresh"
    for _ in range(2):
        assert run_state(place, output=output, arguments=asked) == ExitCode.DONE
    expected = logs[0].state(LEVEL) | logs[1].state(LEVEL)
    assert state_in(spark, output, "delta") == expected
    history = spark.sql(f"DESCRIBE HISTORY delta.`{output / 'state'}`").collect()
    assert [(row.version, row.operation) for row in history] == [(1, "WRITE"), (0, "WRITE")]
    ends = json.loads(history[0].userMetadata)["next_offsets"]
    assert ends == {"orders": {str(log.partition): log.last_stable_offset for log in logs}}

    files = {path.name for path in (output / "state").glob("*.parquet")}
    job = JobSettings((str(place),), str(output))
    sources = found_sources(read_options({"path": str(place), "isolationLevel": LEVEL}))
    run = full_run(None, StateSettings(LEVEL, keep_tombstones=False), sources)
    with pytest.raises(StatePositionError, match="another run has written meanwhile"):
        state_by_tasks.write_state(spark, job, [str(place)], run, sources, 0)
    assert {path.name for path in (output / "state").glob("*.parquet")} == files
    assert state_in(spark, output, "delta") == expected


@pytest.mark.deep
@needs_delta
@pytest.mark.parametrize("table_format", ["parquet", "delta"])
def test_a_log_without_a_key_gives_a_table_without_rows(
    table_format: str, spark: SparkSession, tmp_path: Path
) -> None:
    log = GrowingLog("orders", 0, 1)
    write_logs(tmp_path / "logs", [log])
    asked = f"--format {table_format}"
    assert run_state(tmp_path / "logs", output=tmp_path, arguments=asked) == ExitCode.DONE
    assert state_in(spark, tmp_path, table_format) == {}


@pytest.mark.deep
def test_damage_that_a_task_finds_is_reported_with_its_place(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batches = [batch(0), batch(1), batch(2)]
    partition = write_log(tmp_path / "logs", "orders-0", {0: batches})
    file = partition / f"{0:020d}.log"
    content = bytearray(file.read_bytes())
    content[len(batches[0]) + 62] ^= 1
    file.write_bytes(content)
    output = tmp_path / "tables"
    assert run_state(tmp_path / "logs", output=output) == ExitCode.UNREADABLE_INPUT
    assert f"error: {file}: position {len(batches[0])}" in capsys.readouterr().err
    assert not (output / "state").exists()
