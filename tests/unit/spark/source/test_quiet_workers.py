"""A worker whose connection Spark has closed ends without a word, and jobs use that daemon."""

import socket
import subprocess
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from kafkalog.spark.source import quiet_workers


def test_a_broken_pipe_ends_a_worker_and_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[type[OSError]] = [BrokenPipeError, ConnectionResetError]

    def worker(sock: socket.socket, authenticated: bool) -> int:
        raise raised.pop(0)

    monkeypatch.setattr(quiet_workers, "_worker", worker)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert quiet_workers.quiet_worker(ours, authenticated=True) == 1
        with pytest.raises(ConnectionResetError):
            quiet_workers.quiet_worker(ours, authenticated=True)


@pytest.mark.parametrize(("started", "is_quiet"), [("pyspark.daemon", True), ("pytest", False)])
def test_a_worker_of_spark_s_daemon_is_made_quiet_and_no_other(
    started: str, is_quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec(started, None)
    vars(main)["worker"] = "theirs"
    monkeypatch.setitem(sys.modules, "__main__", main)
    quiet_workers.quieten_planner()
    assert vars(main)["worker"] == (quiet_workers.quiet_worker if is_quiet else "theirs")


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
