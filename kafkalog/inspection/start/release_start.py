"""What a version of Kafka makes of the records and settings that a node's directories hold.

Rules: docs/format.md F1010 to F1018.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.coordination.metadata.release_refusals import (
    Effect,
    Refusal,
    SeenRecords,
    feature_refusals,
    property_refusals,
    record_refusals,
    refusals,
)
from kafkalog.coordination.metadata.releases import (
    METADATA_VERSION,
    is_at_least,
    known_release,
    read_releases,
    release_of,
)
from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.inspection.metadata.metadata_log import MetadataEntry, MetadataLog, snapshot_entries
from kafkalog.inspection.metadata.seen_records import seen_records
from kafkalog.inspection.start.node_directories import METADATA_DIR, NodeFiles
from kafkalog.inspection.start.reasons import Reason
from kafkalog.storage.log_dir.metadata_snapshots import newest_metadata_snapshot
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog


@dataclass(frozen=True, slots=True)
class ReleaseStart:
    """The version, why it does not start, the level of the cluster's metadata and the release that
    made it, the first release that can open the directories, and whether the version is before the
    one that made the level; None where that is not known."""

    version: str
    reasons: Sequence[Reason] = ()
    metadata_version: int | None = None
    metadata_release: str | None = None
    least_version: str | None = None
    is_downgrade: bool | None = None


def release_start(
    node: NodeFiles, image: MetadataImage | None, logs: Sequence[PartitionLog], version: str
) -> ReleaseStart:
    """Return what a version refuses of a node without ZooKeeper. Raises OptionError for a version
    that is not known."""
    if not node.is_of_kraft:
        return ReleaseStart(version)
    release = known_release(version)
    found = [*_of_properties(node, release)]
    if image is None:
        return ReleaseStart(version, found)
    seen = _seen(node, logs)
    main = node.metadata_directory
    place = os.path.join(main.path if main is not None else "", METADATA_DIR)
    found += [
        _reason(each, place)
        for each in refusals(image, release, seen)
        if each.effect is Effect.ENDS
    ]
    levels = {row["feature"]: row["level"] for row in image.rows("feature")}
    level = levels.get(METADATA_VERSION)
    made_by = None if level is None else release_of(level)
    return ReleaseStart(
        version,
        found,
        level,
        made_by,
        None if level is None else _least(levels, seen),
        None if made_by is None else not is_at_least(release, made_by),
    )


def _of_properties(node: NodeFiles, release: str) -> Iterator[Reason]:
    if node.server is not None:
        for each in property_refusals(node.server.values, release):
            if each.effect is Effect.ENDS:
                yield _reason(each, node.server.path)


def _reason(refusal: Refusal, file: str) -> Reason:
    return Reason(file, f"{refusal.subject}: {refusal.reason}", refusal.remedy, "")


def _least(levels: dict[str, int], seen: SeenRecords) -> str | None:
    return next(
        (
            release
            for release in read_releases()
            if not [*feature_refusals(levels, release), *record_refusals(seen, release)]
        ),
        None,
    )


def _seen(node: NodeFiles, logs: Sequence[PartitionLog]) -> SeenRecords:
    """Return the records that a start reads: the newest snapshot, and the log after it, up to the
    first damage."""
    paths = {each.path for each in node.directories}
    own = [log for log in logs if log.topic == CLUSTER_METADATA and log.log_dir.path in paths]
    return seen_records(entry for log in own for entry in _entries(log))


def _entries(log: PartitionLog) -> Iterator[MetadataEntry]:
    newest = newest_metadata_snapshot(log)
    with suppress(CorruptDataError, LogDirError):
        if newest is not None:
            yield from snapshot_entries(newest.path)
        yield from MetadataLog(log).entries(0 if newest is None else newest.end_offset)
