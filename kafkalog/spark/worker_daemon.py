"""Spark's daemon of Python workers, for sessions that talk to it by Unix sockets.

Spark closes the connection of a worker that it needs no more, and a worker that is about to say
goodbye then finds a broken pipe. By TCP nobody notices; by Unix sockets Spark's own daemon writes a
traceback to the terminal after work that went well (docs/decisions/0006-unix-sockets.md).
"""

from __future__ import annotations

import socket
import sys

from pyspark import daemon

_worker = daemon.worker


def _quiet_worker(sock: socket.socket, authenticated: bool) -> int:
    """Spark's own; a worker that nobody listens to any more ends without a word."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


def quieten_planner() -> None:
    """Have the worker that calls this end without a word too, where Spark's own daemon started it:
    for planning Spark takes no other, and ends workers that had nothing to do for a minute."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == daemon.__name__:
        # The daemon's loop looks for this name before each task.
        vars(main)["worker"] = _quiet_worker


if __name__ == "__main__":
    daemon.worker = _quiet_worker
    daemon.manager()
