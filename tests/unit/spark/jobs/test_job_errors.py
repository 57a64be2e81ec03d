"""How jobs end: exit codes, and errors as one line on the terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from kafkalog.errors import (
    CorruptDataError,
    DataLossError,
    KafkaLogError,
    LogDirError,
    OptionError,
    OutOfMemoryError,
    SchemaError,
    UnsupportedFormatError,
)
from kafkalog.spark.jobs.job import ExitCode, run_job


def running(outcome: ExitCode | Exception) -> Callable[[], ExitCode]:
    """A job's body that ends as told."""

    def run() -> ExitCode:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return run


@pytest.mark.parametrize("code", ExitCode)
def test_a_job_exits_as_its_body_says(code: ExitCode, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_job(running(code)) == code.value
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OptionError("mode", "LAX", ("FAILFAST",)), 2),
        (KafkaLogError("damaged"), 3),
        (LogDirError("nowhere: there is no such file"), 3),
        (CorruptDataError("checksum", "bad", position=5, path="a.log"), 3),
        (UnsupportedFormatError("too new"), 3),
        (SchemaError("column offset"), 3),
        (DataLossError("offset 5"), 3),
        (FileNotFoundError(2, "No such file or directory", "a.log"), 3),
        (PermissionError(13, "Permission denied", "a.log"), 3),
    ],
)
def test_an_error_that_a_user_can_mend_is_one_line_and_an_exit_code(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_job(running(error)) == code
    assert capsys.readouterr() == ("", f"error: {error}\n")


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError("a bug"), TypeError("a bug")])
def test_a_mistake_of_the_program_is_not_hidden(error: Exception) -> None:
    with pytest.raises(type(error), match="a bug"):
        run_job(running(error))


def worker_error(last_line: str) -> PySparkException:
    """What Spark makes of an error in a Python worker."""
    return PySparkException(
        "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
        "Traceback (most recent call last):\n"
        '  File "kafkalog/views/reading/reading.py", line 50, in read_segment\n'
        "    report_data_loss(message)\n"
        f"{last_line}\n"
    )


def test_of_an_error_in_a_worker_only_its_own_words_are_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = "logs/a-0/00000000000000000000.log: position 17: checksum: 0x1 is not 0x2"
    error = worker_error(f"kafkalog.errors.CorruptDataError: {words}")
    assert run_job(running(error)) == 3
    assert capsys.readouterr().err == f"error: {words}\n"


def test_of_several_errors_in_workers_the_last_is_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = worker_error(
        "kafkalog.errors.CorruptDataError: position 17: checksum\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "kafkalog.errors.LogDirError: logs: line 1: version '1'"
    )
    assert run_job(running(error)) == 3
    assert capsys.readouterr().err == "error: logs: line 1: version '1'\n"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        worker_error("MemoryError"),
        worker_error("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 16.0 GiB"),
        worker_error("pyarrow.lib.ArrowMemoryError: malloc of size 17179869184 failed"),
    ],
    ids=lambda error: str(error)[-50:],
)
def test_a_job_that_runs_out_of_memory_says_what_to_do(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_job(running(error)) == ExitCode.UNREADABLE_INPUT
    assert capsys.readouterr().err == f"error: {OutOfMemoryError()}\n"


def test_what_spark_itself_says_is_reported_whole(capsys: pytest.CaptureFixture[str]) -> None:
    error = PySparkException("[PATH_NOT_FOUND] Path does not exist: tables")
    assert run_job(running(error)) == 3
    assert capsys.readouterr().err == "error: [PATH_NOT_FOUND] Path does not exist: tables\n"


class JavaException:
    """An exception of the JVM, as far as a message needs it: py4j has no way to make one."""

    _target_id = "o7"
    _gateway_client = None

    def __str__(self) -> str:
        return "org.apache.spark.SparkException: [TASK_WRITE_FAILED] disk full\n\tat A.b(A.java:7)"


def test_of_an_error_in_the_jvm_only_its_first_line_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # It does not count as a finding either: a traceback ends with 1, as jobs with findings do.
    monkeypatch.setattr(Py4JJavaError, "__str__", lambda error: f"called o7: {JavaException()}")
    error = Py4JJavaError("An error occurred while calling o1.collect.", JavaException())
    assert run_job(running(error)) == ExitCode.UNREADABLE_INPUT
    told = "error: org.apache.spark.SparkException: [TASK_WRITE_FAILED] disk full\n"
    assert capsys.readouterr().err == told


class Thrown(JavaException):
    """One with a cause."""

    def __init__(self, message: str | None, cause: Thrown | None = None) -> None:
        self._message, self._cause = message, cause

    def getMessage(self) -> str | None:
        return self._message

    def getCause(self) -> Thrown | None:
        return self._cause


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (Thrown("No space left on device\n\tat A.b"), "disk full: No space left on device"),
        (Thrown("disk full"), "disk full"),
        (Thrown(None), "disk full"),
        (None, "disk full"),
    ],
    ids=["another", "the same", "without words", "none"],
)
def test_the_first_cause_of_an_error_in_the_jvm_is_reported(
    cause: Thrown | None,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Py4JJavaError, "__str__", lambda error: "called o7")
    error = Py4JJavaError("An error occurred.", Thrown("", Thrown("by the way", cause)))
    if cause is None:
        error = Py4JJavaError("An error occurred.", Thrown(""))
    assert run_job(running(error)) == ExitCode.UNREADABLE_INPUT
    said = "error: org.apache.spark.SparkException: [TASK_WRITE_FAILED] "
    assert capsys.readouterr().err == f"{said}{told}\n"


def test_of_what_else_a_worker_raises_the_last_line_is_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = worker_error("PermissionError: [Errno 13] Permission denied: 'logs/a-0'")
    assert run_job(running(error)) == ExitCode.UNREADABLE_INPUT
    told = "error: PermissionError: [Errno 13] Permission denied: 'logs/a-0'\n"
    assert capsys.readouterr().err == told


def test_a_jvm_that_has_ended_is_an_error_of_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    error = Py4JNetworkError("Answer from Java side is empty")
    assert run_job(running(error)) == ExitCode.UNREADABLE_INPUT
    said = capsys.readouterr().err
    assert said.startswith("error: Spark's JVM has ended (Answer from Java side is empty)")
    assert said.count("\n") == 1


def test_wrong_options_found_in_a_worker_are_wrong_arguments() -> None:
    error = worker_error("kafkalog.errors.OptionError: assign: 'a-7' is not valid, expected a-0")
    assert run_job(running(error)) == ExitCode.WRONG_ARGUMENTS
