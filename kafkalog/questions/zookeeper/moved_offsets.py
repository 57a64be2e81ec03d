"""Moved offsets as files: segments of `__consumer_offsets`, or commands of ZooKeeper's shell."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from kafkalog.coordination.zookeeper.offset_migration import Move
from kafkalog.coordination.zookeeper.zookeeper_commands import OffsetZnode, Shell, offset_commands
from kafkalog.errors import OptionError
from kafkalog.inspection.groups.offset_segments import (
    NEW_LOG,
    AppendPoint,
    WrittenSegment,
    end_to_go_on_from,
    last_magic,
    write_commits,
)
from kafkalog.messages.commit_records import COMMIT_FORMS, CommitForm, GroupCommit, form_of_magic
from kafkalog.questions.zookeeper.migration import Migration
from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperCluster
from kafkalog.storage.files.output_files import (
    refuse_existing_directory,
    refuse_unwritable_file,
    whole_file,
)
from kafkalog.storage.files.whole_directory import whole_directory
from kafkalog.storage.log_dir.read_directories import refuse_inside
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.options.zookeeper.migration_options import MigrationRequest
from kafkalog.words import counted

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MoveOutput:
    """Where moved offsets are written to, and in which form: a new directory with segments of
    `__consumer_offsets`, for brokers of a release; a new file with commands of a shell of
    ZooKeeper's. Moved commits have the times of their znodes, or `time_ms`."""

    segments: str | None = None
    commands: str | None = None
    broker_version: str | None = None
    time_ms: int | None = None
    shell: Shell = Shell.FROM_3_5

    @classmethod
    def of(cls, request: MigrationRequest, now_ms: int) -> MoveOutput:
        """Return what options give."""
        return cls(
            *(request.write_segments, request.write_zookeeper_commands, request.broker_version),
            None if request.keeps_commit_times else now_ms,
            Shell(request.zookeeper_shell),
        )

    def refuse_places(self, directories: Iterable[str]) -> None:
        """Raise OptionError for places to write to that lie in what is read, or that exist or
        cannot be written to."""
        if self.segments is not None:
            refuse_inside("--write-segments", self.segments, directories)
            refuse_existing_directory("--write-segments", self.segments)
        if self.commands is not None:
            refuse_inside("--write-zookeeper-commands", self.commands, directories)
            refuse_unwritable_file("--write-zookeeper-commands", self.commands)
            if os.path.lexists(self.commands):
                raise _existing_commands(self.commands)


def write_moves(
    output: MoveOutput,
    found: Migration,
    logs: Sequence[PartitionLog],
    zookeeper: ZookeeperCluster,
    now_ms: int,
) -> Iterator[str]:
    """Write what is requested of the moves, and say what it is. All is written or nothing.

    Raises OptionError and LogDirError where the number of partitions of `__consumer_offsets` is not
    known, or one of them does not allow to go on; SchemaError where a name is longer than a record
    can have it.
    """
    rows = sorted(found.offsets, key=_order)
    if output.segments is not None:
        moved = [row for row in rows if row["to_kafka"] == Move.MOVE.value]
        segments = _write_segments(moved, found, logs, output, now_ms)
        yield _segment_words(segments, output.segments)
    if output.commands is not None:
        back = [row for row in rows if row["to_zookeeper"] == Move.MOVE.value]
        _write_commands(back, zookeeper, output.commands, output.shell)
        yield f"wrote {counted(len(back), 'offset')} as commands to {output.commands}"


def _order(row: _Row) -> tuple[int, str, str, int]:
    return row["offsets_partition"] or 0, row["group_id"], row["topic"], row["partition"]


def _write_segments(
    moved: Sequence[_Row],
    found: Migration,
    logs: Sequence[PartitionLog],
    output: MoveOutput,
    now_ms: int,
) -> list[WrittenSegment]:
    of_offsets = [log for log in logs if log.topic == CONSUMER_OFFSETS and log.is_live]
    ends = _ends(moved, found, of_offsets)
    forms = commit_forms(output.broker_version, ends, of_offsets)
    with whole_directory(output.segments or "", os.fsync) as scratch:
        return [
            write_commits(
                *(scratch, partition, ends[partition], _commits(rows, output.time_ms)),
                forms[partition],
                now_ms=now_ms,
            )
            for partition, rows in groupby(moved, itemgetter("offsets_partition"))
        ]


def _ends(
    moved: Iterable[_Row], found: Migration, of_offsets: Sequence[PartitionLog]
) -> Mapping[int, AppendPoint]:
    """Return where commits are appended to each partition that gets some."""
    partitions = {row["offsets_partition"] for row in moved}
    if None in partitions:
        name = "--offsets-partitions"
        raise OptionError(name, None, "the number of partitions, which no input has")
    if not found.replicas.has_topic:
        return dict.fromkeys(partitions, NEW_LOG)
    return {
        partition: end_to_go_on_from([log for log in of_offsets if log.partition == partition])
        for partition in partitions
    }


def commit_forms(
    broker_version: str | None, ends: Mapping[int, AppendPoint], of_offsets: Sequence[PartitionLog]
) -> Mapping[int, CommitForm]:
    """Return the form for each partition: of the given release, or of its last messages, or
    of the other partitions where it has none. Rule: docs/migration.md F480."""
    if broker_version is not None:
        return dict.fromkeys(ends, COMMIT_FORMS[broker_version])
    magics = {partition: end.magic for partition, end in ends.items()}
    if None in magics.values():
        known = [magic for log in of_offsets if (magic := last_magic(log)) is not None]
        if not known:
            name = "--broker-version"
            raise OptionError(name, None, f"the brokers' release: {CONSUMER_OFFSETS} is empty")
        magics = {key: min(known) if magic is None else magic for key, magic in magics.items()}
    return {key: form_of_magic(magic) for key, magic in magics.items() if magic is not None}


def _commits(rows: Iterable[_Row], time_ms: int | None) -> Iterator[GroupCommit]:
    for row in rows:
        commit_ms = row["zookeeper_mtime_ms"] if time_ms is None else time_ms
        key = (row["group_id"], row["topic"], row["partition"])
        yield GroupCommit(*key, row["zookeeper_offset"], commit_ms)


def _write_commands(
    moved: Iterable[_Row], zookeeper: ZookeeperCluster, path: str, shell: Shell
) -> None:
    """Write a command for each offset that is moved to ZooKeeper. Raises OptionError where the file
    exists."""
    names = ("chroot", "group_id", "topic", "partition", "kafka_offset", "znode_version")
    found = [OffsetZnode(*(row[name] for name in names)) for row in moved]
    parents = {path for znode in found if znode.version is None for path in znode.parents}
    lines = offset_commands(found, parents & zookeeper.paths, shell)
    if os.path.lexists(path):
        raise _existing_commands(path)
    with whole_file(path) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())


def _existing_commands(path: str) -> OptionError:
    return OptionError("--write-zookeeper-commands", path, "a file that is not there yet")


def _segment_words(segments: Sequence[WrittenSegment], target: str) -> str:
    """Say what was written, and where to read how to use it."""
    commits = sum(segment.end_offset - segment.base_offset for segment in segments)
    return (
        f"wrote {counted(commits, 'commit')} in {counted(len(segments), 'segment')} to {target}; "
        "how to put them in place: docs/migration.md"
    )
