"""What Java's consumer gets of partitions, of the release whose jars are given."""

import base64
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.broker.java_tools import run_tool
from tests.support.serve.clients import Row, placed

_PROGRAM = Path(__file__).parent / "java" / "ReadRecords.java"
_READ_SECONDS = 200
_SILENCE_MS = 8000
# The program is a source file.
needs_compiler = pytest.mark.skipif(shutil.which("javac") is None, reason="needs a JDK")

Place = tuple[str, int]


class Stop(NamedTuple):
    """Where a consumer went no further, and why."""

    topic: str
    partition: int
    position: int
    why: str


class Consumed(NamedTuple):
    """Records in the order of partitions and offsets, and partitions that were not read to the
    end."""

    rows: list[Row]
    stops: list[Stop]


def records_of_java(
    jars: str, bootstrap_servers: str, isolation_level: str, places: Collection[Place]
) -> Consumed:
    """What one consumer gets of all these partitions."""
    return _consumed(jars, bootstrap_servers, isolation_level, [places])


def records_of_java_consumers(
    jars: str, bootstrap_servers: str, places: Sequence[Place]
) -> Consumed:
    """What a consumer of its own gets of each of these partitions."""
    return _consumed(jars, bootstrap_servers, "read_uncommitted", [[each] for each in places])


def _consumed(
    jars: str, bootstrap_servers: str, isolation_level: str, consumers: Sequence[Collection[Place]]
) -> Consumed:
    given = [bootstrap_servers, isolation_level, str(_SILENCE_MS)]
    given += [",".join(f"{topic}:{number}" for topic, number in places) for places in consumers]
    printed = run_tool(str(_PROGRAM), given, jars=jars, timeout_seconds=_READ_SECONDS).stdout
    lines = [line.split("\t") for line in printed.decode().splitlines()]
    return Consumed(
        placed(_row(fields) for fields in lines if fields[0] != "stopped"),
        [
            Stop(topic, int(partition), int(position), why)
            for word, topic, partition, position, why in (f for f in lines if f[0] == "stopped")
        ],
    )


def _row(fields: list[str]) -> Row:
    topic, partition, offset, timestamp, *texts = fields
    key, value, *parts = (None if text == "null" else base64.b64decode(text[1:]) for text in texts)
    names = [(part or b"").decode() for part in parts[::2]]
    headers = tuple(zip(names, parts[1::2], strict=True))
    return (topic, int(partition), int(offset), int(timestamp), key, value, headers)
