"""Segments of `__consumer_offsets` with commits of our own: they go on where a partition's log
ends, or begin one. Rules: docs/migration.md F480 to F483.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.errors import LogDirError
from kafkalog.format.segment_writer import write_segment
from kafkalog.format.side_files.leader_epochs import EpochStart, write_leader_epochs
from kafkalog.inspection.logs.replica_facts import replica_facts
from kafkalog.messages.commit_records import CommitForm, GroupCommit, commit_batches
from kafkalog.storage.files.output_files import new_directory, write_file
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import LEADER_EPOCHS, PartitionLog
from kafkalog.storage.reading.renamed_files import opened_segment

_FIRST_EPOCH = 0


class AppendPoint(NamedTuple):
    """Where a partition's log ends, the epoch of its last leader, and the format of its last
    messages, None where it has none; `is_new` without a log."""

    offset: int
    leader_epoch: int
    magic: int | None = None
    is_new: bool = False


# Of a cluster that does not have the topic yet: docs/migration.md F486.
NEW_LOG = AppendPoint(0, _FIRST_EPOCH, is_new=True)


class WrittenSegment(NamedTuple):
    """A segment that was written, the offsets of its records being [base_offset, end_offset)."""

    partition: int
    base_offset: int
    end_offset: int


def end_to_go_on_from(replicas: Sequence[PartitionLog]) -> AppendPoint:
    """Return where the next segment of a partition begins, given all its replicas, one at least.

    Raises LogDirError where they do not end alike, where a broker was not stopped cleanly, and
    where the last segment ends in damage. Rule: docs/migration.md F482.
    """
    ends = []
    for log in replicas:
        if not log.log_dir.is_clean_shutdown:
            raise LogDirError(
                f"{log.path}: the broker is running or was not stopped cleanly, so the end of the "
                "log is not known yet; start it, stop it cleanly, and copy the log then"
            )
        facts = replica_facts(log)
        if not facts.ends_soundly:
            raise LogDirError(f"{log.path} ends in damage: see jobs/salvage.py")
        epoch = facts.epochs[-1].epoch if facts.epochs else _FIRST_EPOCH
        ends.append(AppendPoint(facts.log_end, epoch, last_magic(log)))
    if len({end.offset for end in ends}) > 1:
        ends_by_log = ", ".join(
            f"{log.path} at {end.offset}" for log, end in zip(replicas, ends, strict=True)
        )
        raise LogDirError(
            f"replicas end at different offsets, {ends_by_log}: let them catch up before you stop "
            "the brokers"
        )
    return ends[0]._replace(leader_epoch=max(end.leader_epoch for end in ends))


def last_magic(log: PartitionLog) -> int | None:
    """Return the format of a log's last messages, None if it has none. Reads headers only."""
    for segment in reversed(log.segments):
        with opened_segment(segment) as file:
            chunks = SegmentHeaders(FileWindow(file), SegmentOptions.of(segment)).chunks()
            found = [
                chunk.table[chunk.table[:, column.FAULT] == 0, column.MAGIC] for chunk in chunks
            ]
        if magics := [int(magic) for part in found for magic in part[-1:]]:
            return magics[-1]
    return None


def write_commits(
    target: str,
    partition: int,
    end: AppendPoint,
    commits: Iterable[GroupCommit],
    form: CommitForm,
    *,
    now_ms: int,
) -> WrittenSegment:
    """Write a segment with the commits, one at least, to a new directory of the partition's name in
    `target`; of a log that is new, also what a broker has beside its segments.

    Raises LogDirError where the directory is there or lies in a broker's log directory, and
    SchemaError for names that no record can have.
    """
    directory = os.path.join(target, f"{CONSUMER_OFFSETS}-{partition}")
    held = list(commits)
    batches = list(
        commit_batches(
            held, form, base_offset=end.offset, leader_epoch=end.leader_epoch, now_ms=now_ms
        )
    )
    new_directory(directory)
    files = write_segment(batches, end.offset).by_name
    if end.is_new and form.magic > 1:
        files[LEADER_EPOCHS] = write_leader_epochs([EpochStart(_FIRST_EPOCH, 0)]).encode()
    for name, data in files.items():
        write_file(os.path.join(directory, name), data, os.fsync)
    return WrittenSegment(partition, end.offset, end.offset + len(held))
