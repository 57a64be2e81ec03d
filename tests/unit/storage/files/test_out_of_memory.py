"""Where memory runs out, a command says so in one line with the file, whatever ran out of it."""

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.errors import OutOfMemoryError
from kafkalog.exit_codes import ExitCode
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.storage.files import local_files
from kafkalog.storage.files.files import InputFile, read_bytes
from kafkalog.views import parallel
from kafkalog.views.parallel import in_order


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    path = directory / f"{0:020d}.log"
    path.write_bytes(write_batch([Record(0, 0, 0, None, b"value")]))
    return path


def no_memory(*_: object) -> bytes:
    raise pa.ArrowMemoryError("malloc of size 17179869184 failed")


def ran(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(kafkalog, [str(argument) for argument in arguments])
    return result.exit_code, result.stderr


@pytest.mark.parametrize(
    "command", [("dump", "--deep"), ("check",), ("find", "--topic", "orders", "--key", "a")]
)
def test_a_command_ends_with_one_line_that_names_the_file(
    command: tuple[str, ...], segment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_files.LocalFile, "read_into", no_memory)
    code, said = ran(*command, "--processes", "1", segment.parent)
    assert code == ExitCode.UNREADABLE_INPUT
    assert said.startswith(f"error: {segment} needs more memory than there is: ")
    assert said.count("\n") == 1


def test_a_small_file_that_memory_cannot_hold_is_named(
    segment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_files, "read_bytes", no_memory)
    with pytest.raises(OutOfMemoryError, match=str(segment)):
        read_bytes(str(segment))


def test_what_runs_out_elsewhere_is_one_line_too(
    segment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkalog.command_line.dump.run.planned", no_memory)
    code, said = ran("dump", segment)
    assert (code, said.count("\n")) == (ExitCode.UNREADABLE_INPUT, 1)
    assert said.startswith("error: reading needs more memory than there is")


def test_an_error_in_a_file_keeps_its_own_words(segment: Path) -> None:
    with pytest.raises(ValueError, match="other"), InputFile(str(segment)):
        raise ValueError("other")


@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_a_process_that_runs_out_of_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "has_connections", lambda: False)
    with pytest.raises(OutOfMemoryError, match="reading needs more memory"):
        list(in_order(lambda _: map(no_memory, "a"), range(3), processes=2))
