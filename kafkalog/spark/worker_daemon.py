"""Spark's daemon of Python workers, for sessions that talk to it by Unix sockets.

Spark closes the connection of a worker that it no longer needs, and the worker's last write then
fails with a broken pipe. Over TCP that is silent; over Unix sockets Spark's own daemon writes a
traceback to the terminal after work that succeeded (docs/decisions/0006-unix-sockets.md).
"""

from __future__ import annotations

from pyspark import daemon

from kafkalog.spark.source.quiet_workers import quiet_worker

if __name__ == "__main__":
    daemon.worker = quiet_worker
    daemon.manager()
