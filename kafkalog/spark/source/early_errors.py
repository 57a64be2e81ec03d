"""Errors of a read before Spark starts it: the error itself, not a page of Spark's traces
with the error in its middle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql.utils import is_remote as is_spark_connect

from kafkalog.spark.source.projection import view_schema
from kafkalog.storage.files.uris import is_remote
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import chosen_logs, logs_of_paths


def refuse_early(paths: Sequence[str], given: Mapping[str, str]) -> None:
    """Raise what options and names of files show: OptionError, LogDirError.

    Paths are looked at where the driver has them and that takes little: not with Spark Connect,
    whose server reads, and not in object stores. What is let through here the read itself finds.
    """
    options = read_options({**given, "paths": json.dumps(list(paths))})
    view_schema(options)
    if not is_spark_connect() and not any(map(is_remote, paths)):
        chosen_logs(options, logs_of_paths(options, strict=False))
