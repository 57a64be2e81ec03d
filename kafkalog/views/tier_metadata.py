"""What `__remote_log_metadata` says of tiered storage, and which of its partitions are not in the
input as a whole. Rules: docs/remote.md F559 and F953.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from kafkalog.coordination.metadata.remote_segments import RemoteSegments, metadata_partition
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.inspection.metadata.cluster_history import cluster_histories
from kafkalog.storage.names import CLUSTER_METADATA, REMOTE_LOG_METADATA
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.views.engine import AskedView, Views
from kafkalog.views.local_views import internal_records
from kafkalog.words import counted, first_names

_MOST_NAMED = 5
# A broker's default is 50 partitions.
_MOST_PARTITIONS = 10_000
_FAULT = ("partition", "file", "position", "severity", "kind", "detail")


@dataclass(slots=True)
class TierMetadata:
    """The segments that the topic names, and a line for each partition of it that is missing, or is
    not there from its first record to its last. `hides_changes` says that a record about a segment
    that is named may be missing too."""

    remote: RemoteSegments = field(default_factory=RemoteSegments)
    gaps: list[str] = field(default_factory=list)
    hides_changes: bool = False


def tier_metadata(views: Views) -> TierMetadata:
    """Read the topic. Raises OSError."""
    paths, logs = views.log_dirs, views.logs
    found = TierMetadata()
    own = [log for log in best_logs(logs) if log.topic == REMOTE_LOG_METADATA and log.segments]
    places: dict[tuple[str, int], int] = {}
    for log in own:
        known = set(found.remote.segments)
        for record, _ in internal_records(paths, REMOTE_LOG_METADATA, [log]):
            found.remote.take(record.record_type, record.value)
        for segment_id in found.remote.segments.keys() - known:
            segment = found.remote.segments[segment_id]
            places[segment.topic_id, segment.partition] = log.partition or 0
    damages = list(_damages(views, own))
    here = {log.partition or 0 for log in own}
    counts = _partition_counts(logs, here, places)
    found.gaps += [*_missing(here, counts), *_without_beginnings(own), *damages]
    unexplained = found.remote.unexplained
    if unexplained:
        found.gaps.append(f"{counted(unexplained, 'record')} of it could not be read or counted")
    found.hides_changes = bool(damages or unexplained)
    return found


def _partition_counts(
    logs: Sequence[PartitionLog], here: set[int], places: dict[tuple[str, int], int]
) -> list[int]:
    """Return how many partitions the topic has, the least first where several numbers are possible:
    by the cluster's metadata and the checkpoints or, where the metadata does not name the topic,
    those that put what is known where it is."""
    named = {
        partition or 0
        for log_dir in {log.log_dir.path: log.log_dir for log in logs}.values()
        for checkpoint in (log_dir.high_watermarks, log_dir.recovery_points)
        for topic, partition in checkpoint
        if topic == REMOTE_LOG_METADATA
    }
    histories = cluster_histories(logs).values()
    assigned = {place for each in histories for place in each.replicas_of(REMOTE_LOG_METADATA)}
    least = 1 + max(here | named | assigned, default=-1)
    if assigned:
        return [least]
    fitting = (
        count
        for count in range(max(least, 1), _MOST_PARTITIONS)
        if all(metadata_partition(*key, count) == number for key, number in places.items())
    )
    return list(islice(fitting, 2)) or [least]


def _missing(here: set[int], counts: Sequence[int]) -> Iterator[str]:
    if len(counts) > 1:
        yield (
            "the input does not say how many partitions it has: give a log directory with "
            f"{CLUSTER_METADATA} too"
        )
    missing = sorted(set(range(counts[0])) - here)
    if missing:
        names = first_names([f"{REMOTE_LOG_METADATA}-{each}" for each in missing], _MOST_NAMED)
        yield f"of its {counted(counts[0], 'partition')} the input does not have {names}"


def _without_beginnings(own: Sequence[PartitionLog]) -> Iterator[str]:
    for log in own:
        start = log_bounds(log, EndRule.LOG_END).start_offset
        if start > 0:
            yield f"{log.path} begins at offset {start}: its first records were deleted"


def _damages(views: Views, own: list[PartitionLog]) -> Iterator[str]:
    """Yield a line for each place where records of the topic are damaged or cut off."""
    (faults,) = views.rows(AskedView("faults", _FAULT, logs=own))
    for row in faults:
        if row["severity"] == "error":
            place = "" if row["position"] is None else f", position {row['position']}"
            yield f"{row['file']}{place}: {row['kind']}: {row['detail']}"
