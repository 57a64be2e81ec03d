"""Where jobs write: what each is given as --output, before Spark starts."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kafkalog.command_line.job import job_titles
from kafkalog.spark.job import ExitCode

JOBS = sorted(job_titles())
# What jobs need beside LOG_DIR and --output.
NEEDED = {"migrate_offsets": ["--zookeeper", "z"], "salvage": ["--salvage-to", "new"]}


def parsed(name: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Namespace:
    """What a job's body is given."""
    found: list[Namespace] = []

    def run(args: Namespace) -> ExitCode:
        found.append(args)
        return ExitCode.DONE

    job: Any = import_module(f"jobs.{name}")
    monkeypatch.setattr(job, "run", run)
    assert job.main(["logs", *NEEDED.get(name, []), *arguments]) == ExitCode.DONE
    return found[0]


def test_there_are_thirteen_jobs() -> None:
    assert len(JOBS) == 13


@pytest.mark.parametrize("name", JOBS)
def test_a_relative_output_is_one_of_the_current_directory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    args = parsed(name, monkeypatch, "--output", "lake/shop")
    assert args.output == str(tmp_path / "lake" / "shop")


@pytest.mark.parametrize("name", [name for name in JOBS if name != "report"])
@pytest.mark.parametrize("uri", ["s3a://bucket/lake", "hdfs://name/lake/", "file:///lake"])
def test_a_uri_is_left_to_spark(name: str, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parsed(name, monkeypatch, "--output", uri).output == uri


def test_the_page_is_written_to_this_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parsed("report", monkeypatch, "--output", "file:///lake").output == "/lake"
    with pytest.raises(SystemExit) as caught:
        parsed("report", monkeypatch, "--output", "s3a://bucket/lake")
    assert caught.value.code == ExitCode.WRONG_ARGUMENTS
    assert "s3a://bucket/lake is a URI: give a directory of this machine" in capsys.readouterr().err


def test_the_ingest_offers_no_format_that_it_refuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for table_format in ("parquet", "json"):
        with pytest.raises(SystemExit) as caught:
            parsed("ingest_topics", monkeypatch, "--output", "out", "--format", table_format)
        assert caught.value.code == ExitCode.WRONG_ARGUMENTS
    with pytest.raises(SystemExit):
        parsed("ingest_topics", monkeypatch, "--help")
    told = capsys.readouterr().out
    assert "--format {delta}" in told and "parquet" not in told
