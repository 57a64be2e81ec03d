"""What ZooKeeper and Kafka each have of the offsets of groups: a pair of both for each partition.

Rules: docs/migration.md F470 and F484.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafkalog.coordination.groups.commit_status import offsets_partition_of
from kafkalog.inspection.logs.log_offsets import earliest_offset, log_end_offset
from kafkalog.storage.names import INTERNAL_TOPICS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.oldest_log import is_oldest_layout

# Kafka 0.7 kept a partition on one broker, and offsets were places in its log.
_OF_OLDEST = "an offset of Kafka 0.7: a place in the log of one broker"
_Row = Mapping[str, Any]
_Place = tuple[Any, Any, Any]
_KEY = ("group_id", "topic", "partition")
_NO_ZNODE = dict.fromkeys(
    ("zookeeper_offset", "zookeeper_mtime_ms", "znode", "znode_version", "detail")
)


def offset_pairs(
    zookeeper_offsets: Iterable[_Row], commits: Iterable[_Row], offsets_partitions: int | None
) -> list[dict[str, Any]]:
    """Return a row per group, topic and partition that either store has, with what it has.

    `zookeeper_offsets` are rows of view `consumer_offsets`, `commits` those in effect, of one
    cluster. Where the number of partitions of `__consumer_offsets` is known, commits in another
    than the group's do not count (F484). Znodes that Kafka 0.7 left have rows of their own: byte
    positions do not replace Kafka's offset of the partition.
    """
    places = {
        group_id: offsets_partition_of(group_id, offsets_partitions)
        for group_id in {row["group_id"] for row in (*zookeeper_offsets, *commits)}
        if group_id is not None and offsets_partitions is not None
    }
    in_kafka = {
        _place(row): row
        for row in commits
        if row["committed_offset"] is not None
        and row["internal_partition"] == places.get(row["group_id"], row["internal_partition"])
    }
    pairs = [_pair_of(znode, in_kafka) for znode in zookeeper_offsets]
    with_znodes = {_place(znode) for znode in zookeeper_offsets if znode["broker_id"] is None}
    pairs += [
        {**_NO_ZNODE, **_commit(commit), **dict(zip(_KEY, place, strict=True))}
        for place, commit in in_kafka.items()
        if place not in with_znodes
    ]
    return [{**pair, "offsets_partition": places.get(pair["group_id"])} for pair in pairs]


def _pair_of(znode: _Row, in_kafka: Mapping[_Place, _Row]) -> dict[str, Any]:
    is_of_today = znode["broker_id"] is None
    detail = znode["detail"] if is_of_today else _OF_OLDEST
    return {
        **dict(zip(_KEY, _place(znode), strict=True)),
        **_commit(in_kafka.get(_place(znode)) if is_of_today else None),
        "zookeeper_offset": znode["committed_offset"] if detail is None else None,
        "zookeeper_mtime_ms": znode["mtime_ms"],
        "znode": znode["path"],
        "znode_version": znode["znode_version"],
        "detail": detail,
    }


def _commit(commit: _Row | None) -> dict[str, Any]:
    names = {"kafka_offset": "committed_offset", "commit_timestamp_ms": "commit_timestamp_ms"}
    return {name: commit and commit[of] for name, of in names.items()}


def _place(row: _Row) -> _Place:
    return row["group_id"], row["topic"], row["partition"]


def in_order(row: _Row) -> tuple[str, str, int, int]:
    """Return what rows of pairs are sorted by."""
    version = row["znode_version"]
    numbers = row["partition"], -1 if version is None else version
    partition, version = (-1 if number is None else number for number in numbers)
    return row["group_id"] or "", row["topic"] or "", partition, version


def _log_ends(logs: Iterable[PartitionLog]) -> dict[tuple[str | None, int | None], tuple[int, int]]:
    """Return by topic and partition where logs begin and end, over all replicas."""
    found: dict[tuple[str | None, int | None], tuple[int, int]] = {}
    for log in logs:
        start, end = earliest_offset(log), log_end_offset(log, check_crcs=False)
        first, last = found.get((log.topic, log.partition), (start, end))
        found[log.topic, log.partition] = min(first, start), max(last, end)
    return found


def with_log_ends(
    pairs: Sequence[dict[str, Any]], logs: Iterable[PartitionLog], topics: Iterable[_Row]
) -> Iterator[dict[str, Any]]:
    """Yield the pairs with log_start_offset and log_end_offset, None where no log is there, and
    has_topic: whether the logs or ZooKeeper have the topic. Of other logs no file is opened."""
    found = [
        log
        for log in logs
        if log.is_live and log.topic not in INTERNAL_TOPICS and not is_oldest_layout(log)
    ]
    known = {log.topic for log in found} | {row["topic"] for row in topics}
    places = {(pair["topic"], pair["partition"]) for pair in pairs}
    ends = _log_ends(log for log in found if (log.topic, log.partition) in places)
    for pair in pairs:
        start, end = ends.get((pair["topic"], pair["partition"]), (None, None))
        yield {
            **pair,
            "log_start_offset": start,
            "log_end_offset": end,
            "has_topic": pair["topic"] is not None and pair["topic"] in known,
        }
