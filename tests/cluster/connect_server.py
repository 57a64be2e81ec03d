"""Spark's Connect server on loopback, ended by its process id."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

from tests.support.broker.java_tools import end
from tests.support.standalone_cluster import HOST, SPARK_HOME, ClusterError, environment_of_spark

_START_SECONDS = 120
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer:
    """A context manager; `python` is what the server's own tasks run with."""

    def __init__(self, work_dir: Path, port: int, python: Path) -> None:
        self.remote = f"sc://{HOST}:{port}"
        self._work_dir = work_dir
        self._port = port
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ConnectServer:
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.sql.shuffle.partitions": "2",
        }
        pairs = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]", *pairs]
        with (self._work_dir / "connect.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--class", _CLASS, "spark-internal"],
                cwd=self._work_dir,
                env={**environment_of_spark(), "PYSPARK_PYTHON": str(self._python)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait(self._process)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            try:
                socket.create_connection((HOST, self._port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.2)
        said = (self._work_dir / "connect.log").read_text()[-3000:]
        raise ClusterError(f"no Connect server:\n{said}")

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        end(process)
