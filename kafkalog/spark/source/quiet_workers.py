"""Python workers that end without a traceback when Spark has closed their connection."""

from __future__ import annotations

import sys
import traceback
from types import SimpleNamespace

from pyspark import daemon


def _print_others() -> None:
    """Print the error that is being handled, but for that of a closed connection."""
    if not isinstance(sys.exception(), BrokenPipeError):
        traceback.print_exc()


# What Spark's daemon uses of the module, where a worker ends by an error.
QUIET_TRACEBACK = SimpleNamespace(print_exc=_print_others, format_exc=traceback.format_exc)


def quieten_planner() -> None:
    """Make the calling worker end quietly too if Spark's own daemon started it: Spark uses no other
    daemon for planning, and closes the connection of workers that it no longer needs; Spark 4.1
    does so after the first task."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == daemon.__name__:
        # The daemon's loop, which calls the worker, looks for this name when that fails.
        vars(main)["traceback"] = QUIET_TRACEBACK
