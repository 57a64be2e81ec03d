"""What the first steps of a session have to load, loaded beside them by another processor.

Reasons: docs/decisions/0048.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread

from pyspark.sql import SparkSession

from kafkalog.lake.manifest_rows import TABLE
from kafkalog.spark.kept_rows import kept_rows
from kafkalog.spark.tables import spark_schema


@contextmanager
def warm_up(spark: SparkSession, folder: Path, *, with_delta: bool) -> Iterator[None]:
    """Let other threads start Python's workers and, with Delta, commit to a new table in a folder
    of this machine, while the block runs."""
    works: list[Callable[[], object]] = [partial(_start_worker, spark)]
    if with_delta:
        # With a scheme, or else it can be in another file system.
        works.append(partial(_commit_to_delta, spark, (folder / "warm-up").as_uri()))
    threads = [Thread(target=_quietly, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        # They would fail, and Spark say so, if the session stopped meanwhile.
        for thread in threads:
            thread.join()


def _quietly(work: Callable[[], object]) -> None:
    # What fails here fails again where it is needed, and is said there.
    with suppress(Exception):
        work()


def _start_worker(spark: SparkSession) -> None:
    spark.sparkContext.setJobDescription("start of Python's workers")
    kept_rows(spark.range(0, 1, 1, 1).mapInArrow(lambda batches: batches, "id long"))


def _commit_to_delta(spark: SparkSession, location: str) -> None:
    # Here, for sessions without Delta start without its package.
    from kafkalog.spark.delta_commit import replace_all_files, table_version

    version = table_version(spark, location)
    schema = spark_schema(TABLE).json()
    replace_all_files(spark, location, [], version=version, schema=schema)
