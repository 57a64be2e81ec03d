"""A log directory that a test makes, and its files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from kafkalog.arguments import known_arguments
from kafkalog.errors import LogDirError, OptionError
from kafkalog.format.record_batch import BatchFields
from kafkalog.format.side_files.checkpoints import TopicPartition, write_offset_checkpoint
from kafkalog.format.side_files.log_dir_files import write_clean_shutdown
from kafkalog.format.side_files.properties import write_properties
from kafkalog.storage.log_dir.log_dir import CLEAN_SHUTDOWN, META_PROPERTIES
from kafkalog.storage.names import (
    CLEANER_OFFSETS,
    CONSUMER_OFFSETS,
    LOG_STARTS,
    RECOVERY_POINTS,
    REPLICATION_OFFSETS,
)
from kafkalog.testing.group_offsets import CommittedOffsets, GroupOffsets
from kafkalog.testing.made_logs import MadeLog
from kafkalog.testing.made_records import Clock
from kafkalog.testing.producers import TransactionalProducer
from kafkalog.testing.topics import Topic

_FIRST_PRODUCER_ID = 1000


@known_arguments
class LogDirectory:
    """The contents of a broker's log directory, kept in memory until `write`.

    `path` is a directory that does not exist, or is empty. `offsets_topic_partitions` is the
    broker's setting offsets.topic.num.partitions.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        cluster_id: str = "kafkalog-testing",
        node_id: int = 1,
        offsets_topic_partitions: int = 1,
    ) -> None:
        self.path = os.path.abspath(path)
        self._properties = write_properties(
            {"version": "1", "node.id": str(node_id), "cluster.id": cluster_id}
        )
        self._clock = Clock()
        self._topics: dict[str, Topic] = {}
        self._group_offsets = GroupOffsets(offsets_topic_partitions, self._clock)
        self._producers: dict[str, TransactionalProducer] = {}
        self._written: set[str] = set()

    @property
    def now_ms(self) -> int:
        """The time of what is written next, in milliseconds since 1970; it can be set. It begins
        with 2026 and is a second later after each record, commit and marker."""
        return self._clock.now_ms

    @now_ms.setter
    def now_ms(self, now_ms: int) -> None:
        self._clock.now_ms = now_ms

    def topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        compression: str = "none",
        topic_id: str | None = None,
    ) -> Topic:
        """Return a new topic. `compression` is none, gzip, snappy, lz4 or zstd; `topic_id` is the
        id in a broker, as `kafka-topics --describe` prints it.

        Raises OptionError if a topic of that name exists, and RowError if the name is not allowed.
        """
        if name in self._topics or name == CONSUMER_OFFSETS:
            raise OptionError("name", name, "a topic that the log directory does not have")
        made = Topic(name, partitions, self._clock, compression=compression, topic_id=topic_id)
        self._topics[name] = made
        return made

    def transactional_producer(self, transactional_id: str) -> TransactionalProducer:
        """Return the producer with this transactional id, the same one on each call."""
        if transactional_id not in self._producers:
            producer_id = _FIRST_PRODUCER_ID + len(self._producers)
            made = TransactionalProducer(producer_id, self._group_offsets, self._clock)
            self._producers[transactional_id] = made
        return self._producers[transactional_id]

    def commit_offsets(self, group_id: str, offsets: CommittedOffsets) -> None:
        """Let a consumer group commit: `{("orders", 0): 12}`, an offset of None is a tombstone."""
        fields = BatchFields()
        self._group_offsets.commit(
            group_id, offsets, lambda log, batch: log.append_records(batch, fields)
        )

    def write(self) -> str:
        """Write the directory as a broker leaves it after a clean stop, then the damage; return its
        path.

        Later calls write the directory again with what was added since. Raises LogDirError if the
        directory holds anything that this object has not written.
        """
        self._clear()
        os.makedirs(self.path)
        logs = list(self._logs())
        try:
            for log in logs:
                log.write(self.path, self.now_ms)
            for name, text in _side_files(logs).items():
                Path(self.path, name).write_text(text)
            # The last one: nothing is written below a directory that has it.
            Path(self.path, META_PROPERTIES).write_text(self._properties)
        finally:
            self._written = _names_below(self.path)
        return self.path

    def _logs(self) -> Iterator[MadeLog]:
        for topic in self._topics.values():
            yield from topic.logs
        if any(log.next_offset for log in self._group_offsets.topic.logs):
            yield from self._group_offsets.topic.logs

    def _clear(self) -> None:
        if not os.path.lexists(self.path):
            return
        others = _names_below(self.path) - self._written
        if others or not os.path.isdir(self.path):
            raise LogDirError(
                f"{self.path}: {', '.join(sorted(others)[:3]) or 'a file'} is there already: a "
                "test's log directory is written to a new or empty directory"
            )
        shutil.rmtree(self.path)


def _names_below(path: str) -> set[str]:
    return {str(found.relative_to(path)) for found in Path(path).rglob("*")}


def _side_files(logs: list[MadeLog]) -> Mapping[str, str]:
    """Return the checkpoints, and the mark of a broker that was stopped cleanly."""
    ends = {log.key: log.next_offset for log in logs}
    starts = {log.key: log.start_offset for log in logs if log.start_offset}
    cleaned: dict[TopicPartition, int] = {
        log.key: log.cleaned_to for log in logs if log.cleaned_to is not None
    }
    checkpoints = {
        LOG_STARTS: starts,
        REPLICATION_OFFSETS: ends,
        RECOVERY_POINTS: ends,
        CLEANER_OFFSETS: cleaned,
    }
    texts = {name: write_offset_checkpoint(offsets) for name, offsets in checkpoints.items()}
    return {**texts, CLEAN_SHUTDOWN: write_clean_shutdown(None)}
