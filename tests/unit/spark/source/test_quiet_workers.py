"""A worker whose connection Spark has closed ends without a word, and jobs use that daemon."""

import subprocess
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from kafkalog.spark.source import quiet_workers


@pytest.mark.parametrize(
    ("error", "told"), [(BrokenPipeError, ""), (ConnectionResetError, "ConnectionResetError")]
)
def test_a_broken_pipe_is_not_told_and_everything_else_is(
    error: type[OSError], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # As Spark's daemon handles what ends a worker.
    try:
        raise error
    except OSError:
        quiet_workers.QUIET_TRACEBACK.print_exc()
    said = capsys.readouterr().err
    assert told in said and bool(said) == bool(told)


@pytest.mark.parametrize(("started", "is_quiet"), [("pyspark.daemon", True), ("pytest", False)])
def test_a_worker_of_spark_s_daemon_is_made_quiet_and_no_other(
    started: str, is_quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec(started, None)
    vars(main)["traceback"] = "theirs"
    monkeypatch.setitem(sys.modules, "__main__", main)
    quiet_workers.quieten_planner()
    assert vars(main)["traceback"] == (quiet_workers.QUIET_TRACEBACK if is_quiet else "theirs")


def test_what_is_started_is_spark_s_daemon() -> None:
    # It ends, as Spark's does, when its standard input is closed.
    done = subprocess.run(
        [sys.executable, "-m", "kafkalog.spark.worker_daemon", "pyspark.worker"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert len(done.stdout) == 4  # the port, an int
    assert done.stderr == b""
