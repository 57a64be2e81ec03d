"""What `__cluster_metadata` under log directories says of topics and leaders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from kafkalog.command_line.views import reduced_view, view_options
from kafkalog.messages.cluster_metadata import ClusterMetadata
from kafkalog.messages.internal_records import InternalRecord, read_internal_record
from kafkalog.storage.log_dir.metadata_snapshots import snapshot_before
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog

_METADATA_COLUMNS = ("key", "value", "timestampMs")


def cluster_metadata(
    log_dirs: Sequence[str], logs: Sequence[PartitionLog], at_ms: int | None
) -> ClusterMetadata:
    """Return what the metadata says, with a snapshot where its log has lost its beginning."""
    metadata = ClusterMetadata()
    of_metadata = [log for log in logs if log.topic == CLUSTER_METADATA]
    snapshots = [path for log in of_metadata if (path := snapshot_before(log)) is not None]
    if snapshots:
        metadata.take(_metadata_records(snapshots, None, at_ms))
    if of_metadata:
        metadata.take(_metadata_records(log_dirs, of_metadata, at_ms))
    return metadata


def _metadata_records(
    paths: Sequence[str], found: list[PartitionLog] | None, at_ms: int | None
) -> Iterator[InternalRecord]:
    def records(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[bytes | None, bytes | None]]:
        for batch in batches:
            for key, value, written_ms in zip(*(each.to_pylist() for each in batch), strict=True):
                if at_ms is None or (written_ms is not None and written_ms <= at_ms):
                    yield key, value

    options = view_options(paths, "records")
    # One process: the order of the log is what counts.
    rows = reduced_view(options, _METADATA_COLUMNS, records, processes=1, found=found)
    for key, value in rows:
        yield read_internal_record(CLUSTER_METADATA, key, value)
