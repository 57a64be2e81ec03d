"""Which schema ids do the records of each topic name, and which schemas are they?

Confluent's serializers write the id before the payload, or a GUID into a header. Rules:
docs/format.md F285 to F291, docs/command-line.md F1159, F1160 and F1320.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import binaries
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.columns.table_rows import grouped, table_batch
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.messages.clients.mirror_records import mirror_kind, read_mirror_record
from kafkalog.messages.schema_registry import (
    SCHEMAS_TOPIC,
    RegisteredSchema,
    SchemaRegistry,
    read_schema_registry,
)
from kafkalog.storage.names import BROKERS_TOPICS, CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, Batches, Rows, RowsInMemory, Views
from kafkalog.words import counted, first_names

TABLE = "schema_ids"
PREFIX, HEADER = "prefix", "header"
# Rows that count all payloads of a field, whatever they begin with.
_PAYLOADS = "payloads"
UNKNOWN = "unknown"
_HEADERS = {"__key_schema_id": "key", "__value_schema_id": "value"}
_PREFIX_BYTES, _GUID_BYTES = 5, 17
_GUID_VERSION = 1
# Payloads of other formats can begin with a zero byte: more ids than this in a partition are none.
_MOST_IDS = 1000
_MOST_NAMES = 5
# A topic whose serializer writes ids has more of them than one in so many payloads.
_FEW = 100
_COLUMNS = ("topic", "partition", "offset", "timestampMs", "key", "value", "headers")
_NAMED = ("topic", "partition", "field", "framing", "schema_id", "guid")
_FOUND = pa.schema(
    [
        *(("topic", pa.string()), ("partition", pa.int32()), ("field", pa.string())),
        *(("framing", pa.string()), ("schema_id", pa.int64()), ("guid", pa.string())),
        *(("records", pa.int64()), ("first_offset", pa.int64()), ("last_offset", pa.int64())),
        *(("first_timestamp_ms", pa.int64()), ("last_timestamp_ms", pa.int64())),
    ]
)
_SUMS = {
    "records": "sum",
    "first_offset": "min",
    "last_offset": "max",
    "first_timestamp_ms": "min",
    "last_timestamp_ms": "max",
}


@dataclass(frozen=True, slots=True)
class SchemaIdsRequest:
    """The logs that are looked at, where these are not all but the topics of brokers."""

    logs: Sequence[PartitionLog] | None = None


@dataclass(frozen=True, slots=True)
class SchemaIds:
    """Rows of table `schema_ids`; the registry's state, None without the topic `_schemas`; and how
    many keys and values were read."""

    rows: Rows
    registry: SchemaRegistry | None
    payloads: int

    @property
    def has_findings(self) -> bool:
        """Whether an id is in use that the registry does not know."""
        return any(row["state"] == UNKNOWN for row in self.rows)

    def by_topic(self) -> list[dict[str, Any]]:
        """Return the rows of all partitions of a topic as one; offsets are of the partition that
        has the first and the last of them by time."""
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in self.rows:
            place = tuple(row[name] for name in ("topic", *_NAMED[2:]))
            sums = {"records": 0, "field_records": 0, "partitions": 0}
            known = found.setdefault(place, {**row, **sums})
            known["records"] += row["records"]
            known["field_records"] += row["field_records"]
            known["partitions"] += 1
            for name, choose in (("first_timestamp_ms", min), ("last_timestamp_ms", max)):
                times = [each for each in (known[name], row[name]) if each is not None]
                known[name] = choose(times, default=None)
        return list(found.values())

    def schemas(self) -> list[dict[str, Any]]:
        """Return a row for each schema of the registry, with the topics that it is used in."""
        if self.registry is None:
            return []
        topics: dict[int, dict[str, int]] = {}
        for row in self.rows:
            if row["schema_id"] is not None:
                used = topics.setdefault(row["schema_id"], {})
                used[row["topic"]] = used.get(row["topic"], 0) + row["records"]
        return [
            {
                "subject": schema.subject,
                "version": schema.version,
                "schema_id": schema.schema_id,
                "schema_type": schema.schema_type,
                "state": schema.state.value,
                "records": sum(topics.get(schema.schema_id, {}).values()),
                "topics": sorted(topics.get(schema.schema_id, {})),
            }
            for _, schema in sorted(self.registry.by_version.items())
        ]

    def words(self) -> list[str]:
        """Return lines: how many ids are in use, which have no schema, and which schemas are in no
        topic."""
        return [*self._lines()]

    def _lines(self) -> Iterator[str]:
        rows = [*self.rows]
        ids = {row["schema_id"] for row in rows if row["schema_id"] is not None}
        guids = {row["guid"] for row in rows if row["guid"] is not None}
        topics = counted(len({row["topic"] for row in rows}), "topic")
        by_guid = f" and {counted(len(guids), 'GUID')}" if guids else ""
        yield (
            f"{counted(len(ids), 'schema id')}{by_guid} in use in {topics}: "
            f"{self.payloads:,} keys and values were read"
        )
        yield from self.notes()

    def notes(self) -> Iterator[str]:
        """Yield lines about what the rows do not show: doubtful ids, those without a schema, and
        schemas in no topic."""
        rows = [*self.rows]
        doubtful = self._doubtful()
        if doubtful:
            yield (
                f"perhaps none: {first_names(doubtful, _MOST_NAMES)}: payloads of other formats "
                "can begin as these few do"
            )
        if self.registry is None and not rows:
            return
        if self.registry is None:
            yield f"which schemas they are is not known: the input has no topic {SCHEMAS_TOPIC}"
            return
        unknown = [row for row in self.by_topic() if row["state"] == UNKNOWN]
        if unknown:
            names = first_names([f"{row['schema_id']} in {row['topic']}" for row in unknown], 5)
            yield (
                f"without a schema: {names}: these ids are of another registry or context, or the "
                "payloads are not Confluent's"
            )
        unused = [row for row in self.schemas() if not row["records"] and row["state"] != "removed"]
        if unused:
            names = first_names(
                [f"{row['subject']} version {row['version']}" for row in unused], _MOST_NAMES
            )
            yield f"{counted(len(unused), 'schema')} in no record that is here: {names}"
        if self.registry.unreadable:
            count = counted(len(self.registry.unreadable), "record")
            yield f"not read: {count} of {SCHEMAS_TOPIC} that a registry did not write"

    def _doubtful(self) -> list[str]:
        """Return the topics in which few payloads begin with an id. Rule: F1320."""
        found: dict[tuple[str, str], Counter[str]] = {}
        for row in self.rows:
            if row["framing"] == PREFIX:
                counts = found.setdefault((row["topic"], row["field"]), Counter())
                counts["records"] += row["records"]
                counts[f"in {row['partition']}"] = row["field_records"]
        return [
            f"{topic} ({records:,} of {counted(whole, field)})"
            for (topic, field), counts in sorted(found.items())
            if (records := counts.pop("records")) * _FEW < (whole := sum(counts.values()))
        ]


def schema_ids(views: Views, request: SchemaIdsRequest) -> SchemaIds:
    """Return the ids that records name, by the best replica of each partition."""
    kept = {*BROKERS_TOPICS, CLUSTER_METADATA, SCHEMAS_TOPIC}
    logs = [
        log
        for log in best_logs(views.logs if request.logs is None else request.logs)
        if log.topic not in kept
    ]
    of_registry = [log for log in best_logs(views.logs) if log.topic == SCHEMAS_TOPIC]
    found, records = views.rows(
        AskedView("records", _COLUMNS, _named_schemas, _FOUND, logs=logs),
        AskedView(
            "records",
            ("key", "value", "offset"),
            options={"subscribe": SCHEMAS_TOPIC},
            logs=of_registry,
        ),
    )
    registry = None
    if of_registry:
        in_order = sorted((row["offset"], row["key"], row["value"]) for row in records)
        registry = read_schema_registry(in_order)
    table = grouped([found.table], _FOUND, _SUMS)
    counts = pc.if_else(pc.equal(table["framing"], _PAYLOADS), table["records"], 0)
    return SchemaIds(_rows(table, registry), registry, pc.sum(counts).as_py() or 0)


def _rows(found: pa.Table, registry: SchemaRegistry | None) -> Rows:
    is_count = pc.equal(found["framing"], _PAYLOADS)
    counts = {
        (row["topic"], row["partition"], row["field"]): row["records"]
        for row in found.filter(is_count).to_pylist()
    }
    named = found.filter(pc.invert(is_count))
    rows = [
        {
            **row,
            **_of_schema(row["schema_id"], registry),
            "field_records": counts[row["topic"], row["partition"], row["field"]],
        }
        for row in named.sort_by([(name, "ascending") for name in _NAMED]).to_pylist()
    ]
    return RowsInMemory(pa.Table.from_batches([table_batch(TABLE, rows, {})]))


def _of_schema(schema_id: int | None, registry: SchemaRegistry | None) -> Mapping[str, Any]:
    """Return what a registry says of an id. A GUID is a digest that no record has (F286)."""
    if schema_id is None or registry is None:
        return {}
    schema: RegisteredSchema | None = registry.by_id.get(schema_id)
    if schema is None:
        return {"state": UNKNOWN}
    return {
        "subject": schema.subject,
        "version": schema.version,
        "schema_type": schema.schema_type,
        "state": schema.state.value,
    }


def _named_schemas(batches: Batches) -> Batches:
    """Yield the ids that the records of a task name, each once for each partition and field."""
    kept: list[pa.Table] = []
    for batch in batches:
        kept += _of_batch(batch)
        if len(kept) > _MOST_IDS:
            kept = [_limited(grouped(kept, _FOUND, _SUMS))]
    yield from _limited(grouped(kept, _FOUND, _SUMS)).to_batches()


def _of_batch(batch: pa.RecordBatch) -> Iterator[pa.Table]:
    batch = _without_mirrors(batch)
    named = _in_headers(batch)
    for field in ("key", "value"):
        present = np.flatnonzero(pc.is_valid(batch.column(field)).to_numpy(zero_copy_only=False))
        yield _found(batch, present, field, _PAYLOADS, None, None)
        rows, guids = named[field]
        if len(rows):
            yield _found(batch, rows, field, HEADER, None, guids)
        is_named, ids = prefix_ids(batch.column(field))
        is_named[rows] = False
        rows = np.flatnonzero(is_named)
        if len(rows):
            yield _found(batch, rows, field, PREFIX, pa.array(ids[rows]), None)


def _without_mirrors(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the records without those of MirrorMaker: its keys begin with a version, int16, and
    the length of a text, of which the first byte is zero too. Rule: F1320."""
    if not any(mirror_kind(topic) for topic in pc.unique(batch.column("topic")).to_pylist()):
        return batch
    taken = (batch.column(name).to_pylist() for name in ("topic", "key", "value"))
    is_other = [read_mirror_record(*record) is None for record in zip(*taken, strict=True)]
    return batch.filter(pa.array(is_other, pa.bool_()))


def prefix_ids(payloads: pa.Array) -> tuple[BoolArray, LongArray]:
    """Return which payloads begin with a zero byte and an id that can be one (F285), and the
    ids."""
    data, offsets, is_present = binaries(payloads)
    starts = offsets[:-1]
    is_named: BoolArray = is_present & (np.diff(offsets) >= _PREFIX_BYTES)
    ids = np.zeros(len(payloads), dtype=np.int64)
    rows = np.flatnonzero(is_named)
    if len(rows):
        for place in range(1, _PREFIX_BYTES):
            ids[rows] = ids[rows] << 8 | data[starts[rows] + place]
        is_named[rows] &= data[starts[rows]] == 0
    return is_named & (ids > 0) & (ids < 2**31), ids


def _in_headers(batch: pa.RecordBatch) -> dict[str, tuple[LongArray, pa.Array]]:
    """Return the rows whose headers name a schema by its GUID, and the GUIDs, by field."""
    headers = batch.column("headers")
    entries = headers.flatten()
    parents = pc.list_parent_indices(headers)
    found: dict[str, tuple[LongArray, pa.Array]] = {}
    for name, field in _HEADERS.items():
        is_meant = pc.equal(entries.field("key"), name)
        guids: dict[int, str] = {}
        if pc.any(is_meant).as_py():
            values = entries.field("value").filter(is_meant).to_pylist()
            for row, value in zip(parents.filter(is_meant).to_pylist(), values, strict=True):
                if value and value[0] == _GUID_VERSION and len(value) >= _GUID_BYTES:
                    guids[row] = str(uuid.UUID(bytes=bytes(value[1:_GUID_BYTES])))
        rows = np.array(list(guids), dtype=np.int64)
        found[field] = rows, pa.array(list(guids.values()), pa.string())
    return found


def _found(
    batch: pa.RecordBatch,
    rows: LongArray,
    field: str,
    framing: str,
    ids: pa.Array | None,
    guids: pa.Array | None,
) -> pa.Table:
    """Return what these rows name, summed up."""
    taken = batch.select(("topic", "partition", "offset", "timestampMs")).take(pa.array(rows))
    count = len(rows)
    offsets, times = taken.column("offset"), taken.column("timestampMs")
    columns = [
        taken.column("topic"),
        taken.column("partition"),
        pa.repeat(field, count),
        pa.repeat(framing, count),
        pa.nulls(count, pa.int64()) if ids is None else ids,
        pa.nulls(count, pa.string()) if guids is None else guids,
        pa.repeat(pa.scalar(1, pa.int64()), count),
        *(offsets, offsets, times, times),
    ]
    return grouped([pa.Table.from_arrays(columns, schema=_FOUND)], _FOUND, _SUMS)


def _limited(found: pa.Table) -> pa.Table:
    """Return the ids without those of partitions that have too many for schema ids: one row is
    left of these, without an id."""
    counts = found.group_by(["topic", "partition", "field", "framing"]).aggregate(
        [([], "count_all")]
    )
    if not len(counts) or pc.max(counts["count_all"]).as_py() <= _MOST_IDS:
        return found
    many = {
        tuple(row[name] for name in _NAMED[:4])
        for row in counts.to_pylist()
        if row["count_all"] > _MOST_IDS
    }
    rows = found.to_pylist()
    for row in rows:
        if tuple(row[name] for name in _NAMED[:4]) in many:
            row["schema_id"] = row["guid"] = None
    columns = [pa.array([row[each.name] for row in rows], each.type) for each in _FOUND]
    return grouped([pa.Table.from_arrays(columns, schema=_FOUND)], _FOUND, _SUMS)
