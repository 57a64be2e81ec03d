"""`kafkalog job`: which jobs there are, and that each is run as itself."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog import OptionError, run_job
from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.job_files import job_titles
from tests.support.repository import ROOT

JOBS = sorted(path.stem.replace("_", "-") for path in (ROOT / "jobs").glob("*.py"))


def test_every_job_is_listed_with_a_line_of_its_own() -> None:
    assert list(job_titles()) == JOBS
    assert all(title.endswith(".") and len(title) < 100 for title in job_titles().values())


def test_help_lists_them() -> None:
    names = CliRunner().invoke(kafkalog, ["job", "--help"]).output
    assert [name for name in JOBS if name not in names] == []
    titles = CliRunner().invoke(kafkalog, ["job", "--help-all"]).output
    assert [name for name in JOBS if f"  {name} " not in titles] == []


@pytest.mark.parametrize("name", JOBS)
def test_each_says_how_it_was_started(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [])
    result = CliRunner().invoke(kafkalog, ["job", name, "--help"])
    assert result.exit_code == ExitCode.DONE
    assert result.output.startswith(f"Usage: kafkalog job {name} ")
    assert "python jobs/" not in result.output


def test_what_is_for_spark_submit_is_the_jobs_own_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalog.submit_arguments.submitted_version", lambda: None)
    said = CliRunner().invoke(kafkalog, ["job", "--spark-submit", "salvage", "A", "--b"]).output
    option, settings, conf, logging, path, *arguments = said.split()
    assert (option, Path(settings)) == ("--properties-file", ROOT / "conf" / "spark-defaults.conf")
    of_log4j = f"-Dlog4j2.configurationFile={ROOT / 'conf' / 'log4j2.properties'}"
    assert (conf, logging) == ("--conf", f"spark.driver.defaultJavaOptions={of_log4j}")
    assert Path(path) == ROOT / "jobs" / "salvage.py"
    assert arguments == ["A", "--b"]


def test_a_program_runs_a_job_and_keeps_its_own_arguments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = list(sys.argv)
    assert run_job("salvage", "--help") == ExitCode.DONE
    assert capsys.readouterr().out.startswith("Usage: kafkalog job salvage ")
    assert run_job("salvage") == ExitCode.WRONG_ARGUMENTS
    assert sys.argv == before


def test_a_job_that_does_not_exist_is_an_error_that_names_the_others() -> None:
    said = r"'salvages' is not valid, expected a job: did you mean salvage\? There are audit-"
    with pytest.raises(OptionError, match=said):
        run_job("salvages")
    result = CliRunner().invoke(kafkalog, ["job", "salvages"])
    assert result.exit_code == ExitCode.WRONG_ARGUMENTS
    assert "did you mean salvage?" in result.stderr


def test_a_job_has_its_name_with_dashes_and_with_underscores(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_job("ingest_topics", "--help") == ExitCode.DONE
    assert capsys.readouterr().out.startswith("Usage: kafkalog job ingest-topics ")
    for name in ("ingest_topics", "ingest-topics"):
        result = CliRunner().invoke(kafkalog, ["job", name, "--help"])
        assert result.output.startswith("Usage: kafkalog job ingest-topics ")
