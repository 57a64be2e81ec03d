"""What lies on disk by topic, from view `segments`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from kafkalog.report.contents import Row, StorageSection
from kafkalog.views.engine import AskedView

# Column `status` of what a broker that starts has in its log: F645.
_SERVED = frozenset(("active", "live", "takes_over"))
_COLUMNS = (
    *("cluster_id", "broker_id", "topic", "partition", "directory", "status", "size"),
    *("first_timestamp_ms", "max_timestamp_ms", "last_offset"),
)


def asked_segments() -> AskedView:
    """Return the view that has a row for each segment."""
    return AskedView("segments", _COLUMNS)


def storage_section(segments: Sequence[Row], topics: int) -> StorageSection:
    """Return the clusters and brokers that the files are of; the `topics` largest topics: bytes,
    segments, partitions, copies (partitions, each replica counted), the first and largest timestamp
    by the headers; what all topics come to; and the log files that no broker serves any more."""
    served = [row for row in segments if row.status in _SERVED]
    by_topic: dict[str | None, list[Row]] = defaultdict(list)
    for row in served:
        by_topic[row.topic].append(row)
    totals = [_topic(topic, found) for topic, found in by_topic.items()]
    totals.sort(key=lambda row: (-row.bytes, row.topic is not None, row.topic or ""))
    rest = [row for row in segments if row.status not in _SERVED and row.size is not None]
    owners = {(row.cluster_id, row.broker_id) for row in segments}
    return StorageSection(
        [Row(cluster_id=cluster, broker_id=broker) for cluster, broker in sorted(owners, key=str)],
        totals[:topics],
        Row(
            topics=len(totals),
            **{
                name: sum(row[name] for row in totals)
                for name in ("partitions", "copies", "segments", "bytes")
            },
        ),
        Row(segments=len(rest), bytes=sum(row.size for row in rest)),
    )


def _topic(topic: str | None, segments: Sequence[Row]) -> Row:
    return Row(
        topic=topic,
        copies=len({row.directory for row in segments}),
        partitions=len({row.partition for row in segments} - {None}),
        segments=len(segments),
        bytes=sum(row.size or 0 for row in segments),
        first_timestamp_ms=min(_known(segments, "first_timestamp_ms"), default=None),
        max_timestamp_ms=max(_known(segments, "max_timestamp_ms"), default=None),
    )


def _known(segments: Sequence[Row], name: str) -> list[int]:
    return [row[name] for row in segments if row[name] is not None]


def longest_copies(segments: Iterable[Row]) -> frozenset[str]:
    """Return the directory of each partition's longest replica: it reaches furthest, and of such it
    has most bytes. A file in a directory of another name is a partition of its own. F637"""
    reach: dict[tuple[str | None, int | None, str], tuple[int, int]] = {}
    for row in segments:
        if row.status in _SERVED:
            key = (row.topic, row.partition, row.directory)
            last, size = reach.get(key, (-1, 0))
            own = -1 if row.last_offset is None else row.last_offset
            reach[key] = max(last, own), size + (row.size or 0)
    longest: dict[object, tuple[tuple[int, int], str]] = {}
    for (topic, partition, directory), far in reach.items():
        of = (topic, partition) if topic is not None else directory
        longest[of] = max(longest.get(of, (far, directory)), (far, directory))
    return frozenset(directory for _, directory in longest.values())
