"""What log directories hold, as the cluster that a server stands for: brokers, topics, partitions.

Several threads may read it, each another partition (`ServedLog.lock`).
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.coordination.groups.commit_status import offsets_partition_of
from kafkalog.coordination.groups.transactional_ids import TransactionalIds
from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.errors import LogDirError
from kafkalog.format.offsets import OffsetSpan
from kafkalog.inspection.logs.missing_records import missing_records, missing_words
from kafkalog.inspection.metadata.cluster_history import ClusterHistory, history_of
from kafkalog.inspection.metadata.copies import copies_among
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.log_lines import logger
from kafkalog.messages.value_types import uuid_text
from kafkalog.server.logs.batch_runs import BatchRuns
from kafkalog.server.logs.deleted_partitions import deleted_partitions
from kafkalog.server.logs.served_log import Reports, ServedLog
from kafkalog.storage.names import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    INTERNAL_TOPICS,
    TRANSACTION_STATE,
)
from kafkalog.storage.partition_log import PartitionLog, topic_id
from kafkalog.storage.reading.offset_ranges import LARGEST_TIME_MS
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.views.engine import AskedView, LocalViews
from kafkalog.words import counted, time_text

_logger = logger(__name__)

# The runs of so many segments are kept, and of so many runs in all: some 50 MiB.
_MOST_SEGMENTS = 64
_MOST_RUNS = 200_000
# So many segments are open beside the one that is read, each with some MiB in memory.
_MOST_OPEN = 4
_STATE_COLUMNS = (
    *("cluster_id", "record_offset", "record_timestamp_ms", "is_tombstone", "transactional_id"),
    *("state", "producer_id", "producer_epoch", "timeout_ms", "partitions", "started_ms"),
)
# The number of a broker whose directory does not name it.
_UNKNOWN_BROKER = 0


class _Places(NamedTuple):
    """What the metadata says of a topic's partitions, by their numbers."""

    leaders: dict[int, int]
    replicas: dict[int, list[int]]
    in_sync: dict[int, list[int]]


class ServedTopic:
    """A topic: its id and its partitions by number."""

    def __init__(self, name: str, partitions: Mapping[int, ServedLog], cluster_id: str) -> None:
        self.name = name
        self.partitions = dict(sorted(partitions.items()))
        self._cluster_id = cluster_id

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @cached_property
    def id(self) -> str:
        """The topic's id; of a topic that has none, one that is made of its name."""
        for served in self.partitions.values():
            for log in served.logs:
                found = topic_id(log)
                if found is not None:
                    return found
        made = hashlib.md5(f"{self._cluster_id}\0{self.name}".encode(), usedforsecurity=False)
        return uuid_text(made.digest())


class ServedCluster:
    """The partitions under log directories, now or at a past time, and the damage that was met."""

    def __init__(
        self,
        paths: Sequence[str],
        *,
        as_of_ms: int | None = None,
        now_ms: int = LARGEST_TIME_MS,
        is_deep: bool = False,
        with_deleted: bool = False,
    ) -> None:
        """At a past time `now_ms` is the clock by which records are of the future (F930). With
        `with_deleted` also what a broker has deleted or set aside. Raises LogDirError where
        there is no partition, or those of several clusters."""
        self.paths = tuple(paths)
        self.as_of_ms = as_of_ms
        self.logs = find_logs(paths, strict=False)
        if with_deleted:
            deleted, left_out = deleted_partitions(paths, self.logs)
            self.logs = [*self.logs, *deleted]
            for line in left_out:
                _logger.warning("%s", line)
        served = [log for log in self.logs if _is_served(log)]
        if not served:
            raise LogDirError(
                f"{', '.join(paths)}: there is no partition to serve; give log directories or "
                "partition directories"
            )
        for log in filter(is_oldest_layout, served):
            _logger.warning("%s has files of Kafka 0.7, which no client of today reads", log.path)
        self.cluster_id = _cluster_id(served)
        # A line for each damaged range that was left out, by file and position.
        self.gaps: dict[tuple[str, int], str] = {}
        self.on_gap: Callable[[], None] = lambda: None
        self._places: dict[str, _Places] = {}
        self._runs: OrderedDict[tuple[str, str], BatchRuns] = OrderedDict()
        self._runs_lock = Lock()
        reports = Reports(self._note_fault, self._note_filled, self._keep_runs)
        by_topic: dict[str, dict[int, list[PartitionLog]]] = defaultdict(lambda: defaultdict(list))
        for log in served:
            if log.topic_partition is not None and not is_oldest_layout(log):
                topic, partition = log.topic_partition
                by_topic[topic][partition].append(log)
        self.topics = {
            name: ServedTopic(
                name,
                {
                    partition: ServedLog(
                        logs, reports, as_of_ms=as_of_ms, now_ms=now_ms, is_deep=is_deep
                    )
                    for partition, logs in partitions.items()
                },
                self.cluster_id,
            )
            for name, partitions in sorted(by_topic.items())
        }

    @cached_property
    def topics_by_id(self) -> dict[str, ServedTopic]:
        """The topics by their ids."""
        return {topic.id: topic for topic in self.topics.values()}

    @cached_property
    def history(self) -> ClusterHistory:
        """What the best copy of the cluster's metadata says, nothing without one."""
        copies = copies_among(log for log in self.logs if log.is_live)
        return history_of(copies, self.as_of_ms) if copies else ClusterHistory()

    @cached_property
    def image(self) -> MetadataImage | None:
        """The state of the cluster, None without metadata that can be read."""
        return self.history.image if any(self.history.image.tables.values()) else None

    @cached_property
    def brokers(self) -> tuple[int, ...]:
        """The numbers of all brokers that directories or metadata name, in order."""
        own = {broker_of(log) for log in self.logs if _is_served(log)}
        return tuple(sorted(own | {*self.history.leaders.values()}))

    @cached_property
    def transactional_ids(self) -> dict[str, Mapping[str, Any]]:
        """The last record of `__transaction_state` about each transactional id, by the ids. Logs
        which of its records are missing (F940)."""
        missing = missing_records(self.logs, TRANSACTION_STATE)
        if missing:
            words = missing_words(missing)
            _logger.warning("transactional ids: %s: ids that these are about are not known", words)
        known = TransactionalIds()
        logs = [log for log in self.logs if log.topic == TRANSACTION_STATE]
        views = LocalViews(self.paths, logs, processes=1)
        for batch in views.batches(AskedView("transaction_states", _STATE_COLUMNS)):
            for row in batch.to_pylist():
                written_ms = row["record_timestamp_ms"]
                if self.as_of_ms is None or (written_ms or 0) <= self.as_of_ms:
                    known.add(row)
        return {row["transactional_id"]: row for row in known.states()}

    def partition(self, topic: str, partition: int) -> ServedLog | None:
        """Return a partition, None if there is none."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(partition)

    def partitions_of(self, topic: ServedTopic) -> dict[int, ServedLog | None]:
        """Return all partitions of a topic by number, None for those that no directory has: clients
        take the number of partitions for the numbers that there are."""
        numbers = {*topic.partitions, *self._places_of(topic.name).replicas}
        return {number: topic.partitions.get(number) for number in range(max(numbers) + 1)}

    def lost_replicas_of(self, topic: ServedTopic, partition: int) -> list[int]:
        """Return the brokers that a partition is on which no directory has, by the metadata."""
        return self._places_of(topic.name).replicas.get(partition, [])

    def replicas_of(self, served: ServedLog) -> list[int]:
        """Return the brokers that a partition is on: by the metadata, else those whose directories
        have it."""
        by_metadata = self._places_of(served.topic).replicas.get(served.partition)
        return by_metadata or sorted({broker_of(log) for log in served.logs})

    def in_sync_of(self, served: ServedLog) -> list[int]:
        """Return those of a partition's replicas that were in sync: all, if nothing says."""
        by_metadata = self._places_of(served.topic).in_sync.get(served.partition)
        return by_metadata or self.replicas_of(served)

    def leader_of(self, served: ServedLog) -> int:
        """Return the broker that led a partition last, by the metadata, else the first that has
        it. Clients ask this one."""
        by_metadata = self._places_of(served.topic).leaders.get(served.partition)
        return broker_of(served.logs[0]) if by_metadata is None else by_metadata

    def group_coordinator(self, group_id: str) -> int:
        """Return the broker that led the partition with a group, or the first one."""
        topic = self.topics.get(CONSUMER_OFFSETS)
        if topic is None:
            return self.brokers[0]
        leaders = self._offsets_leaders
        leader = leaders[offsets_partition_of(group_id, len(leaders))]
        return leader if leader in self.brokers else self.brokers[0]

    @cached_property
    def _offsets_leaders(self) -> list[int | None]:
        """The leaders of the partitions of `__consumer_offsets`."""
        logs = self.partitions_of(self.topics[CONSUMER_OFFSETS])
        return [None if log is None else self.leader_of(log) for log in logs.values()]

    def _places_of(self, topic: str) -> _Places:
        if topic not in self._places:
            history = self.history
            self._places[topic] = _Places(
                history.leaders_of(topic), history.replicas_of(topic), history.in_sync_of(topic)
            )
        return self._places[topic]

    def contents(self) -> Iterator[str]:
        """Yield lines about what is served, and which commits it may lack (F940)."""
        partitions = sum(len(topic.partitions) for topic in self.topics.values())
        topics = counted(len(self.topics), "topic")
        at = "" if self.as_of_ms is None else f" as of {time_text(self.as_of_ms)}"
        yield f"{topics} with {counted(partitions, 'partition')} of cluster {self.cluster_id}{at}"

    def summary(self) -> Iterator[str]:
        """Yield a line for each damaged range that was met, at the end."""
        if self.gaps:
            yield f"{counted(len(self.gaps), 'damaged range')} came up while clients read:"
        yield from self.gaps.values()

    def gap_lines(self) -> list[str]:
        """Return a line for each damaged range that was met so far."""
        return [f"{words}\n" for words in list(self.gaps.values())]

    def close_files(self) -> None:
        """Close all files; who needs them opens them again."""
        for runs in self._runs.values():
            runs.close()

    def _keep_runs(self, key: tuple[str, str], make: Callable[[], BatchRuns]) -> BatchRuns:
        with self._runs_lock:
            found = self._runs.get(key)
        if found is None:
            # This can take long. No other thread makes the same: who asks holds the lock of its
            # partition.
            found = make()
        with self._runs_lock:
            self._runs[key] = found
            self._runs.move_to_end(key)
            while len(self._runs) > 1 and (
                len(self._runs) > _MOST_SEGMENTS or sum(map(len, self._runs.values())) > _MOST_RUNS
            ):
                self._runs.popitem(last=False)[1].close()
            others = [runs for runs in self._runs.values() if runs.is_open and runs is not found]
        for runs in others[:-_MOST_OPEN]:
            runs.close()
        return found

    def _note_fault(self, path: str, fault: FaultyRange) -> None:
        words = (
            f"{path}: position {fault.position}, {fault.length} bytes, from offset "
            f"{fault.expected_offset}: {fault.fault.label}: {fault.detail}; left out"
        )
        if self.gaps.setdefault((path, fault.position), words) is words:
            _logger.warning("%s", words)
            self.on_gap()

    def _note_filled(self, path: str, span: OffsetSpan, other: str) -> None:
        _logger.warning(
            "%s: offsets %d to %d are served from %s", path, span.start, span.end - 1, other
        )


def broker_of(log: PartitionLog) -> int:
    """Return the number of the broker that a log belongs to."""
    return _UNKNOWN_BROKER if log.log_dir.broker_id is None else log.log_dir.broker_id


def _is_served(log: PartitionLog) -> bool:
    return log.is_live and log.topic_partition is not None and log.topic != CLUSTER_METADATA


def _cluster_id(logs: Sequence[PartitionLog]) -> str:
    found = sorted({log.log_dir.cluster_id for log in logs} - {None}, key=str)
    if len(found) > 1:
        raise LogDirError(
            f"log directories of several clusters: {', '.join(map(str, found))}; serve one cluster"
        )
    return str(found[0]) if found else "kafkalog"
