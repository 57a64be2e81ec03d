"""A commit of Delta that names files which tasks wrote, by delta-spark's own transaction, and what
its log says of a table without a Spark job.

Its classes are internal to delta-spark, and nothing else here names them: docs/decisions/0027.
"""

from __future__ import annotations

import json
import os
import posixpath
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.utils import is_remote

from kafkalog.lake.delta.delta_actions import (
    add_action,
    file_in_log,
    metadata_action,
    remove_action,
    transaction_action,
)
from kafkalog.lake.delta.delta_commits import written_meanwhile
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.written_file import WrittenFile
from kafkalog.storage.files.uris import absolute_path
from kafkalog.storage.files.uris import is_remote as is_uri

if TYPE_CHECKING:
    from delta.tables import DeltaTable

# Without it Delta writes the same list of an empty table's files, and does not look for them.
_FILES_IN_CHECKSUM = "spark.databricks.delta.allFilesInCrc.enabled"
# Of an operation WRITE, after its mode: partitionBy, predicate, userMetadata and five more.
_OPTIONS_AFTER_METADATA = 5
# Of an operation MERGE: conditions, and three sequences of clauses.
_MERGE_CONDITIONS, _MERGE_CLAUSES = 4, 3
_METRICS = "spark.databricks.delta.history.metricsEnabled"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
# Features of tables that remember rows by more than their values: Spark's writer keeps them up.
_FEATURES_OF_ROWS = ("delta.enableChangeDataFeed", "delta.enableRowTracking", "delta.appendOnly")


class FileChanges(NamedTuple):
    """What a commit changes: files that are no longer part of the table, and new ones."""

    removed: Sequence[WrittenFile]
    added: Sequence[WrittenFile]


def append_files(
    spark: SparkSession,
    location: str,
    files: Sequence[WrittenFile],
    *,
    writer: str,
    version: int,
    user_metadata: str | None = None,
    new_schema: str | None = None,
) -> None:
    """Make files part of the table at a location, with a text, in one commit; with a schema,
    Spark's JSON, create the table.

    `version` counts the commits of a writer. Raises StatePositionError where the table has one with
    this number already, was changed in the meantime, or is there and was to be created: then it is
    as it was.
    """
    jvm: Any = spark._jvm
    from_json = jvm.org.apache.spark.sql.delta.actions.Action.fromJson
    transaction = _log_at(spark, location).startTransaction()
    now_ms = time.time_ns() // 1_000_000
    if new_schema is None:
        is_written = _last_version(jvm, transaction, writer) >= version
    else:
        is_written = transaction.readVersion() >= 0
    if is_written:
        raise written_meanwhile(location)
    if new_schema is not None:
        transaction.updateMetadataForNewTable(from_json(metadata_action(new_schema, now_ms)))
    texts = [transaction_action(writer, version), *(add_action(file, now_ms) for file in files)]
    actions = [from_json(text) for text in texts]
    _commit(jvm, transaction, actions, _write(jvm, "Append", user_metadata), location)


def table_version(spark: SparkSession, location: str) -> int:
    """Return the version of the table at a location, -1 without a table."""
    return int(_snapshot(_log_at(spark, location)).version())


def replace_all_files(
    spark: SparkSession,
    location: str,
    files: Sequence[WrittenFile],
    *,
    version: int,
    schema: str,
    user_metadata: str | None = None,
) -> None:
    """Make files all that the table at a location has, with a text, in one commit; create the table
    with the schema, Spark's JSON, if it does not exist.

    `version` is that of the table which the files take the place of, -1 if there is none. Raises
    StatePositionError where the table has another: then it is as it was.
    """
    jvm: Any = spark._jvm
    delta = jvm.org.apache.spark.sql.delta
    transaction = _log_at(spark, location).startTransaction()
    if transaction.readVersion() != version:
        raise written_meanwhile(location)
    now_ms = time.time_ns() // 1_000_000
    actions = [delta.actions.Action.fromJson(add_action(file, now_ms)) for file in files]
    if version < 0:
        created = delta.actions.Action.fromJson(metadata_action(schema, now_ms))
        transaction.updateMetadataForNewTable(created)
    else:
        # All files are read here, so that one which another run adds is a conflict.
        actions += [file.remove() for file in _elements(transaction.filterFiles())]
    _commit(jvm, transaction, actions, _write(jvm, "Overwrite", user_metadata), location)


def files_of(spark: SparkSession, location: str) -> list[WrittenFile]:
    """Return the files of a table without partitions, which `why_not_rewritten` has no reason
    against."""
    return [file_in_log(row.path, row.size, row.stats) for row in _files_in_log(spark, location)]


def row_count(spark: SparkSession, location: str) -> int | None:
    """Return the number of rows of a table, None where its log does not say."""
    rows = _files_in_log(spark, location)
    counts = [json.loads(row.stats or "{}").get("numRecords") for row in rows]
    is_known = None not in counts and not any(row.deletionVector for row in rows)
    return sum(counts) if is_known else None


def why_not_rewritten(spark: SparkSession, location: str) -> str | None:
    """Return why the files of a table cannot be replaced one by one, None where they can."""
    rows = _files_in_log(spark, location)
    if any(row.deletionVector for row in rows):
        return "files of the table have deletion vectors"
    if any(urlsplit(row.path).scheme or row.path.startswith("/") for row in rows):
        return "files of the table are in another directory"
    return None


def replace_files(
    spark: SparkSession,
    location: str,
    files: FileChanges,
    *,
    version: int,
    user_metadata: str | None = None,
    replaced_rows: str | None = None,
) -> None:
    """Replace some files of the table at a location by others, with a text, in one commit.

    `version` is the table's, from which all of its files were known. The operation is MERGE, or
    WRITE where the rows for which the condition `replaced_rows` holds were replaced. Raises
    StatePositionError where the table has another version: then it is as it was.
    """
    jvm: Any = spark._jvm
    transaction = _log_at(spark, location).startTransaction()
    if transaction.readVersion() != version:
        raise written_meanwhile(location)
    # So that a file which another run adds until the commit is a conflict.
    transaction.readWholeTable()
    now_ms = time.time_ns() // 1_000_000
    texts = [remove_action(file, now_ms) for file in files.removed]
    texts += [add_action(file, now_ms) for file in files.added]
    actions = [jvm.org.apache.spark.sql.delta.actions.Action.fromJson(text) for text in texts]
    if replaced_rows is not None:
        operation = _write(jvm, "Overwrite", user_metadata, replaced_rows)
        _commit(jvm, transaction, actions, operation, location)
        return
    none, nothing = jvm.scala.Option.apply(None), jvm.PythonUtils.toSeq([])
    operation = jvm.org.apache.spark.sql.delta.DeltaOperations.Merge(
        *[none] * _MERGE_CONDITIONS, *[nothing] * _MERGE_CLAUSES
    )
    # Delta counts the rows of a MERGE that Spark runs, and would miss the counts.
    with commit_text(spark, user_metadata or ""), session_setting(spark, _METRICS, "false"):
        _commit(jvm, transaction, actions, operation, location)


def commit_text(spark: SparkSession, text: str) -> AbstractContextManager[None]:
    """Let commits carry the text: merges and new tables take it from the session only."""
    return session_setting(spark, _USER_METADATA, text)


@contextmanager
def session_setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Let the session have another value of a setting."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def no_files_in_checksum(spark: SparkSession) -> AbstractContextManager[None]:
    """Let the checksum files of commits leave out the table's files, which Delta looks for in a
    Spark job where the commit before has not listed them: if it creates the table, for one."""
    return session_setting(spark, _FILES_IN_CHECKSUM, "false")


def last_version(spark: SparkSession, location: str, writer: str) -> int:
    """Return the number of a writer's last commit to the table at a location, -1 without any."""
    return _last_version(spark._jvm, _log_at(spark, location).startTransaction(), writer)


def table_detail(table: DeltaTable) -> Row:
    """Return partitionColumns, properties and location of a table, as its `detail` does, which
    counts the files too."""
    if is_remote():
        (detail,) = table.detail().collect()
        return detail
    log = _log(table)
    metadata = json.loads(_snapshot(log).metadata().json())["metaData"]
    return Row(
        partitionColumns=metadata["partitionColumns"],
        properties=metadata["configuration"],
        location=log.dataPath().toString(),
    )


def why_rows_stay(properties: Mapping[str, str]) -> str | None:
    """Return which property of a table is about rows that are removed, None without any."""
    found = (name for name in _FEATURES_OF_ROWS if properties.get(name) == "true")
    return next((f"the table has {name}" for name in found), None)


def newest_commits(table: DeltaTable, count: int) -> Iterator[Row]:
    """Yield version, operation, operationParameters and userMetadata of the newest commits, newest
    first, as the table's `history` does."""
    if is_remote():
        yield from table.history(count).collect()
        return
    jvm: Any = table._spark._jvm
    delta = jvm.org.apache.spark.sql.delta
    log = _log(table)
    snapshot, settings = _snapshot(log), log.newDeltaHadoopConf()
    files = delta.util.DeltaCommitFileProvider.apply(snapshot)
    newest = snapshot.version()
    for version in range(newest, max(newest - count, -1), -1):
        try:
            info = delta.DeltaHistoryManager.getCommitInfoOpt(
                log.store(), files.deltaFile(version), settings
            )
        except Py4JJavaError as error:
            # Delta has removed it, and those before it.
            if "FileNotFoundException" in str(error.java_exception):
                return
            raise
        found = json.loads(info.get().json())["commitInfo"] if info.isDefined() else {}
        yield Row(
            version=version,
            operation=found.get("operation"),
            operationParameters=found.get("operationParameters", {}),
            userMetadata=found.get("userMetadata"),
        )


def _files_in_log(spark: SparkSession, location: str) -> list[Row]:
    """Return path, size, stats and deletionVector of a table's files."""
    snapshot = _snapshot(_log_at(spark, location))
    columns = "path", "size", "stats", "deletionVector"
    known = _in_checksum(snapshot, "allFiles")
    if known is None:
        # Spark jobs read the whole log.
        return DataFrame(snapshot.allFiles().toDF(), spark).select(*columns).collect()
    files = [json.loads(file.json())["add"] for file in known]
    return [Row(**{name: file.get(name) for name in columns}) for file in files]


def _write(jvm: Any, mode: str, user_metadata: str | None, predicate: str | None = None) -> Any:
    """Return an operation WRITE with a SaveMode, such as Append."""
    option = jvm.scala.Option.apply
    return jvm.org.apache.spark.sql.delta.DeltaOperations.Write(
        getattr(jvm.org.apache.spark.sql.SaveMode, mode),
        option(None),
        option(predicate),
        option(user_metadata),
        *[option(None)] * _OPTIONS_AFTER_METADATA,
    )


def _commit(
    jvm: Any, transaction: Any, actions: Sequence[Any], operation: Any, location: str
) -> None:
    try:
        version = int(transaction.commit(jvm.PythonUtils.toSeq(actions), operation))
    except _conflicts() as error:
        raise written_meanwhile(location) from error
    _flush_commit(location, version)


def _flush_commit(location: str, version: int) -> None:
    """Force a commit on a disk of this machine to that disk, which Hadoop does not."""
    commit = posixpath.join("_delta_log", f"{version:020d}.json")
    if not is_uri(location) and os.path.isfile(posixpath.join(absolute_path(location), commit)):
        OutputDirectory(location).flush([commit])


def _log_at(spark: SparkSession, location: str) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, location)


def _last_version(jvm: Any, transaction: Any, writer: str) -> int:
    """Return the number of a writer's last commit, which no other one must change until the
    transaction commits."""
    known = _in_checksum(transaction.snapshot(), "setTransactions")
    if known is None:
        # Spark jobs read the whole log.
        return int(transaction.txnVersion(writer))
    transaction.readTxn().addOne(writer)
    return max((int(each.version()) for each in known if each.appId() == writer), default=-1)


def _in_checksum(snapshot: Any, name: str) -> list[Any] | None:
    """Return a list that the checksum file of a version can have, None where it has none: of the
    files there are up to 50."""
    checksum = snapshot.checksumOpt()
    known = getattr(checksum.get(), name)() if checksum.isDefined() else checksum
    return _elements(known.get()) if known.isDefined() else None


def _elements(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _log(table: DeltaTable) -> Any:
    return table._jdt.deltaLog()


def _snapshot(log: Any) -> Any:
    """Return the newest version of a table."""
    # Python cannot write its names of default values otherwise.
    return log.update(*(getattr(log, f"update$default${number}")() for number in (1, 2, 3)))


def delta_tables() -> type[DeltaTable]:
    """Return Delta's own class of tables. Its library is imported here and below only: tables of
    other formats do without it."""
    from delta.tables import DeltaTable

    return DeltaTable


def _conflicts() -> tuple[type[Exception], ...]:
    from delta import exceptions

    return (
        exceptions.ConcurrentAppendException,
        exceptions.ConcurrentDeleteDeleteException,
        exceptions.ConcurrentDeleteReadException,
        exceptions.ConcurrentTransactionException,
        exceptions.ConcurrentWriteException,
        exceptions.DeltaConcurrentModificationException,
        exceptions.MetadataChangedException,
        exceptions.ProtocolChangedException,
    )
