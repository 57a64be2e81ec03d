"""The last record of each key in topics that programs keep their state in."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.messages.clients.connect_records import TopicRecord
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, Batches, Views

_COLUMNS = ("topic", "partition", "offset", "timestampMs", "key", "value")
_FOUND = pa.schema(
    [
        *(("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())),
        *(("timestampMs", pa.int64()), ("key", pa.binary()), ("value", pa.binary())),
    ]
)


def last_records(views: Views, logs: Sequence[PartitionLog]) -> list[TopicRecord]:
    """Return the last record of each key in each partition, in the order of topics, partitions and
    offsets, from the best replica of each; records without a key are left out. Raises OSError."""
    asked = AskedView("records", _COLUMNS, _last_of_keys, _FOUND, logs=best_logs(logs))
    (rows,) = views.rows(asked)
    last: dict[tuple[str, int, bytes], TopicRecord] = {}
    for row in rows:
        _keep(last, TopicRecord(*(row[name] for name in _COLUMNS)))
    return sorted(last.values())


def every_record(views: Views, logs: Sequence[PartitionLog]) -> list[TopicRecord]:
    """Return all records with a key, in the same order. Raises OSError."""
    (rows,) = views.rows(AskedView("records", _COLUMNS, logs=best_logs(logs)))
    found = (TopicRecord(*(row[name] for name in _COLUMNS)) for row in rows)
    return sorted(each for each in found if each.key is not None)


def topics_of(logs: Sequence[PartitionLog]) -> list[str]:
    """Return the names of the topics that the logs are of."""
    return sorted({log.topic for log in logs if log.topic is not None})


def _keep(last: dict[tuple[str, int, bytes], TopicRecord], record: TopicRecord) -> None:
    place = record.topic, record.partition, record.key
    if place not in last or last[place].offset < record.offset:
        last[place] = record


def _last_of_keys(batches: Batches) -> Batches:
    """Yield the last record of each key that a task reads."""
    last: dict[tuple[str, int, bytes], TopicRecord] = {}
    for batch in batches:
        for row in batch.to_pylist():
            if row["key"] is not None:
                _keep(last, TopicRecord(*(row[name] for name in _COLUMNS)))
    if last:
        columns = [
            pa.array(values, each.type)
            for each, values in zip(_FOUND, zip(*last.values(), strict=True), strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=_FOUND)
