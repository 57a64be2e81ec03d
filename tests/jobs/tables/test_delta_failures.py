"""Delta tables of every fixture, and those of runs that fail.

Rule: F530. Processes that are killed: test_ingest_survives_kills.py.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.lake.export_plan import ExportPlan
from kafkalog.lake.layout import TableLayout
from kafkalog.lake.written_file import WrittenFile
from kafkalog.spark.jobs.job import ExitCode
from kafkalog.spark.lake import spark_export
from kafkalog.spark.lake.delta_manifest import DeltaManifest
from kafkalog.spark.lake.delta_table import DeltaTarget
from kafkalog.spark.lake.task_files import written_by_tasks
from tests.support.golden.exported_topics import COLUMNS, check_exported_topics
from tests.support.golden.fixture_sets import CONSUMERS
from tests.support.jobs.ingest_runs import ingested, run_ingest
from tests.support.jobs.job_runs import needs_delta
from tests.support.lake.growing_topic import GrowingTopic
from tests.support.repository import Unpack

pytestmark = [pytest.mark.deep, needs_delta]


@pytest.mark.parametrize("name", CONSUMERS)
def test_a_delta_table_has_the_records_that_a_consumer_received(
    name: str, spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    path = str(tmp_path / "ingested_records")
    manifest = DeltaManifest(spark, str(tmp_path / "ingest_manifest"))
    target = DeltaTarget(spark, path, manifest, TableLayout())
    frame = spark.read.format("delta")
    check_exported_topics(
        name, unpacked, target, lambda: frame.load(path).select("topic", *COLUMNS).toArrow()
    )


class Table:
    """A table in a file system of its own, and the topic that is exported to it."""

    def __init__(self, spark: SparkSession, folder: Path, output: Path) -> None:
        self.logs, self.output = folder / "logs", output
        self._spark = spark
        self._topic = GrowingTopic(self.logs)
        self.send = self._topic.send

    def ingest(self) -> int:
        return run_ingest(self.logs, output=self.output)

    def rows(self) -> list[tuple[int, int]]:
        return [(row["partition"], row["offset"]) for row in ingested(self._spark, self.output)]

    def files(self) -> set[Path]:
        """All files of data and all commits."""
        found = (self.output / "ingested_records").rglob("*")
        return {path for path in found if path.suffix in (".parquet", ".json")}

    def is_complete(self) -> bool:
        return self.rows() == self._topic.offsets()


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[Table]:
    """A table of 3 records a partition, in a file system of 4 MiB. Skips where none can be
    mounted."""
    output = tmp_path / "tables"
    output.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"only root can mount a file system: {done.stderr}")
    made = Table(spark, tmp_path, output)
    try:
        made.send(3)
        assert made.ingest() == ExitCode.DONE
        yield made
    finally:
        subprocess.run(["umount", "--lazy", str(output)], check=True)


def test_a_full_disk_is_an_error_that_leaves_the_table_as_it_was(
    table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    before, files = table.rows(), table.files()
    table.send(6, 1_000_000)
    assert table.ingest() == ExitCode.UNREADABLE_INPUT
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert str(table.output) in said
    assert (table.rows(), table.files()) == (before, files)
    subprocess.run(["mount", "-o", "remount,size=64m", str(table.output)], check=True)
    assert table.ingest() == ExitCode.DONE
    assert table.is_complete()


def test_a_segment_that_vanishes_is_an_error_that_leaves_the_table_as_it_was(
    table: Table, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, files = table.rows(), table.files()
    table.send(4)
    segment = table.logs / "orders-1" / "00000000000000000000.log"
    kept = table.logs.parent / "vanished"
    usual = written_by_tasks

    def after_it_vanished(spark: SparkSession, plan: ExportPlan) -> list[WrittenFile]:
        segment.rename(kept)
        return usual(spark, plan)

    with monkeypatch.context() as patched:
        patched.setattr(spark_export, "written_by_tasks", after_it_vanished)
        assert table.ingest() == ExitCode.UNREADABLE_INPUT
    assert str(segment) in capsys.readouterr().err
    assert (table.rows(), table.files()) == (before, files)
    kept.rename(segment)
    assert table.ingest() == ExitCode.DONE
    assert table.is_complete()
