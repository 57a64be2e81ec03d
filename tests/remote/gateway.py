"""Versity's gateway: a real S3-compatible server on loopback that serves a folder.

Built by Go once per version and kept in the user's cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from tests.support.free_ports import free_ports
from tests.support.server_process import server_process

_MODULE = "github.com/versity/versitygw/cmd/versitygw"
_VERSION = "v1.8.0"
_BUILD_TIMEOUT_SECONDS = 840
_SHOWN_CHARACTERS = 2000
ACCESS_KEY = "kafkalog-tests"
SECRET_KEY = "a-secret-of-the-tests"


class GatewayError(RuntimeError):
    """A gateway that could not be built, and why."""


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
        (self.port,) = free_ports(1)
        self._running = ExitStack()

    def __enter__(self) -> Gateway:
        server = server_process(
            "the gateway",
            [gateway_program(), "--port", f"127.0.0.1:{self.port}", "posix", self.root],
            self.port,
            self.root.with_name(f"{self.root.name}.gateway.log"),
            environment={
                **os.environ,
                "ROOT_ACCESS_KEY": ACCESS_KEY,
                "ROOT_SECRET_KEY": SECRET_KEY,
            },
        )
        self._running.enter_context(server)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._running.close()
