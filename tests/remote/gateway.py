"""Versity's gateway: a real S3-compatible server on loopback that serves a folder.

Built by Go once per version and kept in the user's cache.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

from tests.support.free_ports import free_ports

_MODULE = "github.com/versity/versitygw/cmd/versitygw"
_VERSION = "v1.8.0"
_BUILD_TIMEOUT_SECONDS = 840
_START_TIMEOUT_SECONDS = 20
_STOP_TIMEOUT_SECONDS = 10
_SHOWN_CHARACTERS = 2000
ACCESS_KEY = "kafkalog-tests"
SECRET_KEY = "a-secret-of-the-tests"


class GatewayError(RuntimeError):
    """A gateway that could not be built or did not start, and why."""


def why_no_gateway() -> str:
    """Why there can be no gateway on this machine; nothing if there can."""
    return "" if _program().exists() or shutil.which("go") else "not on the PATH: go"


def _program() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "kafkalog" / f"versitygw-{_VERSION}" / "versitygw"


def gateway_program() -> Path:
    """The program, built if it is not there yet, which takes minutes. Raises GatewayError."""
    program = _program()
    if program.exists():
        return program
    scratch = program.parent / f"build-{os.getpid()}"
    scratch.mkdir(parents=True)
    try:
        done = subprocess.run(
            ["go", "install", f"{_MODULE}@{_VERSION}"],
            env={**os.environ, "GOBIN": str(scratch)},
            capture_output=True,
            text=True,
            timeout=_BUILD_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode:
            raise GatewayError(f"go could not build {_MODULE}:\n{done.stderr[-_SHOWN_CHARACTERS:]}")
        # Another run may be at it too: the program appears whole or not at all.
        (scratch / "versitygw").replace(program)
    finally:
        shutil.rmtree(scratch)
    return program


class Gateway:
    """A running gateway; a context manager. Each folder in `root` is a bucket."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = 0
        self._log = root.with_name(f"{root.name}.gateway.log")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Gateway:
        program = gateway_program()
        (self.port,) = free_ports(1)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [program, "--port", f"127.0.0.1:{self.port}", "posix", self.root],
                env={**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait_until_it_serves(self._process)
        return self

    def _wait_until_it_serves(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        self.__exit__(None, None, None)
        raise GatewayError(f"the gateway does not serve:\n{self._log.read_text()}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_STOP_TIMEOUT_SECONDS)
