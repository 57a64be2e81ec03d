"""The job that writes the page about a cluster: it reads by tasks what the command reads by
processes."""

from dataclasses import asdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.report import main
from kafkalog.report.contents import ReportMoment
from kafkalog.report.reading.report_reading import ReportRequest, read_report
from kafkalog.spark.jobs.job import ExitCode
from kafkalog.spark.jobs.spark_views import SparkViews
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.views.engine import LocalViews
from tests.support.jobs.job_runs import DAMAGED
from tests.support.repository import EXAMPLES

AT_MS = 1_800_000_000_000


def test_the_page_about_a_damaged_disk(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(DAMAGED), "--output-dir", str(tmp_path / "new"), "--fail-on-findings"]
    assert main(arguments) == ExitCode.FINDINGS
    said = capsys.readouterr().out.splitlines()
    size = sum(path.stat().st_size for path in DAMAGED.glob("*/*.log"))
    assert said[2] == f"3 damaged ranges in e.w-0, 9.3 KiB of {size / 1024:.0f} KiB"
    assert said[-1] == f"report: {tmp_path / 'new' / 'report.html'}"


@pytest.mark.deep
@pytest.mark.parametrize("name", ["shop-week", "log-dirs/kafka-4.4", "log-dirs/damaged"])
def test_tasks_read_what_processes_of_the_command_read(spark: SparkSession, name: str) -> None:
    paths = [str(EXAMPLES.parent / name)]
    logs = find_partitions(paths, strict=False)
    views = SparkViews(spark, paths, logs, {"mode": "PERMISSIVE"})
    # Hashes of keys have another secret each time.
    request = ReportRequest(paths, logs, ReportMoment(AT_MS, is_now=True), shows_keys=True)
    by_tasks = read_report(views, request)
    by_processes = read_report(LocalViews(paths, logs, 2), request)
    assert asdict(by_tasks) == asdict(by_processes)
