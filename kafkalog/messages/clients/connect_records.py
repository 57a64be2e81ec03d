"""The topics of Kafka Connect's workers: configs of connectors, states, and source offsets.

The topics have any names, and are known by the form of their keys. Rules: docs/format.md F957 and
F1250.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafkalog.format.secret_configs import without_connect_secrets
from kafkalog.messages.clients.mirror_records import OFFSET_SYNC, mirror_kind

_KEY = re.compile(
    r"(?P<kind>connector|commit|target-state|status-connector)-(?P<name>.+)"
    r"|(?P<of_task>task|status-task)-(?P<named>.+)-(?P<task>[0-9]{1,9})"
    r"|status-topic-(?P<topic>.+):connector-(?P<user>.+)",
    re.DOTALL,
)
# The words by which the topics of one cluster of workers differ.
_WORDS = re.compile(r"(configs?|statuse?s?|offsets?)(?![a-z])")
_LARGEST_VALUE = 8 * 1024 * 1024
STARTED, FAILED, RUNNING = "STARTED", "FAILED", "RUNNING"


class TopicRecord(NamedTuple):
    """The last record of a key in a topic."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


@dataclass
class Task:
    """A task: its config, and the last state that a worker wrote of it."""

    config: Mapping[str, Any] | None = None
    status: Mapping[str, Any] | None = None


@dataclass
class Connector:
    """A connector, in the topics of the cluster of workers with this stem: its config, its secrets
    hidden, and when that was written; the state that it should have; how many tasks its config was
    divided into, None before that; the last state that a worker wrote; its tasks by number; and the
    topics that it used."""

    stem: str
    name: str
    config: Mapping[str, Any] | None = None
    changed_ms: int | None = None
    target_state: str = STARTED
    task_count: int | None = None
    status: Mapping[str, Any] | None = None
    tasks: dict[int, Task] = field(default_factory=dict)
    topics: list[str] = field(default_factory=list)


class SourceOffset(NamedTuple):
    """What a source connector calls an offset, of what it calls a partition, both as JSON."""

    record: TopicRecord
    connector: str
    source_partition: str
    source_offset: str


@dataclass
class ConnectState:
    """Connectors by the stem of their topics and their name, the offsets of source connectors, and
    how many records are not of Connect's form."""

    connectors: dict[tuple[str, str], Connector] = field(default_factory=dict)
    offsets: list[SourceOffset] = field(default_factory=list)
    others: int = 0

    def of(self, stem: str, name: str) -> Connector:
        """Return a connector, a new one if there is none."""
        return self.connectors.setdefault((stem, name), Connector(stem, name))


def topic_stem(topic: str) -> str:
    """Return what the names of the topics of one cluster of workers have in common."""
    return _WORDS.sub("*", topic)


def could_be_connects(topic: str) -> bool:
    """Return whether a topic has the usual name of a topic of Connect's workers."""
    is_other = topic.startswith("__") or mirror_kind(topic) == OFFSET_SYNC
    return _WORDS.search(topic) is not None and not is_other


def connect_state(records: Iterable[TopicRecord]) -> ConnectState:
    """Return the state by the last record of each key."""
    state = ConnectState()
    for record in records:
        if record.value is not None and not _take(state, record):
            state.others += 1
    # A connector without a config is deleted; its states go later.
    for place in [place for place, each in state.connectors.items() if each.config is None]:
        del state.connectors[place]
    return state


def _take(state: ConnectState, record: TopicRecord) -> bool:
    """Take a record, and return whether it is of Connect's form."""
    if record.key == b"session-key":
        return True
    key = _text(record.key)
    if key is not None and key.startswith("["):
        return _take_offset(state, record, key)
    found = None if key is None else _KEY.fullmatch(key)
    value = _json(without_connect_secrets(record.key, record.value or b""))
    if found is None or not isinstance(value, dict):
        return False
    stem = topic_stem(record.topic)
    if found["user"] is not None:
        state.of(stem, found["user"]).topics.append(found["topic"])
    elif found["of_task"] is not None:
        task = state.of(stem, found["named"]).tasks.setdefault(int(found["task"]), Task())
        if found["of_task"] == "task":
            task.config = _properties(value)
        else:
            task.status = value
    else:
        _take_connector(state.of(stem, found["name"]), found["kind"], value, record)
    return True


def _take_connector(
    connector: Connector, kind: str, value: Mapping[str, Any], record: TopicRecord
) -> None:
    if kind == "connector":
        connector.config, connector.changed_ms = _properties(value), record.timestamp_ms
    elif kind == "commit":
        count = value.get("tasks")
        connector.task_count = count if isinstance(count, int) else None
    elif kind == "target-state":
        connector.target_state = str(value.get("state.v2") or value.get("state") or STARTED)
    else:
        connector.status = value


def _take_offset(state: ConnectState, record: TopicRecord, key: str) -> bool:
    place = _json(key.encode())
    if not isinstance(place, list) or len(place) != 2 or not isinstance(place[0], str):
        return False
    found = _json(record.value or b"")
    if found is None:
        return False
    state.offsets.append(SourceOffset(record, place[0], _line(place[1]), _line(found)))
    return True


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _properties(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    properties = value.get("properties")
    return properties if isinstance(properties, dict) else None


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _json(data: bytes) -> Any:
    """Return a value that a converter wrote, with schemas or without; None if it is not JSON."""
    if len(data) > _LARGEST_VALUE:
        return None
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return None
    is_wrapped = isinstance(content, dict) and content.keys() == {"schema", "payload"}
    return content["payload"] if is_wrapped else content


def failures(connector: Connector) -> Iterator[tuple[int | None, str]]:
    """Yield the tasks that failed, None for the connector itself, with the first line of why."""
    statuses = [(None, connector.status), *((n, t.status) for n, t in connector.tasks.items())]
    for number, status in statuses:
        if status is not None and status.get("state") == FAILED:
            yield number, (str(status.get("trace") or "").splitlines() or ["?"])[0]
