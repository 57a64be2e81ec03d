"""Positions in topics that programs other than consumer groups keep in topics of their own: source
connectors of Kafka Connect, and MirrorMaker.

Connect's `offset.storage.topic` has JSON: the key is a list of the connector's name and what it
calls a partition, the value what it calls an offset. A connector that reads Kafka has a topic and a
partition there, and the offset of the last record that it has passed on. Rules: docs/format.md
F1238 and F1239.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from kafkalog.messages.clients.mirror_records import Values, read_mirror_record


class Keeper(StrEnum):
    """Who keeps a position."""

    SPARK = "spark"
    DELTA = "delta"
    ICEBERG = "iceberg"
    PARQUET = "parquet"
    STREAMS = "streams"
    CONNECT = "connect"
    MIRROR_SYNC = "mirror_sync"
    MIRROR_CHECKPOINT = "mirror_checkpoint"


class KeptPosition(NamedTuple):
    """A position that `keeper` keeps at a place, `kept_in`, under a name: of a query, a connector
    or a group. All below `next_offset` is done. `planned_offset` is the end of a batch that is
    planned and not committed, `batch` the number of the last that is. `topic_id` is None where the
    keeper knows topics by names only."""

    keeper: Keeper
    kept_in: str
    name: str | None
    topic: str
    partition: int
    next_offset: int
    at_ms: int | None = None
    batch: int | None = None
    planned_offset: int | None = None
    topic_id: str | None = None


class TopicKind(StrEnum):
    """What a topic with positions has."""

    CONNECT_OFFSETS = "connect_offsets"
    OFFSET_SYNCS = "offset_syncs"
    CHECKPOINTS = "checkpoints"


def kind_of_topic(topic: str) -> TopicKind | None:
    """Return which positions a topic has by its name, None for any other topic."""
    if topic.startswith("mm2-offset-syncs.") or topic == "mm2-offset-syncs":
        return TopicKind.OFFSET_SYNCS
    if topic.endswith(".checkpoints.internal"):
        return TopicKind.CHECKPOINTS
    is_of_mirror = topic.startswith("mm2-offsets.")
    is_of_connect = topic.endswith("connect-offsets") or topic.startswith("connect-offsets")
    return TopicKind.CONNECT_OFFSETS if is_of_mirror or is_of_connect else None


class TopicPositions:
    """Takes the records of a topic with positions in the order of their offsets, and keeps the last
    of each key. `others` is how many keys are about something else than Kafka, `unread` how many
    records cannot be read."""

    def __init__(self, topic: str, kind: TopicKind) -> None:
        self._topic, self._kind = topic, kind
        self._last: dict[bytes, KeptPosition | None] = {}
        self.unread = 0

    def add(self, key: bytes | None, value: bytes | None, written_ms: int | None) -> None:
        """Take a record. A null value removes a key."""
        if key is None:
            self.unread += 1
            return
        if value is None:
            self._last.pop(key, None)
            return
        read = {
            TopicKind.CONNECT_OFFSETS: self._connect,
            TopicKind.OFFSET_SYNCS: self._sync,
            TopicKind.CHECKPOINTS: self._checkpoint,
        }[self._kind]
        try:
            self._last[key] = read(key, value, written_ms)
        except (ValueError, TypeError, KeyError):
            self.unread += 1

    @property
    def positions(self) -> list[KeptPosition]:
        """The positions in topics of Kafka."""
        return [each for each in self._last.values() if each is not None]

    @property
    def others(self) -> int:
        """How many keys are about something else."""
        return sum(each is None for each in self._last.values())

    def _connect(self, key: bytes, value: bytes, written_ms: int | None) -> KeptPosition | None:
        connector, place = json.loads(key)
        found = json.loads(value)
        if not isinstance(connector, str):
            raise TypeError("the connector has no name")
        if not _is_place(place) or type(found.get("offset")) is not int:
            return None
        if "group" in place:
            # MirrorMaker's checkpoints, whose offset is always 0.
            return None
        cluster = place.get("cluster")
        name = connector if cluster is None else f"{connector} of cluster {cluster}"
        next_offset = found["offset"] + 1
        return KeptPosition(
            *(Keeper.CONNECT, self._topic, name, place["topic"], place["partition"]),
            *(next_offset, written_ms),
        )

    def _sync(self, key: bytes, value: bytes, written_ms: int | None) -> KeptPosition:
        place, found = self._mirrors(key, value)
        name = f"copied up to offset {found['offset']} of the copy"
        # Both offsets are of a record that was copied.
        return KeptPosition(
            *(Keeper.MIRROR_SYNC, self._topic, name, place["topic"], place["partition"]),
            *(found["upstreamOffset"] + 1, written_ms),
        )

    def _checkpoint(self, key: bytes, value: bytes, written_ms: int | None) -> KeptPosition:
        place, found = self._mirrors(key, value)
        name = f"group {place['group']}, at {found['upstreamOffset']} in the source"
        return KeptPosition(
            *(Keeper.MIRROR_CHECKPOINT, self._topic, name, place["topic"], place["partition"]),
            *(found["offset"], written_ms),
        )

    def _mirrors(self, key: bytes, value: bytes) -> tuple[Values, Values]:
        read = read_mirror_record(self._topic, key, value)
        if read is None or read[1] is None:
            raise ValueError("not a record of MirrorMaker")
        return read[0], read[1]


def _is_place(place: Any) -> bool:
    is_known = isinstance(place, dict) and isinstance(place.get("topic"), str)
    return is_known and type(place.get("partition")) is int


def in_order(positions: Iterable[KeptPosition]) -> list[KeptPosition]:
    """Return positions by who keeps them and where, then by topic and partition."""
    return sorted(
        positions,
        key=lambda each: (each.keeper, each.kept_in, each.name or "", each.topic, each.partition),
    )
