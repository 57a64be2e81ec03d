"""What records of internal topics say, read by this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.messages.internal_records import InternalRecord, read_internal_record
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, LocalViews
from kafkalog.views.options.options import Mode

_RECORD = ("key", "value", "timestampMs")


def internal_records(
    paths: Sequence[str],
    topic: str,
    found: list[PartitionLog] | None,
    at_ms: int | None = None,
    mode: Mode = Mode.PERMISSIVE,
) -> Iterator[tuple[InternalRecord, int | None]]:
    """Yield the records of an internal topic in the order of the logs, each with the time that it
    was written; only those up to a time, if one is given."""
    logs = find_logs(paths, strict=mode is Mode.FAILFAST) if found is None else found
    views = LocalViews(paths, logs, processes=1, options={"mode": mode.value})
    for batch in views.batches(AskedView("records", _RECORD)):
        for key, value, written_ms in zip(*(each.to_pylist() for each in batch), strict=True):
            if at_ms is None or (written_ms is not None and written_ms <= at_ms):
                yield read_internal_record(topic, key, value), written_ms
