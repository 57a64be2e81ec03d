"""Images of a cluster's metadata by its snapshots, and by the log before each."""

from pathlib import Path

from kafkalog.coordination.metadata.image import (
    KEYS,
    LOG_ONLY,
    START,
    MetadataImage,
    Moment,
    differences,
)
from kafkalog.coordination.metadata.metadata_records import image_of
from kafkalog.inspection.metadata.metadata_log import MetadataLog, snapshot_entries
from kafkalog.inspection.metadata.replay import MetadataReplay, image_at
from kafkalog.messages.metadata_transactions import records_in_force
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.metadata_snapshots import MetadataSnapshot


def opened(log_dir: Path) -> MetadataLog:
    (log,) = find_partitions([str(log_dir / "__cluster_metadata-0")])
    return MetadataLog(log)


def snapshot_image(snapshot: MetadataSnapshot) -> MetadataImage:
    return image_of(records_in_force(snapshot_entries(snapshot.path)))


def have_same_state(first: MetadataImage, second: MetadataImage) -> bool:
    """Whether both have the same rows, of what snapshots hold."""
    return all(first.tables[table] == second.tables[table] for table in KEYS.keys() - LOG_ONLY)


def compared_snapshots(log_dir: Path) -> int:
    """Compare each snapshot with the log before it, and what the log makes of it with the end of
    the whole; return how many there were. One that ends at offset 0 is of formatting."""
    log = opened(log_dir)
    end = image_at(log).image
    snapshots = [each for each in log.snapshots if each.end_offset]
    for snapshot in snapshots:
        replay = MetadataReplay(log, START, Moment(snapshot.end_offset))
        assert [*replay.changes()]
        assert not (replay.damages or replay.unusable or replay.image.remarks)
        assert replay.next_offset == snapshot.end_offset
        assert [*differences(replay.image, snapshot_image(snapshot))] == []
        # From the snapshot on, the log leads to the same end.
        later = MetadataReplay(log, Moment(snapshot.end_offset), Moment())
        assert later.snapshot == snapshot
        assert [*later.changes()] or snapshot is snapshots[-1]
        assert have_same_state(later.image, end)
    return len(snapshots)
