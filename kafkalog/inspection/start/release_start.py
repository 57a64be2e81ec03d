"""What a version of Kafka makes of the records and settings that a node's directories hold.

Rules: docs/format.md F1010 to F1018 and F1198.
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
    metadata_version_name,
    nearest_release,
    read_releases,
    release_of,
    started_release,
)
from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.inspection.metadata.metadata_log import MetadataEntry, MetadataLog, snapshot_entries
from kafkalog.inspection.metadata.seen_records import seen_records
from kafkalog.inspection.start.awaited_controllers import quorum_reasons
from kafkalog.inspection.start.node_directories import METADATA_DIR, NodeFiles
from kafkalog.inspection.start.reasons import Reason
from kafkalog.inspection.start.related_settings import related_refusals
from kafkalog.storage.log_dir.metadata_snapshots import MetadataSnapshot, newest_metadata_snapshot
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog

# Kafka's quorum goes by no such record, and passes over it.
_HARMLESS = ("FeatureLevelRecord",)
_FIRST_WITHOUT_ZOOKEEPER = 4
# Records of registrations, and the first levels that hold directories, and cordoned ones.
_REGISTRATION = 0
_FIRST_WITH_DIRECTORIES, _FIRST_WITH_CORDONED = 17, 30
_ELSEWHERE = "copy the directory of another controller, or see kafkalog quorum rebuild --help"


@dataclass(frozen=True, slots=True)
class ReleaseStart:
    """The version, why it does not start, the level of the cluster's metadata and the release that
    made it, the first release that can open the directories, and whether the version is before the
    one that made the level; None where that is not known. `assumed` is what stands for tables of
    the version that there are not."""

    version: str
    reasons: Sequence[Reason] = ()
    metadata_version: int | None = None
    metadata_release: str | None = None
    least_version: str | None = None
    is_downgrade: bool | None = None
    assumed: Sequence[str] = ()


def release_start(
    node: NodeFiles, image: MetadataImage | None, logs: Sequence[PartitionLog], version: str
) -> ReleaseStart:
    """Return what a version refuses of a node. Raises OptionError for what is not a version."""
    release = started_release(version)
    assumed = [*_nearest_words(release)]
    if not node.is_of_kraft:
        return ReleaseStart(version, [*_without_zookeeper(node, version)], assumed=assumed)
    found = [*_of_properties(node, release)]
    if image is None:
        return ReleaseStart(version, found, assumed=assumed)
    seen = _seen(node, logs)
    main = node.metadata_directory
    place = os.path.join(main.path if main is not None else "", METADATA_DIR)
    found += [
        _reason(each, place)
        for each in refusals(image, release, seen)
        if each.effect is Effect.ENDS
    ]
    found += _replay_reasons(image, seen, place)
    found += _lowered_reasons(image, seen, place)
    found += quorum_reasons(node, image)
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
        assumed,
    )


def _nearest_words(release: str) -> Iterator[str]:
    """Yield which release stands for one that the tables do not have. Rule: docs/format.md
    F1198."""
    nearest = nearest_release(release)
    if nearest != release:
        yield (
            f"the types of records, the coordinators and the settings of Kafka {release} are those "
            f"of Kafka {nearest}: what differs between the two is NOT JUDGED"
        )


def _without_zookeeper(node: NodeFiles, version: str) -> Iterator[Reason]:
    """Yield that the version no longer has ZooKeeper. Rule: docs/format.md F1192."""
    if node.is_unknown or int(version.split(".")[0]) < _FIRST_WITHOUT_ZOOKEEPER:
        return
    server = node.server
    file = server.path if server is not None else node.directories[0].meta_path
    detail = (
        "the node is of a cluster with ZooKeeper, which Kafka 4.0 and later do not have: a broker "
        "ends without process.roles"
    )
    line = "start it with Kafka 3.9, and migrate the cluster to KRaft before 4.0"
    yield Reason(file, detail, line, "")


def _replay_reasons(image: MetadataImage, seen: SeenRecords, place: str) -> Iterator[Reason]:
    """Yield the first record that no release can read, and the first that contradicts those before
    it: a broker ends when it replays it."""
    if seen.unreadable is not None:
        offset, detail = seen.unreadable
        where = "in the newest snapshot" if offset is None else f"at offset {offset}"
        yield Reason(place, f"the record {where} cannot be read: {detail}", _ELSEWHERE, place)
    for each in image.contradictions:
        if each.record_name not in _HARMLESS:
            detail = f"{each.record_name} at offset {each.offset}: {each.detail}"
            yield Reason(place, f"a broker ends at the record {detail}", _ELSEWHERE, place)
            return


def _lowered_reasons(image: MetadataImage, seen: SeenRecords, place: str) -> Iterator[Reason]:
    """Yield what brokers have registered that the level of the metadata cannot hold: each start
    ends while it writes the state down. Rule: docs/format.md F1194."""
    feature = image.tables["feature"].get((METADATA_VERSION,))
    if feature is None:
        return
    level, (version, _) = feature["level"], seen.versions.get(_REGISTRATION, (0, None))
    has_directories = any(row["log_dirs"] for row in image.rows("broker"))
    if has_directories and (
        level < _FIRST_WITH_DIRECTORIES or (version > 3 and level < _FIRST_WITH_CORDONED)
    ):
        detail = (
            f"{METADATA_VERSION} was lowered to {level} ({metadata_version_name(level)}), which "
            "cannot hold the log directories that brokers have registered: a broker ends"
        )
        yield Reason(place, detail, _ELSEWHERE, place)


def _of_properties(node: NodeFiles, release: str) -> Iterator[Reason]:
    if node.server is not None:
        for each in property_refusals(node.server.values, release):
            if each.effect is Effect.ENDS:
                yield _reason(each, node.server.path)
        for name, detail, line in related_refusals(node.server, release):
            yield Reason(node.server.path, f"{name}: {detail}", line, "")


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
    snapshots = {log.path: newest_metadata_snapshot(log) for log in own}
    return seen_records(
        (entry for log in own for entry in _log_entries(log, snapshots[log.path])),
        (entry for each in snapshots.values() for entry in _snapshot_entries(each)),
    )


def _snapshot_entries(snapshot: MetadataSnapshot | None) -> Iterator[MetadataEntry]:
    with suppress(CorruptDataError):
        if snapshot is not None:
            yield from snapshot_entries(snapshot.path)


def _log_entries(log: PartitionLog, after: MetadataSnapshot | None) -> Iterator[MetadataEntry]:
    with suppress(CorruptDataError, LogDirError):
        yield from MetadataLog(log).replayed(0 if after is None else after.end_offset)
