"""Spark's daemon of Python workers, for sessions that talk to it by Unix sockets.

Spark closes the connection of a worker that it needs no more, and a worker that is about to say
goodbye then finds a broken pipe. By TCP nobody notices; by Unix sockets Spark's own daemon writes a
traceback to the terminal after work that went well (docs/decisions/0006-unix-sockets.md).
"""

from __future__ import annotations

import socket

from pyspark import daemon

_worker = daemon.worker


def _quiet_worker(sock: socket.socket, authenticated: bool) -> int:
    """Spark's own; a worker that nobody listens to any more ends without a word."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    daemon.worker = _quiet_worker
    daemon.manager()
