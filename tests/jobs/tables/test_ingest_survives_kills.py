"""The ingest killed from outside, then run again: every record once, as a real consumer received
it. Rule: F530."""

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.golden.answered_offsets import printed_offsets
from tests.support.jobs.ingest_runs import (
    by_topic,
    ingested,
    manifest,
    options_of,
    printed_ends,
    received,
    run_ingest,
)
from tests.support.jobs.job_runs import needs_delta
from tests.support.jobs.killed_jobs import Moment, killed_at, session_started
from tests.support.repository import Unpack

pytestmark = [pytest.mark.deep, needs_delta]


def _file_begun(work: Path) -> Iterator[Path]:
    return (work / "tables" / "ingested_records").glob("*.parquet")


def _file_complete(work: Path) -> Iterator[Path]:
    return (path for path in _file_begun(work) if path.read_bytes().endswith(b"PAR1"))


def _rows_committed(work: Path) -> Iterator[Path]:
    return (work / "tables" / "ingested_records" / "_delta_log").glob("*[0-9].json")


def _manifest_begun(work: Path) -> Iterator[Path]:
    return (work / "tables" / "ingest_manifest").glob("*.parquet")


def _manifest_committed(work: Path) -> Iterator[Path]:
    return (work / "tables" / "ingest_manifest" / "_delta_log").glob("*[0-9].json")


MOMENTS: dict[str, Moment] = {
    "before planning ends": session_started,
    "while records are read": _file_begun,
    "when a file is complete": _file_complete,
    "when rows are committed": _rows_committed,
    "while the manifest is written": _manifest_begun,
    "before the hand-over is written": _manifest_committed,
}


@pytest.fixture(scope="module")
def half(spark: SparkSession, unpacked: Unpack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of the first half of each partition."""
    golden = unpacked("kafka44.golden")
    starts, ends = printed_offsets(golden, -2), printed_ends(golden)
    middle = {name: (starts[name] + end + 1) // 2 for name, end in ends.items()}
    output = tmp_path_factory.mktemp("half")
    asked = options_of(None, middle)
    assert run_ingest(unpacked("kafka44.logs") / "log-dirs", output=output, arguments=asked) == 0
    return output


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_after_a_killed_one_ends_with_every_record_once(
    moment: str, half: Path, spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    logs, golden = unpacked("kafka44.logs") / "log-dirs", unpacked("kafka44.golden")
    shutil.copytree(half, tmp_path / "tables")
    told = tmp_path / "starting_offsets.json"
    asked = f"--starting-offsets-out {told}"
    before, everything = ingested(spark, half), received(golden)
    code = killed_at(MOMENTS[moment], "ingest_topics", logs, tmp_path, asked.split())
    assert code == -signal.SIGKILL, (tmp_path / "said").read_text()[-2000:]
    # Readers see all of a run or nothing, and no hand-over that is ahead of the table.
    assert ingested(spark, tmp_path / "tables") in (before, everything)
    assert not told.exists()
    assert run_ingest(logs, output=tmp_path / "tables", arguments=asked) == 0
    assert ingested(spark, tmp_path / "tables") == everything
    rows = manifest(spark, tmp_path / "tables")
    assert sum(row["rows"] for row in rows) == len(everything)
    assert json.loads(told.read_text()) == json.loads(by_topic(printed_ends(golden)))
