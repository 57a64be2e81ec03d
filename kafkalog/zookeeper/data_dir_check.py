"""All that is wrong with the files of a data directory. Rule: docs/zookeeper.md F422."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kafkalog.errors import CorruptDataError, DataLossError
from kafkalog.zookeeper.data_dir import DataDir
from kafkalog.zookeeper.faults import Fault, Finding, finding_of
from kafkalog.zookeeper.log_reading import all_entries
from kafkalog.zookeeper.replay import tree_at
from kafkalog.zookeeper.snapshot_scan import scan_snapshot
from kafkalog.zookeeper.tree import Touched


def findings(data_dir: DataDir) -> list[Finding]:
    """What is wrong with every snapshot and every log, used or not, and with the trees that they
    replay to from the oldest sound snapshot and from the newest; each finding once."""
    found: dict[Finding, None] = {}
    sound = []
    for snapshot in data_dir.snapshots:
        try:
            scan_snapshot(snapshot.path, snapshot.zxid, Touched())
            sound.append(snapshot)
        except CorruptDataError as error:
            found[finding_of(error, snapshot.path)] = None
    for _ in all_entries(data_dir.logs, lambda finding: found.setdefault(finding)):
        pass
    for start in {sound[0], sound[-1]} if sound else ():
        found.update(dict.fromkeys(_replay_findings(replace(data_dir, snapshots=(start,)))))
    if not sound:
        found.update(dict.fromkeys(_replay_findings(replace(data_dir, snapshots=()))))
    return list(found)


def _replay_findings(data_dir: DataDir) -> Iterator[Finding]:
    found: list[Finding] = []
    try:
        tree_at(data_dir, None, found.append)
    except DataLossError as error:
        found.append(Finding(data_dir.path, None, Fault.GAP, str(error)))
    yield from found
