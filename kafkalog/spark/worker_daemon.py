"""Spark's daemon of Python workers, for sessions that talk to it by Unix sockets.

Spark closes the connection of a worker that it no longer needs, and the worker's last write then
fails with a broken pipe. Over TCP that is silent; over Unix sockets Spark's own daemon writes a
traceback to the terminal after work that succeeded (docs/decisions/0006-unix-sockets.md).

It imports what nearly every task needs before it forks workers: they start at once, and share that
memory. What is there then, no garbage collection looks at again: a worker runs one after each task.
"""

from __future__ import annotations

import gc
from importlib import import_module

from pyspark import daemon

from kafkalog.spark.source.quiet_workers import QUIET_TRACEBACK

_NEEDED = ("kafkalog.spark.source.batch_reader", "kafkalog.lake.export_task")

if __name__ == "__main__":
    for module in _NEEDED:
        import_module(module)
    gc.freeze()
    vars(daemon)["traceback"] = QUIET_TRACEBACK
    daemon.manager()
