"""A commit of Delta that names files which tasks wrote, by delta-spark's own transaction.

Its classes are internal to delta-spark, and nothing else here names them: docs/decisions/0027.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from pyspark.sql import SparkSession

from kafkalog.errors import StatePositionError
from kafkalog.lake.delta_actions import add_action, metadata_action, transaction_action
from kafkalog.lake.written_file import WrittenFile

_CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
# Of an operation WRITE, after its mode: partitionBy, predicate, userMetadata and five more.
_OPTIONS_AFTER_METADATA = 5


def append_files(
    spark: SparkSession,
    location: str,
    files: Sequence[WrittenFile],
    *,
    writer: str,
    version: int,
    user_metadata: str,
) -> None:
    """Make files part of the table at a location, with a text, in one commit.

    `version` counts the commits of a writer. Raises StatePositionError where the table has one with
    this number already, or was changed in the meantime: then the table is as it was.
    """
    jvm: Any = spark._jvm
    delta = jvm.org.apache.spark.sql.delta
    transaction = delta.DeltaLog.forTable(spark._jsparkSession, location).startTransaction()
    # What a transaction has read, another one must not change before it commits.
    if transaction.txnVersion(writer) >= version:
        raise written_meanwhile(location)
    now_ms = time.time_ns() // 1_000_000
    texts = [transaction_action(writer, version), *(add_action(file, now_ms) for file in files)]
    actions = jvm.PythonUtils.toSeq([delta.actions.Action.fromJson(text) for text in texts])
    option = jvm.scala.Option.apply
    operation = delta.DeltaOperations.Write(
        jvm.org.apache.spark.sql.SaveMode.Append,
        option(None),
        option(None),
        option(user_metadata),
        *[option(None)] * _OPTIONS_AFTER_METADATA,
    )
    try:
        transaction.commit(actions, operation)
    except _CONFLICTS as error:
        raise written_meanwhile(location) from error


def table_version(spark: SparkSession, location: str) -> int:
    """Return the version of the table at a location, -1 without a table."""
    jvm: Any = spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, location)
    return int(log.update(False, jvm.scala.Option.empty(), jvm.scala.Option.empty()).version())


def replace_all_files(
    spark: SparkSession,
    location: str,
    files: Sequence[WrittenFile],
    *,
    version: int,
    schema: str,
    user_metadata: str,
) -> None:
    """Make files all that the table at a location has, with a text, in one commit; create the table
    with the schema, Spark's JSON, if it does not exist.

    `version` is that of the table which the files take the place of, -1 if there is none. Raises
    StatePositionError where the table has another: then it is as it was.
    """
    jvm: Any = spark._jvm
    delta = jvm.org.apache.spark.sql.delta
    transaction = delta.DeltaLog.forTable(spark._jsparkSession, location).startTransaction()
    if transaction.readVersion() != version:
        raise written_meanwhile(location)
    now_ms = time.time_ns() // 1_000_000
    actions = [delta.actions.Action.fromJson(add_action(file, now_ms)) for file in files]
    if version < 0:
        created = delta.actions.Action.fromJson(metadata_action(schema, now_ms))
        transaction.updateMetadataForNewTable(created)
    else:
        # All files are read here, so that one which another run adds is a conflict.
        old = transaction.filterFiles()
        actions += [old.apply(number).remove() for number in range(old.size())]
    option = jvm.scala.Option.apply
    operation = delta.DeltaOperations.Write(
        jvm.org.apache.spark.sql.SaveMode.Overwrite,
        option(None),
        option(None),
        option(user_metadata),
        *[option(None)] * _OPTIONS_AFTER_METADATA,
    )
    try:
        transaction.commit(jvm.PythonUtils.toSeq(actions), operation)
    except _CONFLICTS as error:
        raise written_meanwhile(location) from error


def written_meanwhile(place: str) -> StatePositionError:
    """Return the error of a run that another one was faster than."""
    return StatePositionError(
        f"{place}: another run has written meanwhile, this one has written nothing: run it again"
    )
