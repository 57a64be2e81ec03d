"""All that is wrong with the files of a data directory. Rule: docs/zookeeper.md F422."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kafkalog.errors import CorruptDataError, DataLossError
from kafkalog.zookeeper.data_dir import DataDir, ZookeeperFile
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding, finding_of
from kafkalog.zookeeper.log_reading import all_entries
from kafkalog.zookeeper.replay import tree_at
from kafkalog.zookeeper.snapshot_scan import scan_snapshot
from kafkalog.zookeeper.tree import Touched


def data_dir_findings(data_dir: DataDir) -> list[ZooKeeperFinding]:
    """Return what is wrong with every snapshot and every log, used or not; with the digests after
    all transactions that can be replayed; and with the last tree. Each finding once."""
    found: dict[ZooKeeperFinding, None] = {}
    sound: list[ZookeeperFile] = []
    for snapshot in data_dir.snapshots:
        try:
            scan_snapshot(snapshot.path, snapshot.zxid, Touched())
            sound.append(snapshot)
        except CorruptDataError as error:
            found[finding_of(error, snapshot.path)] = None
    for _ in all_entries(data_dir, lambda finding: found.setdefault(finding)):
        pass
    found.update(dict.fromkeys(_digest_findings(data_dir, sound)))
    _, last = _replayed(data_dir, sound[-1:])
    found.update(dict.fromkeys(last))
    return list(found)


def _digest_findings(
    data_dir: DataDir, sound: Sequence[ZookeeperFile]
) -> Iterator[ZooKeeperFinding]:
    """Replay from the oldest snapshot on, and start again with a later one if the replay cannot
    continue."""
    start = sound[0] if sound else None
    while start is not None:
        zxid, found = _replayed(data_dir, [start])
        yield from (finding for finding in found if finding.fault is ZooKeeperFault.DIGEST)
        start = next((snapshot for snapshot in sound if snapshot.zxid > zxid), None)


def _replayed(
    data_dir: DataDir, snapshots: Sequence[ZookeeperFile]
) -> tuple[int, list[ZooKeeperFinding]]:
    """Replay from the given snapshots, and return the last zxid of the tree and its findings."""
    found: list[ZooKeeperFinding] = []
    try:
        tree = tree_at(replace(data_dir, snapshots=tuple(snapshots)), None, found.append)
    except DataLossError as error:
        return 0, [*found, ZooKeeperFinding(data_dir.path, None, ZooKeeperFault.GAP, str(error))]
    return tree.zxid, found
