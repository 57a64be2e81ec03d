"""A server in a process of its own, for as long as a test needs it."""

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_POLL_SECONDS = 0.05
_STOP_TIMEOUT_SECONDS = 10


class ServerError(RuntimeError):
    """A server that did not start, and what it said."""


@contextmanager
def server_process(
    name: str,
    command: Sequence[str | Path],
    port: int,
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    start_seconds: int = 20,
) -> Iterator[None]:
    """Run a server that listens on a port of loopback, from when it does until the end of the
    block; what it says is in `log`. Raises ServerError where it does not start."""
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
    try:
        deadline = time.monotonic() + start_seconds
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServerError(f"{name} does not serve:\n{log.read_text()}")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_TIMEOUT_SECONDS)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
