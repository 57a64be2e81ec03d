"""Errors of a read before Spark starts it: the error itself, not a page of Spark's traces
with the error in its middle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql.utils import is_remote as is_spark_connect

from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.spark.source.projection import view_schema
from kafkalog.storage.files.uris import is_remote
from kafkalog.views.options.options import START_VIEWS, read_options
from kafkalog.views.planning.planning import chosen_logs


def refuse_early(paths: Sequence[str], given: Mapping[str, str]) -> None:
    """Raise what options and names of files show: OptionError, LogDirError.

    Paths are looked at where the driver has them and that takes little: not with Spark Connect,
    whose server reads, and not in object stores. What is let through here the read itself finds.
    """
    options = read_options({**given, "paths": json.dumps(list(paths))})
    view_schema(options)
    if not is_spark_connect() and not any(map(is_remote, paths)):
        is_start = options.view in START_VIEWS
        chosen_logs(options, find_logs(options.paths, strict=False, with_doubles=is_start))
