"""Python workers that end without a traceback when Spark has closed their connection."""

from __future__ import annotations

import socket
import sys

from pyspark import daemon

_worker = daemon.worker


def quiet_worker(sock: socket.socket, authenticated: bool) -> int:
    """Run Spark's worker; end quietly if Spark closes the connection."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


def quieten_planner() -> None:
    """Make the calling worker end quietly too if Spark's own daemon started it: Spark uses no other
    daemon for planning, and ends workers that were idle for a minute."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == daemon.__name__:
        # The daemon's loop looks for this name before each task.
        vars(main)["worker"] = quiet_worker
