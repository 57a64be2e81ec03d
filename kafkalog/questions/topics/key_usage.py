"""How many keys does each topic have, which are heavy, and which records repeat others?

By the records of the best replica of each partition, aborted ones too. Rules: docs/command-line.md
F1245 to F1247.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import distinct_rows
from kafkalog.columns.keys.key_hashes import SECRET_BYTES
from kafkalog.columns.keys.key_tally import TALLY_COLUMNS, TALLY_SCHEMA, KeyTally
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.storage.names import BROKERS_TOPICS, CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, Batches, Rows, RowsInMemory, Views
from kafkalog.words import counted, first_names

TABLE, HEAVY = "key_usage", "heavy_keys"
# So many keys of a topic have a row.
MOST_KEYS = 100
# A key is named if it has so much of its topic's bytes, and ten times what it had if all were
# alike.
_HEAVY_SHARE, _HEAVY_TIMES = 0.1, 10
_MOST_NAMES = 5
_PLACE = (("topic", pa.string()), ("partition", pa.int32()))
_FOUND = pa.schema([*_PLACE, *TALLY_SCHEMA])


@dataclass(frozen=True, slots=True)
class KeyUsageRequest:
    """The logs that are looked at, where these are not all but the topics of brokers."""

    logs: Sequence[PartitionLog] | None = None


@dataclass(frozen=True, slots=True)
class KeyUsage:
    """Rows of table `key_usage`, of partitions, and of `heavy_keys`; and the rows of topics."""

    partitions: Rows
    heavy: Rows
    topics: list[dict[str, Any]]

    def words(self) -> list[str]:
        """Return lines: how many keys there are, whose records repeat, which keys are heavy."""
        return [*self._lines()]

    def _lines(self) -> Iterator[str]:
        records = sum(row["records"] for row in self.topics)
        yield f"{counted(records, 'record')} of {counted(len(self.topics), 'topic')} read"
        keyless = [row["topic"] for row in self.topics if row["keyless_records"] == row["records"]]
        if keyless:
            yield f"no record has a key in {first_names(keyless, _MOST_NAMES)}"
        estimated = [row["topic"] for row in self.topics if not row["is_exact"]]
        if estimated:
            names = first_names(estimated, _MOST_NAMES)
            yield f"the number of keys is an estimate, within 1 percent, for {names}"
        resent = [row for row in self.topics if row["resent_records"]]
        for row in resent[:_MOST_NAMES]:
            yield (
                f"{row['topic']}: {counted(row['resent_records'], 'record')} with the key, value "
                "and time of one shortly before, as retries without enable.idempotence leave them"
            )
        shares = [
            (row["topic"], row["heaviest_key_share"] or 0, row["distinct_keys"])
            for row in self.topics
        ]
        heavy = [
            f"{topic} ({share:.0%} of its bytes, 1 key of {keys:,})"
            for topic, share, keys in shares
            if share >= _HEAVY_SHARE and share * keys >= _HEAVY_TIMES
        ]
        if heavy:
            names = first_names(heavy, _MOST_NAMES)
            yield f"one key has much of a topic: {names}; --by key shows the keys"


def key_usage(views: Views, request: KeyUsageRequest) -> KeyUsage:
    """Return what the keys of topics come to."""
    kept = {*BROKERS_TOPICS, CLUSTER_METADATA}
    given = views.logs if request.logs is None else request.logs
    logs = [log for log in best_logs(given) if request.logs is not None or log.topic not in kept]
    reduce = _Tallied(os.urandom(SECRET_BYTES))
    columns = ("topic", "partition", *TALLY_COLUMNS)
    (found,) = views.rows(AskedView("records", columns, reduce, _FOUND, logs=logs))
    tallies: dict[tuple[str, int], KeyTally] = {}
    in_order = sorted(found, key=lambda row: (row["topic"], row["partition"], row["first_offset"]))
    for row in in_order:
        place = row["topic"], row["partition"]
        known = tallies.get(place)
        if known is None:
            tallies[place] = KeyTally.of(row)
        else:
            known.merge(row)
    return _answer(tallies)


@dataclass(frozen=True, slots=True)
class _Tallied:
    """Sums up the records of a task by partition."""

    secret: bytes

    def __call__(self, batches: Batches) -> Batches:
        tallies: dict[tuple[str, int], KeyTally] = {}
        for batch in batches:
            codes, firsts = distinct_rows(pa.Table.from_batches([batch.select([0, 1])]))
            for code, first in enumerate(firsts):
                place = tuple(batch.column(name)[int(first)].as_py() for name, _ in _PLACE)
                tally = tallies.setdefault(place, KeyTally(self.secret))
                is_all = len(firsts) == 1
                tally.add(batch if is_all else batch.take(pa.array(np.flatnonzero(codes == code))))
        for (topic, partition), tally in tallies.items():
            row = {"topic": topic, "partition": partition, **tally.row()}
            columns = [pa.array([row[each.name]], each.type) for each in _FOUND]
            yield pa.RecordBatch.from_arrays(columns, schema=_FOUND)


def _answer(tallies: dict[tuple[str, int], KeyTally]) -> KeyUsage:
    partitions, heavy = [], []
    by_topic: dict[str, KeyTally] = {}
    # Of each key the partitions that have it.
    places: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (topic, partition), tally in sorted(tallies.items(), key=str):
        partitions.append({"topic": topic, "partition": partition, **_row(tally)})
        if topic not in by_topic:
            by_topic[topic] = KeyTally.of(tally.row())
        else:
            by_topic[topic].merge(tally.row(), follows=False)
        for key in tally.heavy.hashes.tolist():
            places[topic][key].append(partition)
    topics = []
    for topic, tally in by_topic.items():
        count = sum(place[0] == topic for place in tallies)
        topics.append({"topic": topic, "partitions": count, **_row(tally)})
        heavy += [*_heavy_rows(topic, tally, places[topic])]
    topics.sort(key=lambda row: -row["bytes"])
    return KeyUsage(RowsInMemory.of(TABLE, partitions), RowsInMemory.of(HEAVY, heavy), topics)


def _row(tally: KeyTally) -> dict[str, Any]:
    return {
        "records": tally.records,
        "distinct_keys": tally.distinct.count,
        "is_exact": not tally.distinct.level,
        "keyless_records": tally.keyless,
        "tombstones": tally.tombstones,
        "repeated_records": tally.repeats.count,
        "resent_records": tally.resent.count,
        "bytes": tally.bytes,
        "heaviest_key_share": _share(int(tally.heavy.bytes.max()), tally)
        if len(tally.heavy.bytes)
        else None,
        "largest_record_bytes": None if tally.largest_bytes < 0 else tally.largest_bytes,
        "largest_record_offset": None if tally.largest_offset < 0 else tally.largest_offset,
    }


def _heavy_rows(
    topic: str, tally: KeyTally, places: dict[int, list[int]]
) -> Iterator[dict[str, Any]]:
    heavy = tally.heavy
    heavy.settle()
    keys = heavy.keys.to_pylist()
    # The hashes of keys, and so their order, change from run to run.
    in_order = sorted(range(len(keys)), key=lambda number: (-heavy.bytes[number], keys[number]))
    for number in in_order[:MOST_KEYS]:
        size = int(heavy.bytes[number])
        own = places[int(heavy.hashes[number])]
        yield {
            "topic": topic,
            # What follows is of the whole topic.
            "partition": own[0] if len(own) == 1 else None,
            "key": keys[number],
            "records": int(heavy.records[number]),
            "bytes": size,
            "missed_bytes": heavy.missed,
            "share": _share(size, tally),
        }


def _share(size: int, tally: KeyTally) -> float | None:
    return round(size / tally.bytes, 4) if tally.bytes else None
