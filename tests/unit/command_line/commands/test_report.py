"""`kafkalog report`, as far as it comes without Java."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.report import main
from kafkalog.command_line.commands import report
from kafkalog.command_line.main import kafkalog
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.files.output_files import refuse_unwritable
from tests.support.jobs.job_runs import DAMAGED


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments that the job was started with, each time; it does nothing else."""
    calls: list[list[str]] = []

    def start(name: str, arguments: list[str]) -> int:
        calls.append([name, *arguments])
        return ExitCode.DONE

    monkeypatch.setattr(report, "run_job_file", start)
    return calls


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(report.report, arguments, standalone_mode=False)
    code: int = result.return_value
    return code, result.stderr


def test_without_java_it_says_what_to_install(
    started: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    code, said = run("/logs")
    assert code == ExitCode.UNREADABLE_INPUT
    assert "apt-get install openjdk-17-jre-headless" in said
    assert said.count("\n") == 1
    assert started == []


def test_java_is_looked_for_where_spark_does(
    started: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert run("/logs", "/more", "--as-of", "1700000000", "--show-keys")[0] == ExitCode.DONE
    # Not as a number, about which the job would warn once more.
    as_of = ["--as-of", "1970-01-20T16:13:20.000Z"]
    given = [*as_of, "--output-dir", ".", "--show-keys", "--", "/logs", "/more"]
    assert started == [["report", *given]]


def test_an_argument_that_is_none_is_reported_with_the_usage_of_what_was_typed(
    started: list[list[str]],
) -> None:
    result = CliRunner().invoke(kafkalog, ["report", "/logs", "--as-of", "nonsense"])
    assert result.exit_code == ExitCode.WRONG_ARGUMENTS
    assert "Usage: kafkalog report " in result.stderr
    assert "'--as-of': 'nonsense' is not a time: milliseconds since 1970" in result.stderr
    assert started == []


@pytest.mark.parametrize("below", ["", "below/this"])
def test_an_output_that_is_a_file_is_refused_before_spark_starts(
    below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("kept")
    output = tmp_path / "file" / below
    assert main([str(DAMAGED), "--output-dir", str(output)]) == ExitCode.WRONG_ARGUMENTS
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(f"a directory, or a path for one: {tmp_path / 'file'} is a file")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["kept"]


def test_an_output_without_write_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write anywhere but on a disk that is mounted for reading.
    monkeypatch.setattr("os.access", lambda path, mode: path != str(tmp_path))
    with pytest.raises(OptionError, match=f"unlike {tmp_path}"):
        refuse_unwritable("--output-dir", str(tmp_path / "new" / "below"))
