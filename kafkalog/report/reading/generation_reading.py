"""The last generations of groups, from view `group_metadata`. Rule: docs/format.md F339."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafkalog.coordination.groups.group_records import CLASSIC_RECORD, GROUP_RECORDS, MEMBER_RECORDS
from kafkalog.report.contents import Row, as_rows
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.views.engine import Batches, Views, rows_of_view

_COLUMNS = (
    *("cluster_id", "group_id", "record_type", "record_offset", "record_timestamp_ms"),
    *("is_tombstone", "group_type", "epoch", "member_id", "members"),
)
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("cluster_id", "group_id", "state")),
        *((name, pa.int64()) for name in ("at_ms", "generation", "members")),
    ]
)
_Key = tuple[str | None, str]


def read_generations(views: Views, groups: Collection[_Key], most: int) -> list[Row]:
    """Return the last `most` generations of each of these groups: group_id, at_ms, generation,
    members, and state, None where its record does not have it."""
    table = rows_of_view(
        views,
        "group_metadata",
        _COLUMNS,
        Generations(groups, most),
        _SCHEMA,
        {"subscribe": CONSUMER_OFFSETS},
    )
    return sorted(as_rows(table), key=lambda row: (row.group_id, row.at_ms))


@dataclass(frozen=True, slots=True)
class Generations:
    """Finds the generations in a task's records, which are in the order of their log."""

    groups: Collection[_Key]
    most: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the last generations of each group."""
        members: dict[_Key, set[str]] = defaultdict(set)
        found: dict[_Key, deque[dict[str, Any]]] = defaultdict(lambda: deque(maxlen=self.most))
        for batch in batches:
            for record in batch.to_pylist():
                key = record["cluster_id"], record["group_id"]
                if key not in self.groups:
                    continue
                if record["record_type"] in MEMBER_RECORDS:
                    change = set.discard if record["is_tombstone"] else set.add
                    change(members[key], record["member_id"])
                elif record["record_type"] in GROUP_RECORDS:
                    found[key].append(_generation(record, len(members[key])))
        rows = [row for generations in found.values() for row in generations]
        yield pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)


def _generation(record: dict[str, Any], joined: int) -> dict[str, Any]:
    is_classic = record["record_type"] == CLASSIC_RECORD
    listed = record["members"]
    members = (None if listed is None else len(listed)) if is_classic else joined
    names = ("cluster_id", "group_id")
    return {
        **{name: record[name] for name in names},
        "at_ms": record["record_timestamp_ms"],
        "generation": record["epoch"],
        "members": None if record["is_tombstone"] else members,
        "state": _state(record, members),
    }


def _state(record: dict[str, Any], members: int | None) -> str | None:
    if record["is_tombstone"]:
        return "Dead"
    if not members:
        return None if members is None else "Empty"
    # The state of others is in records of their members.
    return "Stable" if record["group_type"] in ("classic", "share") else None
