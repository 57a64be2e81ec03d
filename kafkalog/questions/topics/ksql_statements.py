"""Which streams, tables and queries do the servers of ksqlDB run, and by which statements?

By their command topic. Rule: docs/format.md F1255.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalog.messages.clients.connect_records import TopicRecord
from kafkalog.messages.clients.ksql_commands import (
    IN_FORCE,
    KsqlCommand,
    command_states,
    ksql_service,
    read_ksql_command,
)
from kafkalog.questions.topics.last_records import every_record, topics_of
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Rows, RowsInMemory, Views
from kafkalog.words import counted

TABLE = "ksql_statements"


@dataclass(frozen=True, slots=True)
class KsqlStatements:
    """Rows of the table, in the order of the topics; the topics that were read, and how many of
    their records are not commands of ksqlDB."""

    rows: Rows
    topics: Sequence[str]
    others: int

    def in_force(self) -> list[dict[str, Any]]:
        """Return the rows of the statements that servers carry out when they start."""
        return [row for row in self.rows if row["state"] in IN_FORCE]

    def words(self) -> list[str]:
        """Return lines: how many statements are in force, and by which topics."""
        return [*self._lines()]

    def _lines(self) -> Iterator[str]:
        if self.topics:
            rows = self.in_force()
            queries = sum(
                row["state"] == IN_FORCE[0] and row["query_id"] is not None for row in rows
            )
            yield (
                f"{counted(len(rows), 'statement')} in force, {queries:,} with a query, of "
                f"{len(self.rows.table):,} in {', '.join(self.topics)}"
            )
        yield from self.notes()

    def notes(self) -> Iterator[str]:
        """Yield lines about what the rows do not show: that no topic has such a name, and records
        that were not read."""
        if not self.topics:
            yield (
                "no topic here has a name such as _confluent-ksql-default__command_topic, which "
                "the servers of ksqlDB give their command topic"
            )
        if self.others:
            yield f"not read: {counted(self.others, 'record')} that ksqlDB did not write"


def ksql_statements(views: Views, logs: Sequence[PartitionLog] | None = None) -> KsqlStatements:
    """Return the statements in the command topics, by the best replica of each; only those among
    `logs`, if these are given."""
    given = views.logs if logs is None else logs
    chosen = [log for log in given if log.topic is not None and ksql_service(log.topic) is not None]
    by_topic: dict[str, list[tuple[TopicRecord, KsqlCommand]]] = defaultdict(list)
    others = 0
    for record in every_record(views, chosen):
        command = read_ksql_command(record.key, record.value)
        if command is None:
            others += 1
        else:
            by_topic[record.topic].append((record, command))
    rows = [row for found in by_topic.values() for row in _rows(found)]
    return KsqlStatements(RowsInMemory.of(TABLE, rows), topics_of(chosen), others)


def _rows(found: Sequence[tuple[TopicRecord, KsqlCommand]]) -> Iterator[dict[str, Any]]:
    states = command_states(command for _, command in found)
    for (record, command), state in zip(found, states, strict=True):
        yield {
            "service_id": ksql_service(record.topic),
            "kind": command.kind,
            "name": command.entity,
            "action": command.action,
            "state": state,
            "query_id": command.query_id,
            "sources": command.sources,
            "sink": command.sink,
            "statement": command.statement,
            "properties": command.properties,
            "version": command.version,
            "written_ms": record.timestamp_ms,
            "command_topic": record.topic,
            "offset": record.offset,
        }
