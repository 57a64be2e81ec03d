"""Thin adapters to Spark: options, source, session, tables. No format knowledge."""

from __future__ import annotations

import sys
from importlib.util import find_spec

_NEEDED = ("crc32c", "numpy", "pyarrow")

_missing = [name for name in _NEEDED if find_spec(name) is None]
if _missing:
    # Spark imports this where it plans and in tasks: the last line of its traces.
    raise ImportError(
        f"Spark runs {sys.executable}, which lacks {', '.join(_missing)}: set PYSPARK_PYTHON to a "
        "Python with kafkalog and all that it requires"
    )
