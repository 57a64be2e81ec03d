"""The state job killed from outside, then run again. Rule: F277."""

import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import needs_delta
from tests.support.jobs.killed_jobs import Moment, killed_at, session_started
from tests.support.jobs.state_runs import State, run_state, state_in
from tests.support.logs.growing_logs import GrowingLog, write_logs

pytestmark = needs_delta

ASKED = "--format delta --isolation-level read_committed"


def _rows_written(work: Path) -> Iterator[Path]:
    return (work / "tables" / "state").glob("*.parquet")


def _committed(work: Path) -> Iterator[Path]:
    return (work / "tables" / "state" / "_delta_log").glob("*[0-9].json")


def _partitions_written(work: Path) -> Iterator[Path]:
    return (work / "tables" / "state_partitions").glob("*.parquet")


# When the job is killed: as soon as there is one more of these.
MOMENTS: dict[str, Moment] = {
    "a session is there": session_started,
    "rows are written": _rows_written,
    "rows are committed": _committed,
    "partitions are written": _partitions_written,
}


@dataclass(frozen=True)
class Runs:
    """Logs, a table of their first half, and what is to come of it."""

    logs: Path
    tables: Path
    first: State
    last: State
    last_stable_offset: int


@pytest.fixture(scope="module")
def runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    place = tmp_path_factory.mktemp("runs")
    log = GrowingLog("orders", 0, 8)
    states = []
    for half in ("first", "last"):
        log.grow(20)
        write_logs(place / half, [log])
        assert run_state(place / half, output=place / f"{half} tables", arguments=ASKED) == 0
        states.append(state_in(spark, place / f"{half} tables", "delta"))
    assert states[1] == log.state("read_committed")
    stable = log.last_stable_offset
    return Runs(place / "last", place / "first tables", states[0], states[1], stable)


@pytest.mark.deep
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_after_a_killed_one_ends_with_the_table_of_reading_everything(
    moment: str, runs: Runs, spark: SparkSession, tmp_path: Path
) -> None:
    tables = tmp_path / "tables"
    shutil.copytree(runs.tables, tables)
    code = killed_at(MOMENTS[moment], "reconstruct_state", runs.logs, tmp_path, ASKED.split())
    assert code == -signal.SIGKILL, (tmp_path / "said").read_text()[-2000:]
    # Readers see the one state or the other, never half of one.
    assert state_in(spark, tables, "delta") in (runs.first, runs.last)

    assert run_state(runs.logs, output=tables, arguments=ASKED) == ExitCode.DONE
    assert state_in(spark, tables, "delta") == runs.last
    history = spark.sql(f"DESCRIBE HISTORY delta.`{tables / 'state'}`").collect()
    assert [row.operation for row in history] == ["MERGE", "WRITE"]
    (place,) = spark.read.format("delta").load(str(tables / "state_partitions")).collect()
    assert place.next_offset == runs.last_stable_offset
