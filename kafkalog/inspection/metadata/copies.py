"""The copies of `__cluster_metadata` in log directories of several nodes, and which of them counts.

Rule: docs/format.md F768.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kafkalog.columns.batches.fault_details import lost_records
from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.format.side_files.leader_epochs import EpochStart, without_start
from kafkalog.format.side_files.properties import read_properties
from kafkalog.format.side_files.quorum_state import QuorumState
from kafkalog.inspection.metadata.metadata_log import MetadataLog, snapshot_entries
from kafkalog.inspection.metadata.metadata_start import quorum_state_in
from kafkalog.storage.files.files import read_text
from kafkalog.storage.log_dir.log_dir import META_PROPERTIES, find_partitions
from kafkalog.storage.log_dir.metadata_snapshots import MetadataSnapshot
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog


@dataclass
class LogWalk:
    """What the sound batches of a copy say: the epochs that leaders began and where, and the offset
    after the last batch. Where a snapshot goes beyond them, all of it begins with the snapshot.
    `damages` is what keeps batches from being read."""

    epochs: list[EpochStart]
    end_offset: int
    last_ms: int = -1
    damages: list[CorruptDataError] = field(default_factory=list)

    @property
    def position(self) -> tuple[int, int]:
        """The last epoch and the end offset, by which copies are compared."""
        return (self.epochs[-1].epoch if self.epochs else -1, self.end_offset)

    def follow(self, log: MetadataLog) -> None:
        """Go through the batches from the end offset on. An epoch counts where its leader announces
        it: no checksum covers the field of a batch."""
        try:
            for batch in log.batches(self.end_offset):
                header = batch.header
                if not self.epochs or (
                    header.is_control and header.leader_epoch > self.epochs[-1].epoch
                ):
                    self.epochs.append(EpochStart(header.leader_epoch, header.base_offset))
                self.end_offset = header.last_offset + 1
                self.last_ms = header.max_timestamp_ms
        except CorruptDataError as error:
            self.damages.append(error)


class MetadataCopy:
    """A node's copy, with the files beside it. What takes reading is read once, on the first
    request."""

    def __init__(self, log: PartitionLog) -> None:
        self.log = MetadataLog(log)
        self.path = log.path
        self.cluster_id = log.log_dir.cluster_id
        self.node_id = log.log_dir.broker_id

    @cached_property
    def directory_id(self) -> str | None:
        """The id of the log directory, which a voter has in dynamic quorums."""
        return directory_id_of(self.log.log.log_dir.path)

    @property
    def quorum_state(self) -> QuorumState | None:
        """The file quorum-state; None if it is missing or damaged."""
        state = self._state
        return None if isinstance(state, CorruptDataError) else state

    @property
    def snapshot(self) -> MetadataSnapshot | None:
        """The last whole snapshot."""
        return self._snapshot[0]

    @cached_property
    def walk(self) -> LogWalk:
        """What the sound batches say, and the last whole snapshot."""
        walk = LogWalk([], self.log.start_offset)
        walk.follow(self.log)
        snapshot = self.snapshot
        if snapshot and (snapshot.leader_epoch, snapshot.end_offset) > walk.position:
            start = EpochStart(snapshot.leader_epoch, snapshot.end_offset)
            walk = LogWalk([start], snapshot.end_offset, damages=walk.damages)
            walk.follow(self.log)
        return walk

    @property
    def position(self) -> tuple[int, int]:
        """The last epoch and the end offset, by which copies are compared."""
        return self.walk.position

    @property
    def damages(self) -> list[CorruptDataError]:
        """What is wrong with the log, with the last snapshots and with quorum-state, and what is
        missing at the end."""
        of_state = [self._state] if isinstance(self._state, CorruptDataError) else []
        lost = lost_records(self.log.log, self.walk.end_offset)
        of_end = [lost] if lost and not self.walk.damages else []
        return [*self.walk.damages, *of_end, *self._snapshot[1], *of_state]

    @cached_property
    def _state(self) -> QuorumState | CorruptDataError | None:
        return quorum_state_in(self.path)

    @cached_property
    def _snapshot(self) -> tuple[MetadataSnapshot | None, list[CorruptDataError]]:
        """The last whole snapshot, and what is wrong with those after it."""
        faults: list[CorruptDataError] = []
        for snapshot in reversed(self.log.snapshots):
            try:
                snapshot_entries(snapshot.path)
            except CorruptDataError as error:
                faults.append(error)
                continue
            return snapshot, faults
        return None, faults


def directory_id_of(path: str) -> str | None:
    """Return the id that a log directory has in meta.properties; None without one."""
    text = read_text(os.path.join(path, META_PROPERTIES))
    return None if text is None else read_properties(text).values.get("directory.id")


def metadata_copies(paths: Sequence[str]) -> list[MetadataCopy]:
    """Return the copies under the paths. Raises LogDirError if there is none, and for copies that
    are not of different nodes of one cluster."""
    found = copies_among(
        find_partitions(paths, strict=False, current_ids=None, needed=CLUSTER_METADATA)
    )
    if not found:
        raise LogDirError(
            f"{', '.join(paths)}: there is no {CLUSTER_METADATA}-0: give the log directories, or "
            "metadata.log.dir, of controllers or brokers"
        )
    return found


def copies_among(logs: Iterable[PartitionLog]) -> list[MetadataCopy]:
    """Return the copies among logs that have been found."""
    return [MetadataCopy(log) for log in logs if log.topic == CLUSTER_METADATA]


def copies_by_cluster(logs: Iterable[PartitionLog]) -> dict[str | None, list[MetadataCopy]]:
    """Return the live copies among logs that have been found, by cluster id."""
    copies: dict[str | None, list[MetadataCopy]] = {}
    for copy in copies_among(log for log in logs if log.is_live):
        copies.setdefault(copy.cluster_id, []).append(copy)
    return copies


def best_copy(copies: Sequence[MetadataCopy]) -> MetadataCopy:
    """Return the copy that counts, as Raft compares them: the higher last epoch, then the longer
    log; of the same the first."""
    return copies[0] if len(copies) == 1 else max(copies, key=lambda copy: copy.position)


def divergence(one: LogWalk, other: LogWalk) -> int | None:
    """Return the first offset that two copies hold from different leaders, None if one of them is
    the beginning of the other. What both do not have says nothing."""
    starts = [walk.epochs[0].start_offset for walk in (one, other) if walk.epochs]
    if len(starts) < 2:
        return None
    first, second = (without_start(walk.epochs, max(starts)) for walk in (one, other))
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    # Where each copy goes on under another leader, or ends.
    ends = [
        epochs[shared].start_offset if shared < len(epochs) else walk.end_offset
        for epochs, walk in ((first, one), (second, other))
    ]
    place = min(ends)
    return place if place < min(one.end_offset, other.end_offset) else None
