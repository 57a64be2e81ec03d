"""The contents and sizes of logs, segment by segment, read by several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kafkalog.inspection.partitions.segment_storage import Storage, segment_storage
from kafkalog.inspection.partitions.wrong_times import SegmentTimes
from kafkalog.storage.log_dir.other_entries import side_bytes
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.reading.renamed_files import note_deleted_segment
from kafkalog.views.parallel import in_order

_Item = tuple[PartitionLog, SegmentFile]


class StoredLog(NamedTuple):
    """A log, the bytes of the files beside its segments, and the contents of each segment."""

    log: PartitionLog
    side_bytes: int
    segments: list[tuple[SegmentFile, Storage]]


def storage_rows(
    logs: Sequence[PartitionLog],
    *,
    is_quick: bool,
    is_deep: bool,
    processes: int,
    on_done: Callable[[int], None],
) -> list[StoredLog]:
    """Return the logs in their order: names and sizes if `is_quick`, otherwise what batch headers
    have, and all payloads if `is_deep`. `on_done` is called with the number of bytes that have been
    read. Segments that are deleted meanwhile are left out; Kafka 0.7's layout has sizes only."""

    def storage(item: _Item) -> Iterator[Storage | None]:
        log, segment = item
        if is_quick or is_oldest_layout(log):
            yield Storage(segment.size, batches=0, records=None)
            return
        try:
            yield segment_storage(segment, decompress=is_deep)
        except FileNotFoundError:
            note_deleted_segment(segment)
            yield None

    items = [(log, segment) for log in logs for segment in log.segments]
    found: dict[int, list[tuple[SegmentFile, Storage]]] = {id(log): [] for log in logs}
    results = in_order(
        storage,
        items,
        processes=1 if is_quick else processes,
        on_done=lambda item: on_done(item[1].size),
    )
    for (log, segment), result in zip(items, results, strict=True):
        if result is not None:
            found[id(log)].append((segment, result))
    return [StoredLog(log, side_bytes(log), found[id(log)]) for log in logs]


def segment_times(logs: Sequence[StoredLog]) -> Iterator[SegmentTimes]:
    """Yield the times of all segments."""
    for stored in logs:
        for segment, found in stored.segments:
            least, latest = found.least_timestamp_ms, found.max_timestamp_ms
            yield SegmentTimes(stored.log.topic, segment.path, least, latest)
