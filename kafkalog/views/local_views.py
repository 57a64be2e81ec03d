"""Rows of the source's views, read by this process, for who has no Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from kafkalog.messages.cluster_metadata import ClusterMetadata
from kafkalog.messages.internal_records import InternalRecord, read_internal_record
from kafkalog.storage.log_dir.metadata_snapshots import snapshot_before
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.options.options import Mode, ReadOptions, read_options
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.view_reading import read_view

_RECORD = ("key", "value", "timestampMs")


def view_option_texts(view: str, options: Mapping[str, str | int | None]) -> dict[str, str]:
    """Return the source's options as texts, without those that are None: internal topics are
    included, damage is logged and skipped."""
    given = {"view": view, "mode": Mode.PERMISSIVE.value, "subscribe": "*", **options}
    return {name: str(value) for name, value in given.items() if value is not None}


def view_options(log_dirs: Sequence[str], view: str, **options: str | int | None) -> ReadOptions:
    """Return the source's options, as `view_option_texts` has them."""
    return read_options({"paths": json.dumps(list(log_dirs)), **view_option_texts(view, options)})


def view_batches(
    options: ReadOptions, columns: tuple[str, ...], found: list[PartitionLog] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a view in the order of the logs. `found` has the logs under the paths if
    they have been listed."""
    for reads in planned_groups(options, found):
        yield from read_view(reads, options, columns)


def cluster_metadata(
    log_dirs: Sequence[str],
    logs: Sequence[PartitionLog],
    at_ms: int | None,
    mode: Mode = Mode.PERMISSIVE,
) -> ClusterMetadata:
    """Return what `__cluster_metadata` under log directories says of topics and leaders, with a
    snapshot where its log has lost its beginning."""
    metadata = ClusterMetadata()
    of_metadata = [log for log in logs if log.topic == CLUSTER_METADATA]
    snapshots = [path for log in of_metadata if (path := snapshot_before(log)) is not None]
    if snapshots:
        records = internal_records(snapshots, CLUSTER_METADATA, None, at_ms, mode)
        metadata.take(record for record, _ in records)
    if of_metadata:
        records = internal_records(log_dirs, CLUSTER_METADATA, of_metadata, at_ms, mode)
        metadata.take(record for record, _ in records)
    return metadata


def internal_records(
    paths: Sequence[str],
    topic: str,
    found: list[PartitionLog] | None,
    at_ms: int | None = None,
    mode: Mode = Mode.PERMISSIVE,
) -> Iterator[tuple[InternalRecord, int | None]]:
    """Yield the records of an internal topic in the order of the logs, each with the time that it
    was written; only those up to a time, if one is given."""
    for batch in view_batches(view_options(paths, "records", mode=mode.value), _RECORD, found):
        for key, value, written_ms in zip(*(each.to_pylist() for each in batch), strict=True):
            if at_ms is None or (written_ms is not None and written_ms <= at_ms):
                yield read_internal_record(topic, key, value), written_ms
