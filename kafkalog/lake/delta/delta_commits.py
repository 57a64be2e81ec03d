"""Commits of Delta without Java, by delta-rs.

delta-rs does not commit to a table with clustering, which job ingest-topics creates. An addition to
one needs nothing that delta-rs would do: the statistics that clustering asks for are in the action
of each file. So this module writes that commit itself, as PROTOCOL.md has it ("Delta Log Entries",
"Clustered Table"): a file of a name that no other commit has. Reasons: docs/decisions/0066.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkalog.errors import KafkaLogError, StatePositionError
from kafkalog.extras import missing_extras_named
from kafkalog.lake.delta.delta_actions import add_action, transaction_action
from kafkalog.lake.delta.delta_layout import why_not_by_tasks
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.written_file import WrittenFile
from kafkalog.storage.log_dir.table_formats import DELTA_LOG

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import CommitProperties

# What job ingest-topics creates, beyond what delta-rs knows.
_CLUSTERING = frozenset({"clustering", "domainMetadata"})
_OF_CLUSTERED = _CLUSTERING | {"invariants", "appendOnly"}


class DeltaLog:
    """The log of the table in a directory of this machine, at its newest version; `None` as `table`
    where there is none. Raises MissingExtraError without deltalake."""

    def __init__(self, path: str) -> None:
        with missing_extras_named():
            import_module("deltalake")
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        self.path = path
        try:
            self._table: DeltaTable | None = DeltaTable(path)
        except TableNotFoundError:
            self._table = None
        except DeltaError as error:
            raise KafkaLogError(f"{path}: delta-rs cannot read its log: {error}") from None

    @property
    def is_there(self) -> bool:
        """Whether there is a table."""
        return self._table is not None

    @property
    def table(self) -> DeltaTable:
        """The table, which is there."""
        if self._table is None:
            raise StatePositionError(f"{self.path} is not a Delta table")
        return self._table

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The columns, in the JSON form of Spark's types."""
        found: list[dict[str, Any]] = json.loads(self.table.schema().to_json())["fields"]
        return found

    @property
    def partition_columns(self) -> list[str]:
        """The names of the columns that the table is partitioned by."""
        return [*self.table.metadata().partition_columns]

    def last_version(self, writer: str) -> int:
        """Return the number of a writer's last commit, -1 without any."""
        found = None if self._table is None else self._table.transaction_version(writer)
        return -1 if found is None else int(found)

    def create(
        self,
        schema: Mapping[str, Any],
        files: Sequence[WrittenFile] = (),
        partition_by: Sequence[str] = (),
        user_metadata: str | None = None,
        writer: tuple[str, int] | None = None,
    ) -> None:
        """Create the table with a schema, in the JSON form of Spark's, and with files, in one
        commit. Raises StatePositionError where there is one meanwhile."""
        from deltalake import Schema
        from deltalake.exceptions import DeltaError
        from deltalake.transaction import create_table_with_add_actions

        try:
            create_table_with_add_actions(
                self.path,
                Schema.from_json(json.dumps(schema)),
                _actions(files),
                mode="error",
                partition_by=[*partition_by],
                commit_properties=_properties(user_metadata, writer),
            )
        except DeltaError as error:
            raise written_meanwhile(self.path) from error
        self._flush(0)

    def append(
        self, files: Sequence[WrittenFile], *, writer: str, version: int, user_metadata: str | None
    ) -> None:
        """Make files part of the table, with a text, in one commit; `version` counts the commits of
        a writer.

        Raises StatePositionError where the table has one with this number already, or was changed
        since it was opened: then it is as it was. Raises KafkaLogError for a table that only Spark
        can write to.
        """
        if self.last_version(writer) >= version:
            raise written_meanwhile(self.path)
        self.refuse_other_features()
        if not _CLUSTERING.isdisjoint(self._features()):
            self._append_to_clustered(files, writer, version, user_metadata)
            return
        from deltalake.exceptions import CommitFailedError

        table = self.table
        try:
            table.create_write_transaction(
                _actions(files),
                "append",
                table.schema(),
                self.partition_columns,
                commit_properties=_properties(user_metadata, (writer, version)),
            )
        except CommitFailedError as error:
            raise written_meanwhile(self.path) from error
        self._flush(table.version())

    def replace_rows(self, rows: pa.Table, column: str, values: Sequence[str]) -> None:
        """Write rows in place of those that have one of the values in a column, in one commit.
        Raises as `append` does."""
        from deltalake import write_deltalake
        from deltalake.exceptions import CommitFailedError

        self.refuse_other_features()
        texts = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
        try:
            write_deltalake(
                self.table,
                rows,
                mode="overwrite",
                predicate=f"{column} IN ({texts})",
                commit_properties=_properties(None, None),
            )
        except CommitFailedError as error:
            raise written_meanwhile(self.path) from error
        self._flush(self.table.version())

    def refuse_other_features(self) -> None:
        """Raise KafkaLogError for a table that only Spark can write to."""
        why = why_not_by_tasks(self.table.metadata().configuration)
        features = self._features()
        if why is None and not _CLUSTERING.isdisjoint(features) and features - _OF_CLUSTERED:
            why = f"the table has features {', '.join(sorted(features - _OF_CLUSTERED))}"
        if why is not None:
            raise KafkaLogError(
                f"{self.path}: {why}, and delta-rs cannot write to it: `kafkalog job "
                "ingest-topics` does, with Java"
            )

    def _features(self) -> frozenset[str]:
        return frozenset(self.table.protocol().writer_features or ())

    def _append_to_clustered(
        self, files: Sequence[WrittenFile], writer: str, version: int, user_metadata: str | None
    ) -> None:
        now_ms = time.time_ns() // 1_000_000
        read = self.table.version()
        info = {
            "timestamp": now_ms,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append"},
            "readVersion": read,
            "isBlindAppend": True,
            "userMetadata": user_metadata,
        }
        lines = [json.dumps({"commitInfo": info}), transaction_action(writer, version)]
        lines += [add_action(file, now_ms) for file in files]
        folder = os.path.join(self.path, DELTA_LOG)
        unfinished = os.path.join(folder, f".{uuid.uuid4()}.tmp")
        try:
            with open(unfinished, "x", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            # Fails where another commit has the name; readers see a file that is whole.
            os.link(unfinished, os.path.join(folder, _name(read + 1)))
        except FileExistsError as error:
            raise written_meanwhile(self.path) from error
        finally:
            os.unlink(unfinished)
        self._flush(read + 1)

    def _flush(self, version: int) -> None:
        """Force a commit to disk, which delta-rs does not."""
        OutputDirectory(self.path).flush([f"{DELTA_LOG}/{_name(version)}"])


def written_meanwhile(place: str) -> StatePositionError:
    """Return the error of a run that another one was faster than."""
    return StatePositionError(
        f"{place}: another run has written meanwhile, this one has written nothing: run it again"
    )


def _name(version: int) -> str:
    return f"{version:020d}.json"


def _actions(files: Sequence[WrittenFile]) -> list[Any]:
    from deltalake.transaction import AddAction

    now_ms = time.time_ns() // 1_000_000
    found = [json.loads(add_action(file, now_ms))["add"] for file in files]
    return [
        AddAction(
            file.path,
            each["size"],
            each["partitionValues"],
            each["modificationTime"],
            each["dataChange"],
            each["stats"],
        )
        for file, each in zip(files, found, strict=True)
    ]


def _properties(user_metadata: str | None, writer: tuple[str, int] | None) -> CommitProperties:
    from deltalake.transaction import CommitProperties, Transaction

    # A commit that came between is looked at by the next run, never passed over.
    return CommitProperties(
        custom_metadata=None if user_metadata is None else {"userMetadata": user_metadata},
        max_commit_retries=0,
        app_transactions=None if writer is None else [Transaction(*writer)],
    )
