"""The state of a cluster by the records of `__cluster_metadata`: the image, as controllers call it.

What each record does to it is in metadata_records.py. Rules: docs/format.md F760 to F763.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafkalog.format.offsets import LARGEST_OFFSET

Values = Mapping[str, Any]
Key = tuple[Any, ...]
Row = Mapping[str, Any]

# The columns of each table's key. A table has one row for each key.
KEYS: Mapping[str, tuple[str, ...]] = {
    "topic": ("topic_id",),
    "partition": ("topic_id", "partition"),
    "broker": ("broker_id",),
    "controller": ("controller_id",),
    "config": ("resource_type", "resource_name", "name"),
    "acl": ("acl_id",),
    "user": ("user", "mechanism"),
    "quota": ("entity", "quota"),
    "feature": ("feature",),
    "token": ("token_id",),
    "producer_ids": (),
    "zookeeper_migration": (),
    "voter": ("voter_id", "voter_directory_id"),
    "leader": (),
}
# Snapshots do not have these, only the log has.
LOG_ONLY = frozenset(("leader",))
# Of these the rows that share all of the key but its end are found together.
_GROUPED = frozenset(("partition", "config"))
KRAFT_VERSION = "kraft.version"


_LAST_MS = 2**63 - 1


class Moment(NamedTuple):
    """The records below `end_offset` that were written up to `time_ms`."""

    end_offset: int = LARGEST_OFFSET
    time_ms: int = _LAST_MS

    def includes(self, offset: int, time_ms: int) -> bool:
        """Return whether a record with this offset and time is one of them."""
        return offset < self.end_offset and time_ms <= self.time_ms


END = Moment()
START = Moment(0)


class Change(NamedTuple):
    """What a record did to a row: `old` is None for a new one, `new` for one that was removed.
    `topic` is the name of the topic that it is about, if any."""

    table: str
    key: Key
    old: Row | None
    new: Row | None
    topic: str | None


class Remark(NamedTuple):
    """Why a record had no effect: it is not known, cannot be read, or contradicts the image."""

    offset: int
    record_name: str | None
    detail: str
    is_contradiction: bool = False


class ContradictionError(Exception):
    """A record about something that the image does not have."""


@dataclass
class MetadataImage:
    """Rows of each table by their keys, both with the columns that views and commands have."""

    tables: dict[str, dict[Key, Row]] = field(default_factory=lambda: {table: {} for table in KEYS})
    remarks: list[Remark] = field(default_factory=list)
    # The ids of topics by their names.
    _topic_ids: dict[str, str] = field(default_factory=dict)
    _groups: defaultdict[Key, dict[Key, None]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def contradictions(self) -> list[Remark]:
        """The remarks about records that contradict those before them."""
        return [each for each in self.remarks if each.is_contradiction]

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table, with the columns of their keys."""
        for key, row in self.tables[table].items():
            yield {**dict(zip(KEYS[table], key, strict=True)), **row}

    def topic_of(self, table: str, key: Key) -> str | None:
        """Return the name of the topic that a row is about; None for other rows."""
        if table == "config":
            return key[1] if key[0] == "topic" else None
        row = self.tables["topic"].get(key[:1]) if table in ("topic", "partition") else None
        return None if row is None else row["topic"]

    def put(self, table: str, key: Key, row: Row) -> Change:
        """Set a row."""
        rows = self.tables[table]
        old, rows[key] = rows.get(key), row
        if table == "topic":
            self._topic_ids[row["topic"]] = key[0]
        if table in _GROUPED:
            self._groups[(table, *key[:-1])][key] = None
        return Change(table, key, old, row, self.topic_of(table, key))

    def remove(self, table: str, key: Key) -> Change:
        """Remove a row, if it is there."""
        topic = self.topic_of(table, key)
        old = self.tables[table].pop(key, None)
        if table == "topic" and old is not None and self.id_of_topic(old["topic"]) == key[0]:
            del self._topic_ids[old["topic"]]
        if table in _GROUPED:
            self._groups[(table, *key[:-1])].pop(key, None)
        return Change(table, key, old, None, topic)

    def group(self, table: str, *beginning: Any) -> list[Key]:
        """Return the keys of a table that begin so."""
        return list(self._groups.get((table, *beginning), ()))

    def id_of_topic(self, topic: str) -> str | None:
        """Return the id of the topic of a name."""
        return self._topic_ids.get(topic)

    def existing(self, table: str, *key: Any) -> Row:
        """Return a row that a record speaks of."""
        row = self.tables[table].get(key)
        if row is None:
            named_key = ", ".join(f"{n} {v}" for n, v in zip(KEYS[table], key, strict=True))
            raise ContradictionError(f"there is no {table} with {named_key}")
        return row


def differences(old: MetadataImage, new: MetadataImage) -> Iterator[Change]:
    """Yield what makes one image into the other, whichever records did."""
    for table in KEYS:
        if table in LOG_ONLY:
            continue
        before, after = old.tables[table], new.tables[table]
        for key in [*before, *(key for key in after if key not in before)]:
            if before.get(key) != after.get(key):
                topic = (new if key in after else old).topic_of(table, key)
                yield Change(table, key, before.get(key), after.get(key), topic)
