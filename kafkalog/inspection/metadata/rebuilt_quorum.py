"""What a new metadata directory gets where the quorum is lost, from the best copy that is left.
Rules: docs/format.md F770 and F771.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.inspection.metadata.copies import MetadataCopy
from kafkalog.inspection.metadata.metadata_log import MetadataBatch, snapshot_entries
from kafkalog.inspection.metadata.new_directory import NewDirectory, write_directory
from kafkalog.inspection.metadata.quorum import Quorum
from kafkalog.storage.log_dir.metadata_snapshots import MetadataSnapshot


@dataclass(frozen=True)
class Rebuild:
    """What of the best copy of a quorum is to be written."""

    quorum: Quorum

    @property
    def is_dynamic(self) -> bool:
        """Whether the log, rather than the controllers' configuration, names the voters."""
        return self.quorum.kraft_version > 0

    @property
    def epoch(self) -> int:
        """One more than any that a node that is here has seen."""
        states = [copy.quorum_state for copy in self.quorum.copies]
        seen = [state.leader_epoch for state in states if state]
        return max((self.quorum.best.position[0], *seen)) + 1

    @property
    def start_offset(self) -> int:
        """Where the new log begins: where that of the best copy does or, if that is damaged, with
        its last whole snapshot."""
        epochs = self.quorum.best.walk.epochs
        return epochs[0].start_offset if epochs else self.quorum.best.log.start_offset

    @property
    def end_offset(self) -> int:
        """Where the records of the best copy end in the new log."""
        return self.quorum.best.position[1]

    @cached_property
    def snapshots(self) -> list[MetadataSnapshot]:
        """The whole snapshots from which the new log goes on."""
        return [
            each
            for each in self.quorum.best.log.snapshots
            if each.end_offset >= self.start_offset and not self._is_damaged(each)
        ]

    def _is_damaged(self, snapshot: MetadataSnapshot) -> bool:
        try:
            snapshot_entries(snapshot.path)
        except CorruptDataError:
            return True
        return False

    def _batches(self) -> Iterator[bytes]:
        found = batches_below(self.quorum.best, self.start_offset, self.end_offset)
        return (batch.data for batch in found)

    def write(self, new: NewDirectory, target: str) -> None:
        """Write the files of the new directory into an empty one. Raises OSError and what reading
        the best copy raises."""
        write_directory(
            *(new, target, self._batches()),
            start_offset=self.start_offset,
            snapshots=self.snapshots,
        )


def batches_below(copy: MetadataCopy, start: int, end_offset: int) -> Iterator[MetadataBatch]:
    """Yield the sound batches of a copy that are wholly below an offset, each with the epoch of its
    leader. Raises what reading the copy raises."""
    epochs = [*copy.walk.epochs]
    epoch = epochs.pop(0).epoch if epochs else 0
    next_offset = start
    batches = copy.log.batches(next_offset)
    # The batch after the last sound one can be damaged.
    while next_offset < end_offset:
        batch = next(batches, None)
        if batch is None or batch.header.last_offset >= end_offset:
            return
        if epochs and epochs[0].start_offset <= batch.header.base_offset:
            epoch = epochs.pop(0).epoch
        yield batch._replace(data=_with_epoch(batch.data, epoch))
        next_offset = batch.header.last_offset + 1


def refuse_lost_commits(quorum: Quorum) -> None:
    """Raise LogDirError where a copy diverges from the best one below a snapshot of either: what a
    snapshot has was committed, and one of the two contradicts it."""
    for copy in quorum.copies:
        place = quorum.diverges_at(copy)
        snapshots = [each for each in (copy.snapshot, quorum.best.snapshot) if each]
        committed = max((each.end_offset for each in snapshots), default=0)
        if place is not None and place < committed:
            raise LogDirError(
                f"{copy.path} and {quorum.best.path} diverge at offset {place}, below a snapshot, "
                f"which ends at {committed}: records that were committed are different. Look at "
                "both with kafkalog metadata, and leave out the copy that is not to be believed"
            )


def _with_epoch(batch: bytes, epoch: int) -> bytes:
    """Return a batch with the epoch of its leader, which no checksum covers."""
    return batch[:12] + epoch.to_bytes(4, "big") + batch[16:]
