"""`kafkalog.read`, `kafkalog.write` and `kafkalog.register`: DataFrames with Python values."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from weakref import WeakSet

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote as is_spark_connect

from kafkalog.errors import SchemaError, refuse_unknown_arguments
from kafkalog.spark.source.data_source import KafkaLogDataSource
from kafkalog.spark.source.projection import view_schema
from kafkalog.spark.source.zookeeper_source import ZookeeperDataSource
from kafkalog.spark_versions import check_version
from kafkalog.storage.files.uris import is_remote
from kafkalog.views.options.call_options import (
    OffsetsGiven,
    OptionValue,
    Paths,
    TimeValue,
    Topics,
    argument_names,
    named_in_python,
    option_texts,
    options_of_call,
    path_texts,
)
from kafkalog.views.options.option_names import options_named_as
from kafkalog.views.options.options import read_options
from kafkalog.views.options.write_options import WRITE_OPTION_NAMES, write_options
from kafkalog.views.planning.planning import chosen_logs, logs_of_paths

# What Spark runs without PYSPARK_PYTHON: the first on the PATH, whatever runs the program.
_SPARKS_OWN_CHOICE = "python3"
_WRITE_NAMES = named_in_python(
    name for name in WRITE_OPTION_NAMES if name not in ("path", "mergeSchema")
)
_DELTA_MERGES = "spark.databricks.delta.schema.autoMerge.enabled"
# Spark warns of a source that it found by itself and that is registered, each time.
_registered: WeakSet[SparkSession] = WeakSet()


def register_once(spark: SparkSession) -> None:
    """Register both formats with a session, if that has not been done here."""
    if spark not in _registered:
        register(spark)
        _registered.add(spark)


def register(spark: SparkSession) -> None:
    """Register `format("kafkalog")` and `format("zookeeper")` with a session that did not find them
    itself. On one machine the Python of this process plans and reads, unless PYSPARK_PYTHON
    names another."""
    check_version(spark.version)
    use_this_python(spark)
    for source in (KafkaLogDataSource, ZookeeperDataSource):
        try:
            spark.dataSource.register(source)
        except AnalysisException as error:
            # Spark 4.0 refuses where it has found the same source itself.
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise


def read(
    spark: SparkSession,
    path: Paths,
    *,
    columns: str | Sequence[str] | None = None,
    topics: Topics | None = None,
    offsets: OffsetsGiven | None = None,
    from_time: TimeValue | None = None,
    until_time: TimeValue | None = None,
    as_of: TimeValue | None = None,
    **options: OptionValue,
) -> DataFrame:
    """Return Kafka's log directories as a DataFrame, as `spark.read.format("kafkalog")` does, with
    Python values in place of JSON.

    `path` is a path or several. `topics` is a topic, several, or `{"orders": [0, 1]}` for certain
    partitions. `offsets` is a range, from and until, with the end not included and None for no
    bound: `(10, None)` for each of the partitions that `topics` names, or `{"orders": {0: (10,
    20)}}` for certain partitions. `from_time` and `until_time` bound the times of records, the end
    not included: datetimes with a time zone, milliseconds since 1970, or text such as
    "2026-11-21T12:00:00Z" or "-24h". `as_of` is the time of views such as `retention_plan`, in one
    of these forms. Any other keyword is an option of the source, such as `mode="PERMISSIVE"` or
    `isolation_level="read_committed"` (docs/options.md).

    Raises OptionError, and LogDirError for a path without Kafka's files; errors that depend on the
    files' contents are raised by Spark when it reads.
    """
    given = options_of_call(
        columns=columns,
        topics=topics,
        offsets=offsets,
        from_time=from_time,
        until_time=until_time,
        as_of=as_of,
        **options,
    )
    paths = path_texts(path)
    with options_named_as(argument_names()):
        refuse_early(paths, given)
    register_once(spark)
    return spark.read.format("kafkalog").options(**given).load(paths)


def write(
    frame: DataFrame, path: str | os.PathLike[str], **options: OptionValue | Mapping[str, str]
) -> None:
    """Write a DataFrame with the columns of Kafka's records, or a table that job ingest-topics or
    `kafkalog export` has written, to a log directory (docs/writing.md).

    Brings rows into log order first: one task has all rows of a partition, sorted by offset.
    `options` are those of `df.write.format("kafkalog")`, with underscores: `segment_bytes` is
    segmentBytes. `topic_ids` is a dictionary. Raises OptionError, and SchemaError if there is no
    column `offset` to sort by.
    """
    refuse_unknown_arguments(options, _WRITE_NAMES)
    named = {
        _WRITE_NAMES[name]: json.dumps(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
    }
    given = option_texts(named)
    with options_named_as(_WRITE_NAMES):
        write_options({**given, "path": os.fspath(path)})
    register_once(frame.sparkSession)
    # Delta adds the option to all writes of such a session, and Spark ends with an internal error
    # where the writer does not have it too. F1342
    if frame.sparkSession.conf.get(_DELTA_MERGES, "false") == "true":
        given["mergeSchema"] = "true"
    in_log_order(frame).write.format("kafkalog").mode("append").options(**given).save(
        os.fspath(path)
    )


def refuse_early(paths: Sequence[str], given: Mapping[str, str]) -> None:
    """Raise what options and names of files show before Spark starts to read, which would show it
    in a page of traces: OptionError, LogDirError.

    Paths are looked at where the driver has them and that takes little: not with Spark Connect,
    whose server reads, and not in object stores. What is let through here the read itself finds.
    """
    options = read_options({**given, "paths": json.dumps(list(paths))})
    view_schema(options)
    if not is_spark_connect() and not any(map(is_remote, paths)):
        chosen_logs(options, logs_of_paths(options, strict=False))


def in_log_order(frame: DataFrame) -> DataFrame:
    """Return the rows of each partition in one task, sorted by offset. Raises SchemaError where
    there is no column to sort by."""
    if "offset" not in frame.columns:
        raise SchemaError(
            "no column offset to sort by: bring the rows of each partition into one task and "
            'into their order yourself, and use df.write.format("kafkalog")'
        )
    partition = [name for name in ("topic", "partition") if name in frame.columns]
    return frame.repartition(*partition).sortWithinPartitions(*partition, "offset")


def use_this_python(spark: SparkSession) -> None:
    """Have a session on this machine run the Python of this process, unless the user chose another.

    A program that is run by an environment's Python, by its path, has the libraries there only.
    """
    if is_spark_connect() or "PYSPARK_PYTHON" in os.environ or not sys.executable:
        return
    context = spark.sparkContext
    is_chosen = context.pythonExec != _SPARKS_OWN_CHOICE or (
        context.getConf().contains("spark.pyspark.python")
    )
    if str(context.master).startswith("local") and not is_chosen:
        context.pythonExec = sys.executable
