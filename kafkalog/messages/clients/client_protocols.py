"""What members of classic groups write for each other that is not of the consumer protocol: workers
of Kafka Connect, and instances of Kafka Streams.

Brokers do not look into these bytes. Rules: docs/format.md F1251 and F1252.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

CONNECT_PROTOCOL = "connect"
# The name of the assignor of Kafka Streams, which is the group's protocol.
STREAMS_ASSIGNOR = "stream"
_INT16, _INT32, _INT64 = (struct.Struct(f">{code}") for code in "hiq")
# The number of a task that stands for the connector itself.
_CONNECTOR = -1
_VERSIONS_WITH_UUID, _VERSION_WITH_TOPOLOGIES = 7, 10
_UUID_BYTES = 16
_MOST = 100_000


class ConnectAssignment(NamedTuple):
    """What a worker is given, and what is taken from it: each a connector by its name and None, or
    a task by name and number; the leader's URL, and the offset of the topic of configs that it had
    read."""

    leader_url: str
    config_offset: int
    assigned: frozenset[tuple[str, int | None]]
    revoked: frozenset[tuple[str, int | None]] = frozenset()


class StreamsAssignment(NamedTuple):
    """What an instance has: tasks as SUBTOPOLOGY_PARTITION that it runs, and standby tasks."""

    active: tuple[str, ...]
    standby: tuple[str, ...]


class _Reader:
    """Reads big-endian values one after another. Raises ValueError where bytes are missing."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self, layout: struct.Struct) -> int:
        return int(layout.unpack(self.bytes(layout.size))[0])

    def bytes(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise ValueError(f"{size} bytes at {self._position} of {len(self._data)}")
        found, self._position = self._data[self._position : end], end
        return found

    def text(self, layout: struct.Struct = _INT16) -> str:
        return self.bytes(self.number(layout)).decode()

    def count(self) -> int:
        """Return the length of an array; none of a sound one has more than its bytes."""
        count = self.number(_INT32)
        if count > min(_MOST, len(self._data)):
            raise ValueError(f"{count} elements in {len(self._data)} bytes")
        return max(count, 0)


def read_connect_assignment(data: bytes) -> ConnectAssignment:
    """Return the assignment of a worker: of protocols from version 1 on only what is new to it.
    Raises ValueError for bytes of another form."""
    reader = _Reader(data)
    version, error = reader.number(_INT16), reader.number(_INT16)
    if version < 0 or error != 0:
        raise ValueError(f"version {version}, error {error}")
    reader.text()
    leader_url, config_offset = reader.text(), reader.number(_INT64)
    assigned = _work(reader)
    revoked = _work(reader) if version > 0 else frozenset[tuple[str, int | None]]()
    return ConnectAssignment(leader_url, config_offset, assigned, revoked)


def _work(reader: _Reader) -> frozenset[tuple[str, int | None]]:
    found: set[tuple[str, int | None]] = set()
    for _ in range(reader.count()):
        name = reader.text()
        numbers = [reader.number(_INT32) for _ in range(reader.count())]
        found |= {(name, None if number == _CONNECTOR else number) for number in numbers}
    return frozenset(found)


def read_connect_subscription(data: bytes) -> tuple[str, frozenset[tuple[str, int | None]]]:
    """Return the URL of a worker, and what it had when it joined, nothing in version 0. Raises
    ValueError for bytes of another form."""
    reader = _Reader(data)
    version = reader.number(_INT16)
    url, _ = reader.text(), reader.number(_INT64)
    size = reader.number(_INT32) if version > 0 else -1
    held = read_connect_assignment(reader.bytes(size)) if size > 0 else None
    return url, frozenset() if held is None else held.assigned


def connect_work(subscription: bytes, assignment: bytes) -> frozenset[tuple[str, int | None]]:
    """Return what a worker has after a rebalance. Raises ValueError for bytes of another form."""
    _, held = read_connect_subscription(subscription)
    given = read_connect_assignment(assignment)
    return (held | given.assigned) - given.revoked


def read_streams_subscription(user_data: bytes) -> tuple[str, str | None]:
    """Return the id of an instance's process, and its application.server if it has one. Raises
    ValueError for bytes of another form, and of versions before 7, of Kafka 2.5 and older."""
    reader = _Reader(user_data)
    version, _ = reader.number(_INT32), reader.number(_INT32)
    if version < _VERSIONS_WITH_UUID:
        raise ValueError(f"version {version}")
    process_id = str(uuid.UUID(bytes=reader.bytes(_UUID_BYTES)))
    return process_id, reader.text(_INT32) or None


def read_streams_assignment(user_data: bytes) -> StreamsAssignment:
    """Return the tasks of an instance. Raises ValueError as `read_streams_subscription` does."""
    reader = _Reader(user_data)
    version, _ = reader.number(_INT32), reader.number(_INT32)
    if version < _VERSIONS_WITH_UUID:
        raise ValueError(f"version {version}")
    active = [_task(reader, version) for _ in range(reader.count())]
    standby = []
    for _ in range(reader.count()):
        standby.append(_task(reader, version))
        for _ in range(reader.count()):
            reader.text()
            reader.number(_INT32)
    return StreamsAssignment(tuple(sorted(active)), tuple(sorted(standby)))


def _task(reader: _Reader, version: int) -> str:
    task = f"{reader.number(_INT32)}_{reader.number(_INT32)}"
    # From version 10 on the name of a topology follows, in two bytes for each character.
    if version >= _VERSION_WITH_TOPOLOGIES:
        size = 2 * reader.number(_INT32)
        if size:
            task = f"{reader.bytes(size).decode('utf-16-be')}__{task}"
    return task


def work_of_worker(subscription: bytes, assignment: bytes) -> str | None:
    """Return in words what a worker of Connect has; None where that cannot be read."""
    try:
        work = connect_work(subscription, assignment)
    except ValueError:
        return None
    connectors = sorted(name for name, task in work if task is None)
    tasks = sorted(f"{name}-{task}" for name, task in work if task is not None)
    return _listed(("connectors", connectors), ("tasks", tasks))


def work_of_instance(subscribed: bytes | None, assigned: bytes | None) -> str | None:
    """Return in words what an instance of Streams has; None where that cannot be read."""
    tasks = _read(read_streams_assignment, assigned or b"")
    if tasks is None:
        return None
    who = _read(read_streams_subscription, subscribed or b"")
    server = "" if who is None or who[1] is None else f"; application.server {who[1]}"
    return _listed(("tasks", tasks.active), ("standby", tasks.standby)) + server


def _listed(*parts: tuple[str, Sequence[str]]) -> str:
    return "; ".join(f"{name} {', '.join(each) or 'none'}" for name, each in parts)


def _read(read: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return read(data)
    except ValueError:
        return None
