"""The cluster as of a moment, from one copy of `__cluster_metadata`, and what changed in a range.

Rules: docs/format.md F764 to F766.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kafkalog.columns.batches.fault_details import lost_records
from kafkalog.coordination.metadata.image import (
    END,
    LOG_ONLY,
    START,
    Change,
    MetadataImage,
    Moment,
    differences,
)
from kafkalog.coordination.metadata.metadata_records import apply, image_of, take
from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.inspection.metadata.metadata_log import (
    MetadataEntry,
    MetadataLog,
    snapshot_entries,
    snapshot_time_ms,
)
from kafkalog.messages.metadata_transactions import TRANSACTION_RECORDS, records_in_force
from kafkalog.storage.log_dir.metadata_snapshots import MetadataSnapshot


class MetadataChange(NamedTuple):
    """A change of the image by the record at `offset`. `record_name` is None where records are
    lost, and the snapshot that ends at `offset` shows what they had changed."""

    offset: int
    timestamp_ms: int
    record_name: str | None
    change: Change


class MetadataReplay:
    """The image of one copy while its records are replayed up to a moment.

    It begins with the last whole snapshot up to `start`, or with the log; if the log has lost its
    beginning by then, with the first snapshot after that. `next_offset` is the offset after the
    last record that was read, `last_epoch` and `last_ms` are of that record, -1 before one.
    `has_open_transaction`: a transaction of the controller has begun, and no record ends it.
    `damages` is what keeps records from being read, `unusable` why snapshots were passed over.
    """

    def __init__(self, log: MetadataLog, start: Moment, until: Moment) -> None:
        self.log = log
        self.image = MetadataImage()
        self.next_offset = 0
        self.last_epoch = -1
        self.last_ms = -1
        self.snapshot: MetadataSnapshot | None = None
        self.damages: list[CorruptDataError] = []
        self.unusable: list[CorruptDataError] = []
        self.has_open_transaction = False
        self._until = until
        self._has_come_to_end = False
        # The log goes on from these.
        least = min(log.start_offset, until.end_offset)
        snapshots = [each for each in log.snapshots if each.end_offset >= least]
        self._starts_late = not self._start(reversed(snapshots), start)
        if self.is_cut:
            self._start(snapshots, until)

    @property
    def is_cut(self) -> bool:
        """Whether the log has lost records after the moment to start from."""
        return self._starts_late and self.log.start_offset > 0

    def changes(self, after: Moment = START) -> Iterator[MetadataChange]:
        """Replay, and yield the changes that took effect after a moment.

        Damage is passed by the next snapshot, if there is one before the moment to replay up to.
        """
        while True:
            try:
                yield from self._replayed(after)
                self._note_lost_end()
                return
            except CorruptDataError as error:
                self.damages.append(error)
            if not (lost := self._next_snapshot()):
                return
            for change in lost:
                yield MetadataChange(self.next_offset, self.last_ms, None, change)

    def _replayed(self, after: Moment) -> Iterator[MetadataChange]:
        for entry in records_in_force(self._read()):
            if after.includes(self.next_offset - 1, self.last_ms):
                take(self.image, entry)
                continue
            for change in apply(self.image, entry):
                yield MetadataChange(entry.offset, entry.timestamp_ms, entry.name, change)

    def _note_lost_end(self) -> None:
        """Take what is missing at the end of the log for damage, if the moment is not before."""
        if self._has_come_to_end and self.next_offset < self._until.end_offset:
            lost = lost_records(self.log.log, self.next_offset)
            self.damages += [] if lost is None else [lost]

    def _read(self) -> Iterator[MetadataEntry]:
        self._has_come_to_end = False
        for entry in self.log.entries(self.next_offset):
            if not self._until.includes(entry.offset, entry.timestamp_ms):
                return
            self.next_offset = entry.offset + 1
            self.last_epoch, self.last_ms = entry.leader_epoch, entry.timestamp_ms
            if entry.name in TRANSACTION_RECORDS:
                self.has_open_transaction = entry.name == TRANSACTION_RECORDS[0]
            yield entry
        self._has_come_to_end = True

    def _next_snapshot(self) -> list[Change]:
        """Go on from the first whole snapshot after the damage; return what differs."""
        before = self.image
        later = (each for each in self.log.snapshots if each.end_offset > self.next_offset)
        if not self._start(later, self._until):
            return []
        for table in LOG_ONLY:
            self.image.tables[table] = before.tables[table]
        return list(differences(before, self.image))

    def _start(self, snapshots: Iterable[MetadataSnapshot], until: Moment) -> bool:
        """Begin with the first of the snapshots that is whole and not after the moment, if there
        is one."""
        for snapshot in snapshots:
            entries = self._usable(snapshot, until)
            if entries:
                self.image = image_of(records_in_force(entries))
                self.snapshot = snapshot
                self.next_offset = snapshot.end_offset
                self.last_epoch = snapshot.leader_epoch
                self.last_ms = snapshot_time_ms(entries)
                return True
        return False

    def _usable(self, snapshot: MetadataSnapshot, until: Moment) -> list[MetadataEntry]:
        """Return the records of a snapshot that is whole and not after the moment, else none."""
        if snapshot.end_offset > until.end_offset:
            return []
        try:
            entries = snapshot_entries(snapshot.path)
        except CorruptDataError as error:
            if error.path not in [each.path for each in self.unusable]:
                self.unusable.append(error)
            return []
        return entries if snapshot_time_ms(entries) <= until.time_ms else []


def image_at(log: MetadataLog, until: Moment = END) -> MetadataReplay:
    """Return the replay up to a moment, as far as the copy has its records.

    Raises LogDirError if the copy has nothing of that time, and CorruptDataError if it cannot be
    read from its first batch on.
    """
    with _without_collector():
        replay = MetadataReplay(log, until, until)
        for _ in replay.changes(after=END):
            pass
    if replay.snapshot is None and not replay.next_offset:
        _refuse_empty(replay)
    return replay


@contextmanager
def _without_collector() -> Iterator[None]:
    """Read without the collector of cycles: records and rows have none, and to look for them again
    and again among so many objects takes two fifths of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _refuse_empty(replay: MetadataReplay) -> None:
    log = replay.log
    if log.start_offset:
        ends = [each.end_offset for each in log.snapshots if each.end_offset]
        kept = f"the first snapshot has the state at offset {ends[0]}" if ends else "no snapshot"
        raise LogDirError(
            f"{log.log.path}: nothing is left of that time: the log begins at offset "
            f"{log.start_offset}, {kept}"
        )
    if replay.damages or replay.unusable:
        raise (replay.damages or replay.unusable)[0]
