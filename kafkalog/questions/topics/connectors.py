"""Which connectors do the workers of Kafka Connect run, in which state, and how far are they?

By the topics of the workers. Rules: docs/format.md F957 and F1250.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalog.messages.clients.connect_records import (
    RUNNING,
    Connector,
    SourceOffset,
    connect_state,
    could_be_connects,
    failures,
    topic_stem,
)
from kafkalog.questions.topics.last_records import last_records, topics_of
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Rows, RowsInMemory, Views
from kafkalog.words import counted

TABLE, TASKS, OFFSETS = "connectors", "connector_tasks", "connector_offsets"
_MOST_LINES = 10


@dataclass(frozen=True, slots=True)
class ConnectorsRequest:
    """The logs of the workers' topics, where these are not all with their usual names."""

    logs: Sequence[PartitionLog] | None = None


@dataclass(frozen=True, slots=True)
class Connectors:
    """Rows of the three tables; lines about what failed; the topics that were read, and how many of
    their records are not of Connect's form."""

    connectors: Rows
    tasks: Rows
    offsets: Rows
    failed: Sequence[str]
    topics: Sequence[str]
    others: int

    @property
    def has_findings(self) -> bool:
        """Whether a connector or a task has failed."""
        return bool(self.failed)

    def words(self) -> list[str]:
        """Return lines: how many connectors there are, and what failed."""
        return [*self._lines()]

    def _lines(self) -> Iterator[str]:
        if self.topics:
            count, tasks = len(self.connectors.table), len(self.tasks.table)
            yield (
                f"{counted(count, 'connector')} with {counted(tasks, 'task')} by "
                f"{', '.join(self.topics)}: states are the last that workers wrote"
            )
            yield from self.failed[:_MOST_LINES]
            if len(self.failed) > _MOST_LINES:
                yield f"and {len(self.failed) - _MOST_LINES:,} more that failed"
        yield from self.notes()

    def notes(self) -> Iterator[str]:
        """Yield lines about what the rows do not show: that no topic has such a name, and records
        that were not read."""
        if not self.topics:
            yield (
                "no topic here has a name such as connect-configs, connect-status or "
                "connect-offsets: --topic names those of the workers"
            )
        if self.others:
            yield f"not read: {counted(self.others, 'record')} that Connect did not write"


def connectors(views: Views, request: ConnectorsRequest) -> Connectors:
    """Return the connectors, by the best replica of each partition."""
    given = views.logs if request.logs is None else request.logs
    logs = [
        log
        for log in given
        if log.topic is not None and (request.logs is not None or could_be_connects(log.topic))
    ]
    state = connect_state(last_records(views, logs))
    every = [state.connectors[place] for place in sorted(state.connectors)]
    failed = [
        f"failed: {each.name}{'' if task is None else f' task {task}'}: {why}"
        for each in every
        for task, why in failures(each)
    ]
    rows = [_row(each, state.offsets) for each in every]
    tasks = [row for each in every for row in _task_rows(each)]
    return Connectors(
        RowsInMemory.of(TABLE, rows),
        RowsInMemory.of(TASKS, tasks),
        RowsInMemory.of(OFFSETS, [_offset_row(each) for each in state.offsets]),
        failed,
        topics_of(logs),
        state.others,
    )


def _row(connector: Connector, offsets: Sequence[SourceOffset]) -> dict[str, Any]:
    states = [str((task.status or {}).get("state")) for _, task in _current_tasks(connector)]
    status = connector.status or {}
    config = connector.config or {}
    errors = [why for _, why in failures(connector)]
    return {
        "connect_topics": connector.stem,
        "connector": connector.name,
        "connector_class": config.get("connector.class"),
        "target_state": connector.target_state,
        "state": status.get("state"),
        "worker_id": status.get("worker_id"),
        "tasks": connector.task_count,
        "tasks_running": states.count(RUNNING),
        "tasks_failed": states.count("FAILED"),
        "error": errors[0] if errors else None,
        "topics": sorted(connector.topics),
        "source_partitions": sum(
            (topic_stem(each.record.topic), each.connector) == (connector.stem, connector.name)
            for each in offsets
        ),
        "changed_ms": connector.changed_ms,
        "config": {name: str(value) for name, value in sorted(config.items())},
    }


def _current_tasks(connector: Connector) -> Iterator[tuple[int, Any]]:
    """Yield the tasks of the last config: earlier ones leave records if there were more."""
    for number in sorted(connector.tasks):
        if connector.task_count is None or number < connector.task_count:
            yield number, connector.tasks[number]


def _task_rows(connector: Connector) -> Iterator[dict[str, Any]]:
    for number, task in _current_tasks(connector):
        status = task.status or {}
        yield {
            "connect_topics": connector.stem,
            "connector": connector.name,
            "task": number,
            "state": status.get("state"),
            "worker_id": status.get("worker_id"),
            "generation": status.get("generation"),
            "trace": status.get("trace"),
            "config": {name: str(value) for name, value in sorted((task.config or {}).items())},
        }


def _offset_row(found: SourceOffset) -> dict[str, Any]:
    return {
        "offsets_topic": found.record.topic,
        "connector": found.connector,
        "source_partition": found.source_partition,
        "source_offset": found.source_offset,
        "written_ms": found.record.timestamp_ms,
        "partition": found.record.partition,
        "offset": found.record.offset,
    }
