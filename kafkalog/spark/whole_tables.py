"""Tables of formats without transactions, which are there as a whole or as they were before."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from kafkalog.errors import KafkaLogError

# File systems that give a directory another name at once. Object stores copy each file.
_RENAMING = ("file", "hdfs")


def write_whole(frame: DataFrame, path: str, table_format: str) -> None:
    """Write a table in place of what is there, as `replace_whole` does."""
    writer = frame.write.format(table_format).mode("overwrite")
    replace_whole(frame.sparkSession, path, writer.save)


def replace_whole(spark: SparkSession, path: str, write: Callable[[str], object]) -> None:
    """Replace a table by what `write` writes to the directory that it receives; the table stays
    until that is whole.

    It is written to a directory beside it, whose name Spark takes for hidden. Where the job ends
    too early, its JVM removes that; where the JVM is killed too, the next run does. In object
    stores, and with Spark Connect, the table is written in its place: it is whole when it has
    `_SUCCESS`.
    """
    place = None if is_remote() else _renaming_place(spark, path)
    if place is None:
        write(path)
        return
    files, unfinished, target = place
    files.delete(unfinished, True)
    files.mkdirs(unfinished)
    files.deleteOnExit(unfinished)
    write(unfinished.toString())
    if not _is_moved(files, unfinished, target):
        files.cancelDeleteOnExit(unfinished)
        raise KafkaLogError(f"{path}: the table is whole in {unfinished}, and could not be moved")


def is_in_local_files(spark: SparkSession, path: str) -> bool:
    """Return whether Spark takes a path for one of a machine's own file system; with Spark Connect
    that is not known."""
    return not is_remote() and _file_system(spark, path).getUri().getScheme() == "file"


def _is_moved(files: Any, unfinished: Any, target: Any) -> bool:
    """Return whether the new table took the place of the older one, which is removed after that
    only: to remove its files takes a while, in which the job can be stopped."""
    older = unfinished.suffix("-older")
    files.delete(older, True)
    has_older = files.exists(target)
    if has_older and not files.rename(target, older):
        return False
    try:
        is_moved = bool(files.rename(unfinished, target))
    finally:
        if has_older and not files.exists(target):
            files.rename(older, target)
    if is_moved:
        files.delete(older, True)
    return is_moved


def _renaming_place(spark: SparkSession, path: str) -> tuple[Any, Any, Any] | None:
    """Return the file system, the directory to write to, and its name in the end, as Java has them;
    None where renaming is more than a change of names."""
    files = _file_system(spark, path)
    if files.getUri().getScheme() not in _RENAMING:
        return None
    jvm: Any = spark._jvm
    java_path = jvm.org.apache.hadoop.fs.Path
    folder, name = os.path.split(path.rstrip("/"))
    return files, java_path(folder, f".{name}.unfinished"), java_path(path)


def _file_system(spark: SparkSession, path: str) -> Any:
    session: Any = spark
    target = session._jvm.org.apache.hadoop.fs.Path(path)
    return target.getFileSystem(session._jsc.hadoopConfiguration())
