"""New partitions of a log directory of one's own: written under another name, there when whole.

Rules: docs/writing.md F566 to F569.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kafkalog.errors import LogDirError, RowError
from kafkalog.format.side_files.checkpoints import (
    TopicPartition,
    read_offset_checkpoint,
    write_offset_checkpoint,
)
from kafkalog.format.side_files.partition_metadata import write_topic_id
from kafkalog.storage.files.files import list_directory, read_text
from kafkalog.storage.files.output_files import Flush, flush_directory, write_file
from kafkalog.storage.names import (
    LOG_STARTS,
    RECOVERY_POINTS,
    REPLICATION_OFFSETS,
    PartitionName,
    cut_topic,
    partition_name,
)
from kafkalog.storage.partition_log import PARTITION_METADATA
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.log_writer import LogWriter


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """A partition that a task has written to `scratch` on `host`, its offsets being
    [start_offset, end_offset)."""

    topic: str
    partition: int
    scratch: str
    start_offset: int
    end_offset: int
    host: str

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


def check_partition(topic: str, partition: int) -> None:
    """Raise RowError for a topic name or a partition number that Kafka does not allow."""
    if partition_name(f"{topic}-{partition}") != PartitionName(topic, partition) or topic in (
        ".",
        "..",
    ):
        raise RowError(
            f"topic {topic!r}, partition {partition}: a topic has up to 249 of a-z, A-Z, 0-9, "
            "., _ and -, a partition is 0 or more"
        )


class PartitionOutput:
    """Writes one partition's log to a directory that readers and brokers treat as deleted.

    `log_dir` is its target; `write_id` and `attempt_id`, hexadecimal and 32 characters together,
    distinguish the writes and their attempts. Raises LogDirError if the partition exists, or
    `log_dir` is a broker's.
    """

    def __init__(
        self,
        log_dir: str,
        key: TopicPartition,
        settings: LogSettings,
        *,
        start_offset: int,
        attempt: tuple[str, str],
        now_ms: Callable[[], int],
        topic_id: str | None = None,
        flush: Flush = os.fsync,
    ) -> None:
        self._key = key
        check_partition(*key)
        _refuse_existing(log_dir, "{}-{}".format(*key))
        self._flush = flush
        self.scratch = os.path.join(log_dir, _scratch_name(key, "".join(attempt)))
        self._start_offset = start_offset
        self.log = LogWriter(
            self.scratch, settings, now_ms=now_ms, flush=flush, start_offset=start_offset
        )
        write_partition_metadata(self.scratch, topic_id, flush)

    def finish(self) -> WrittenLog:
        """Return the log, closed as a broker that stops closes it."""
        self.log.close()
        end = self.log.next_offset
        return WrittenLog(*self._key, self.scratch, self._start_offset, end, socket.gethostname())

    def drop(self) -> None:
        """Close the log and remove it."""
        try:
            self.log.close()
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)


def _scratch_name(key: TopicPartition, identity: str) -> str:
    """As brokers do, with as much of the topic's name as there is room for."""
    ending = f"-{key[1]}.{identity}-delete"
    return cut_topic(key[0], ending) + ending


def commit_logs(log_dir: str, logs: Sequence[WrittenLog], flush: Flush = os.fsync) -> None:
    """Rename the partitions to their final names, and record in the checkpoints where they begin
    and end.

    Raises, before any change, RowError if a partition was written twice, and LogDirError if one
    exists or was written to another machine's disk.
    """
    _refuse_unfit(log_dir, logs)
    os.makedirs(log_dir, exist_ok=True)
    ends = {log.key: log.end_offset for log in logs}
    starts = {log.key: log.start_offset for log in logs}
    for name, offsets in (
        (LOG_STARTS, starts),
        (REPLICATION_OFFSETS, ends),
        (RECOVERY_POINTS, ends),
    ):
        _add_to_checkpoint(os.path.join(log_dir, name), offsets, flush)
    for log in logs:
        os.rename(log.scratch, os.path.join(log_dir, log.name))
    flush_directory(log_dir, flush)


def _refuse_unfit(log_dir: str, logs: Sequence[WrittenLog]) -> None:
    found: dict[TopicPartition, WrittenLog] = {}
    for log in logs:
        other = found.setdefault(log.key, log)
        if other is not log:
            raise RowError(
                f"the rows of partition {log.name} came in two tasks, offsets {other.start_offset} "
                f"to {other.end_offset} and {log.start_offset} to {log.end_offset}: {ORDER}"
            )
        _refuse_existing(log_dir, log.name)
        if not os.path.isdir(log.scratch):
            raise LogDirError(
                f"{log.scratch} was written on {log.host} and is not on {socket.gethostname()}: "
                "a directory to write to has to be the same on all machines"
            )


# The advice for rows in the wrong order.
ORDER = (
    "all rows of a partition have to come in one task, sorted by offset: kafkalog.write(df, path), "
    'or df.repartition("topic", "partition").sortWithinPartitions("topic", "partition", "offset")'
)


def _refuse_existing(log_dir: str, name: str) -> None:
    path = os.path.join(log_dir, name)
    if os.path.lexists(path):
        raise LogDirError(f"{path} exists: kafkalog writes only new, whole partitions")


def _add_to_checkpoint(path: str, offsets: Mapping[TopicPartition, int], flush: Flush) -> None:
    known = read_offset_checkpoint(read_text(path) or "")
    write_file(path, write_offset_checkpoint({**known, **offsets}).encode(), flush)


def remove_scratch(log_dir: str, write_id: str) -> None:
    """Remove what the attempts of a write have left, those too that were killed."""
    if not os.path.isdir(log_dir):
        return
    for entry in list_directory(log_dir):
        mark = partition_name(entry.name)
        is_ours = mark is not None and mark.mark == "delete" and f".{write_id}" in entry.name
        if entry.is_directory and is_ours:
            shutil.rmtree(entry.path, ignore_errors=True)


def write_partition_metadata(directory: str, topic_id: str | None, flush: Flush = os.fsync) -> None:
    """Write the file that has the topic's id into a partition's directory, none without an id."""
    if topic_id is not None:
        path = os.path.join(directory, PARTITION_METADATA)
        write_file(path, write_topic_id(topic_id).encode(), flush)
