"""What `kafkalog report` refuses. Its numbers are tested on files of brokers."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.files.output_files import refuse_unwritable
from tests.support.jobs.job_runs import DAMAGED
from tests.support.repository import EXAMPLES


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(kafkalog, ["report", *map(str, arguments)])
    return result.exit_code, result.stderr


def test_an_argument_that_is_none_is_reported_with_the_command_that_was_typed() -> None:
    code, said = run("/logs", "--as-of", "nonsense")
    assert code == ExitCode.WRONG_ARGUMENTS
    assert said.startswith("error: --as-of: 'nonsense' is not a time: milliseconds since 1970")
    assert said.endswith(" (see kafkalog report --help)\n")


@pytest.mark.parametrize("below", ["", "below/this"])
def test_an_output_that_is_a_file_is_refused(below: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    code, said = run(DAMAGED, "--output-dir", tmp_path / "file" / below)
    assert code == ExitCode.WRONG_ARGUMENTS
    assert f"a directory, or a path for one: {tmp_path / 'file'} is a file" in said
    assert [path.read_text() for path in tmp_path.iterdir()] == ["kept"]


def test_an_output_without_write_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write anywhere but on a disk that is mounted for reading.
    monkeypatch.setattr("os.access", lambda path, mode: path != str(tmp_path))
    with pytest.raises(OptionError, match=f"unlike {tmp_path}"):
        refuse_unwritable("--output-dir", str(tmp_path / "new" / "below"))


def test_the_page_is_not_written_into_what_is_read_and_is_about_one_cluster(tmp_path: Path) -> None:
    code, said = run(DAMAGED, "--output-dir", DAMAGED / "e.w-0")
    assert (code, "--output-dir" in said) == (ExitCode.WRONG_ARGUMENTS, True)
    code, said = run(DAMAGED, EXAMPLES / "kafka-4.4", "--output-dir", tmp_path)
    assert code == ExitCode.WRONG_ARGUMENTS
    assert "expected log directories of one cluster" in said
    assert run(tmp_path / "none", "--output-dir", tmp_path)[0] == ExitCode.UNREADABLE_INPUT
    assert list(tmp_path.iterdir()) == []
