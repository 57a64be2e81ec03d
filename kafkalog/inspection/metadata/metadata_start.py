"""What a broker makes of its copy of `__cluster_metadata` at its start: the newest snapshot can
replace the log, and damage in it, in `bootstrap.checkpoint` or in `quorum-state` ends the process.
Rules: docs/format.md F920 and F921.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from kafkalog.columns.batches.byte_ranges import FAULTY, ByteRange
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import ATTRIBUTES_POSITION, CONTROL_BIT
from kafkalog.format.faults import Fault, Severity
from kafkalog.format.side_files.quorum_state import QUORUM_STATE, QuorumState, read_quorum_state
from kafkalog.inspection.metadata.metadata_log import snapshot_entries
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import InputFile, read_text
from kafkalog.storage.log_dir.metadata_snapshots import (
    BOOTSTRAP,
    CHECKPOINT,
    MetadataSnapshot,
    metadata_snapshots,
    newest_metadata_snapshot,
    snapshot_files,
    snapshot_position,
)
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.recovery.recovery import RecoveryPlan

_OLDER = "a broker starts from a newer snapshot and does not read this one"
_REPEATED = "a broker starts, and has the whole state in spite of it"
_ENDS = "a broker does not start with it"
_ENDS_BEFORE = "a broker before Kafka 4.3 does not start with it"
_CUT = "a broker takes what is left for the whole state: it ends, or sets partitions aside"
MISNAMED = "what ends in .checkpoint here begins with 20 digits, a dash and 10 digits"
UNUSUAL = "by its name it is the newest snapshot, and it is a directory"
UNNAMED = (
    "by its name it is the newest snapshot, and a broker looks for 20 digits, a dash, 10 digits "
    "and .checkpoint"
)
MOVABLE = "move it away, and a broker starts from the snapshot before and the log"
_LAST_EPOCH = 2**31 - 1
_REPLACE = "copy the directory of another node, or see kafkalog quorum rebuild --help"


@dataclass(frozen=True, slots=True)
class SnapshotFault:
    """Damage in a file of snapshots, whose size is `size`. With `is_fatal` a broker does not start,
    or not with its whole state; `consequence` says so."""

    error: CorruptDataError
    size: int
    is_fatal: bool
    consequence: str

    @property
    def words(self) -> str:
        """The damage and what follows from it, for one who knows the file."""
        return f"{self.error.detail}; {self.consequence}"

    def byte_range(self) -> ByteRange:
        """Return the row of view `byte_ranges`: nothing of the file counts from the damage on."""
        error = self.error
        severity = Severity.ERROR if self.is_fatal else Severity.WARNING
        return {
            "file": error.path,
            "file_size": self.size,
            "position": error.position,
            "length": max(self.size - error.position, 0),
            "verdict": FAULTY,
            "severity": severity.name.lower(),
            "kind": error.fault,
            "detail": self.words,
            "batches": 0,
            "records": 0,
        }


def snapshot_faults(log: PartitionLog) -> Iterator[SnapshotFault]:
    """Yield what is wrong with `bootstrap.checkpoint` and with the snapshots beside a log of
    `__cluster_metadata`; each file is read as a whole."""
    newest = newest_metadata_snapshot(log)
    snapshots = {snapshot.path: snapshot for snapshot in metadata_snapshots(log)}
    has_older = False
    missing = _missing_newest(log)
    for entry in snapshot_files(log):
        snapshot = snapshots.get(entry.path)
        is_odd = entry.name != BOOTSTRAP and snapshot_position(entry.name) is None
        if is_odd or entry == missing:
            words = MISNAMED if is_odd else UNUSUAL if entry.is_directory else UNNAMED
            error = CorruptDataError("file_name", words, position=0, path=entry.path)
            is_fatal = is_odd or entry.is_directory
            effect = _ENDS if is_fatal else _ENDS_BEFORE
            yield SnapshotFault(error, entry.size, is_fatal, f"{effect}: move it away")
            continue
        found = _damage(entry.path) if snapshot or entry.name == BOOTSTRAP else None
        if found is None:
            has_older |= snapshot is not None and _is_before(snapshot, log)
        elif snapshot is None:
            yield SnapshotFault(found, entry.size, True, _ENDS)
        elif snapshot == newest and not _loses_nothing(snapshot, found, log):
            effect = _CUT if found.fault == "truncated" else _ENDS
            advice = MOVABLE if has_older else _REPLACE
            yield SnapshotFault(found, entry.size, True, f"{effect}: {advice}")
        else:
            words = _REPEATED if snapshot == newest else _OLDER
            yield SnapshotFault(found, entry.size, False, words)


def _missing_newest(log: PartitionLog) -> Entry | None:
    """Return what is the newest snapshot by its name and has not the name that a broker looks for,
    or is a directory. Rules: docs/format.md F1394 and F1406."""
    newest = newest_metadata_snapshot(log)
    last = (-1, -1) if newest is None else (newest.leader_epoch, newest.end_offset)
    found = [
        (position, entry)
        for entry in snapshot_files(log)
        if entry.name.endswith(CHECKPOINT)
        and (position := snapshot_position(entry.name)) is not None
        and position[1] >= 0
        and position > last
    ]
    return max(found, key=lambda each: each[0])[1] if found else None


def bootstrap_damage(log_dir: str) -> CorruptDataError | None:
    """Return what is wrong with `bootstrap.checkpoint` in a log directory: a broker begins with it
    where the metadata has nothing. None where there is no such file."""
    path = os.path.join(log_dir, BOOTSTRAP)
    return None if read_text(path) is None else _damage(path)


def _loses_nothing(snapshot: MetadataSnapshot, damage: CorruptDataError, log: PartitionLog) -> bool:
    """Return whether a broker has the whole state in spite of a snapshot that is cut short, of
    which it takes what is left: the footer alone is torn; or the log repeats what is lost, as it
    does with the snapshot of formatting, which ends at 0 (F329)."""
    if damage.fault != Fault.TRUNCATED.label:
        return False
    is_whole = bool(log.segments) and not log.segments[0].base_offset and log.segments[0].size > 0
    return (snapshot.end_offset == 0 and is_whole) or _ends_in_control_batch(snapshot.path, damage)


def _ends_in_control_batch(path: str, damage: CorruptDataError) -> bool:
    with InputFile(path) as file:
        place = damage.position + ATTRIBUTES_POSITION
        attributes = file.read(place, 2) if place + 2 <= file.size else b""
    return damage.position > 0 and int.from_bytes(attributes, "big") & CONTROL_BIT != 0


def _is_before(snapshot: MetadataSnapshot, log: PartitionLog) -> bool:
    """Return whether the log goes on from a snapshot."""
    return bool(log.segments) and snapshot.end_offset >= (log.segments[0].base_offset or 0)


def _damage(path: str) -> CorruptDataError | None:
    """Return what is wrong with a snapshot; nothing is with one that is not there."""
    with suppress(FileNotFoundError):
        try:
            snapshot_entries(path)
        except CorruptDataError as error:
            return error
    return None


def quorum_state_in(directory: str) -> QuorumState | CorruptDataError | None:
    """Return what the file `quorum-state` in a directory says, or what is wrong with it; None if it
    is not there."""
    path = os.path.join(directory, QUORUM_STATE)
    try:
        text = read_text(path)
        return None if text is None else read_quorum_state(text)
    except CorruptDataError as error:
        return error.located(path, error.position, None)


def start_with_snapshots(log: PartitionLog, plan: RecoveryPlan, *, needs_snapshot: bool) -> None:
    """Let a plan for a log of `__cluster_metadata` go on with the snapshots: the log that ends
    before the newest one is removed, and damage keeps a broker from starting. With `needs_snapshot`
    a broker ends where it does not find the newest one (F1406)."""
    last_epoch = plan.leader_epochs[-1].epoch if plan.leader_epochs else 0
    last = (last_epoch, plan.log_end_offset or 0)
    missing = _missing_newest(log)
    position = None if missing is None else snapshot_position(missing.name)
    is_beyond = position is not None and plan.log_end_offset is not None and position > last
    if plan.start_error is None:
        plan.start_error = _start_error(log, plan)
    if plan.start_error is None and missing is not None:
        words = f"{missing.name}: file_name: {UNNAMED}"
        if is_beyond:
            gone = "a broker deletes the log, which ends before it, and does not start"
            plan.start_error = f"{words}; {gone}: move it away"
        elif needs_snapshot or plan.log_start_offset:
            plan.start_error = f"{words}; {_ENDS}: move it away"
    newest = newest_metadata_snapshot(log)
    is_replaced = newest is not None and (newest.leader_epoch, newest.end_offset) > last
    if plan.log_end_offset is None or not (is_beyond or is_replaced):
        return
    plan.deleted_segments = [each.base_offset or 0 for each in log.segments]
    if newest is not None and not is_beyond:
        plan.log_start_offset = plan.log_end_offset = plan.kept_in_snapshot = newest.end_offset
        plan.leader_epochs = []


def _start_error(log: PartitionLog, plan: RecoveryPlan) -> str | None:
    """Return why a broker does not start with what is beside the log, None if it does."""
    errors = [
        f"{os.path.basename(fault.error.path or '')}: position {fault.error.position}: "
        f"{fault.error.fault}: {fault.words}"
        for fault in snapshot_faults(log)
        if fault.is_fatal
    ]
    state = quorum_state_in(log.path)
    if isinstance(state, CorruptDataError):
        errors.append(f"{QUORUM_STATE}: {state.fault}: {state.detail}")
    elif state is not None and state.leader_epoch >= _LAST_EPOCH:
        errors.append(f"{QUORUM_STATE}: after the leader epoch {state.leader_epoch} there is none")
    start, newest = plan.log_start_offset, newest_metadata_snapshot(log)
    if start and (newest is None or newest.end_offset < start):
        errors.append(
            f"the log begins at offset {start}, and no snapshot has the state up to there"
        )
    return "; ".join(errors) or None
