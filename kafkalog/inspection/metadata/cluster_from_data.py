"""The metadata of a cluster of which no copy is left, from the partition directories of its
brokers: what these say, and guesses for the rest. Rules: docs/format.md F810 to F814.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from kafkalog.coordination.metadata.image import KRAFT_VERSION
from kafkalog.coordination.metadata.releases import (
    ELR_VERSION,
    METADATA_VERSION,
    earliest_release,
    features_at,
    features_of,
)
from kafkalog.errors import CorruptDataError, LogDirError, OptionError
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.partition_metadata import read_topic_id
from kafkalog.inspection.logs.replica_facts import live_replicas
from kafkalog.inspection.metadata.copies import directory_id_of
from kafkalog.inspection.metadata.data_facts import LogFacts, is_tiered, log_facts
from kafkalog.inspection.metadata.needed_features import needed_features
from kafkalog.inspection.metadata.new_directory import (
    NewDirectory,
    kraft_version_batch,
    now_ms,
    write_directory,
)
from kafkalog.inspection.metadata.quorum import Voter
from kafkalog.messages.catalog import topic_family
from kafkalog.messages.record_writer import write_record_value
from kafkalog.messages.schema import Values
from kafkalog.storage.files.files import read_text
from kafkalog.storage.log_dir.log_dir import META_PROPERTIES, find_partitions
from kafkalog.storage.names import CLUSTER_METADATA, CONSUMER_OFFSETS, TRANSACTION_STATE
from kafkalog.storage.partition_log import PARTITION_METADATA, PartitionLog
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.reading.replicas import believed_end, by_lineage
from kafkalog.words import first_names

# No copy says which epochs there were: higher than those, so that a copy which appears later
# follows the new log.
EPOCH = 1_000_000
# The metadata.version of 3.3-IV3, the lowest of Kafka 4; of 3.7-IV2, the first with directories of
# replicas; of 3.9-IV0, the first with dynamic voters.
_LOWEST, _WITH_DIRECTORIES, _WITH_DYNAMIC_VOTERS = 7, 17, 21
_TOPIC = 2
# Nothing is deleted before somebody knows what the topic's configs were.
_KEEP_ALL = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
# As brokers create these: with the default policy the committed offsets would be deleted.
_COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "104857600"}
_CONFIGS = {CONSUMER_OFFSETS: _COMPACTED, TRANSACTION_STATE: _COMPACTED}
# Of a tiered log the beginning is not on the disk.
_TIERED = {"remote.storage.enable": "true"}
# Ids that producers have got and not yet written with: brokers get a thousand at a time.
_UNSEEN_PRODUCERS = 1_000_000
_BATCH_RECORDS = 500
_MOST_NAMES = 5
_MOST_MISSING = 10_000


class RebuiltRecord(NamedTuple):
    """A record to be written about `subject`; `guessed` are the fields of its value that nothing
    on the disks says."""

    name: str
    subject: str
    version: int
    value: Values
    guessed: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClusterFromData:
    """What the directories of brokers say of their cluster. `features` are the levels that are
    given, by their names, and `release` that of Kafka whose other levels are written, None for the
    earliest that the data needs; with `creates_missing` partitions without a directory begin
    empty."""

    logs: Sequence[PartitionLog]
    features: Mapping[str, int]
    creates_missing: bool
    release: str | None = None

    @cached_property
    def cluster_id(self) -> str:
        """The id of the cluster. Raises LogDirError unless all log directories have the same."""
        paths = {log.log_dir.cluster_id: log.log_dir.path for log in self.logs}
        if len(paths) == 1 and (found := next(iter(paths))):
            return found
        named = "; ".join(f"{path}: {each or 'none'}" for each, path in paths.items())
        raise LogDirError(
            f"the meta.properties of all log directories must have the same cluster.id: {named}"
        )

    @property
    def is_dynamic(self) -> bool:
        """Whether the log names the voters."""
        return self.features.get(KRAFT_VERSION, 0) > 0

    @cached_property
    def records(self) -> list[RebuiltRecord]:
        """The records of the new log, but for control records. Raises LogDirError where the
        directories contradict each other or do not say enough, and OptionError for a level of a
        feature that cannot be, and SchemaError for numbers that no record can hold."""
        topics = [*self._topics()]
        records = [
            *self._features(),
            *(each for found in topics for each in found),
            self._producers(),
        ]
        for each in records:
            record_bytes(each)
        return records

    def directory(self, node_id: int, voters: tuple[Voter, ...]) -> NewDirectory:
        """Return what is written beside the records."""
        return NewDirectory(self.cluster_id, node_id, voters, self.is_dynamic, EPOCH)

    def write(self, new: NewDirectory, target: str) -> None:
        """Write the files of the new directory into an empty one. Raises OSError."""
        write_directory(new, target, self._batches(new))

    def _batches(self, new: NewDirectory) -> Iterator[bytes]:
        # A new leader has a later epoch.
        epoch, offset, time_ms = new.epoch, 0, now_ms()
        if self.is_dynamic:
            yield kraft_version_batch(self.features[KRAFT_VERSION], offset, epoch)
            offset += 1
        for start in range(0, len(self.records), _BATCH_RECORDS):
            records = [
                Record(offset + number, time_ms, 0, None, record_bytes(each))
                for number, each in enumerate(self.records[start : start + _BATCH_RECORDS])
            ]
            yield write_batch(records, BatchFields(leader_epoch=epoch))
            offset += len(records)

    def _features(self) -> Iterator[RebuiltRecord]:
        """Yield the feature levels, that of the metadata first: others depend on it."""
        for name, level in self.levels.items():
            if name != KRAFT_VERSION:
                is_given = name in self.features or self.release is not None
                guessed = () if is_given else ("featureLevel",)
                value = {"name": name, "featureLevel": level}
                yield RebuiltRecord("FeatureLevelRecord", name, 0, value, guessed)

    @cached_property
    def levels(self) -> dict[str, int]:
        """The levels of all features. Raises OptionError for a level of the metadata that is too
        low."""
        levels = self._levels_of_release
        # With it the controller would take every broker out of the replicas in sync: F924.
        levels.pop(ELR_VERSION, None)
        return {**levels, METADATA_VERSION: self._metadata_version, **self.features}

    @cached_property
    def _levels_of_release(self) -> dict[str, int]:
        """The levels of the release that is given, else of that of the given level of the metadata,
        else of the earliest with what the data needs and what is given; without any of these no
        level but the metadata's is known."""
        if self.release is not None:
            return features_of(self.release)
        if METADATA_VERSION in self.features:
            return features_at(self.features[METADATA_VERSION])
        needed = {**needed_features(self.logs), **self.features}
        needed.pop(KRAFT_VERSION, None)
        return features_of(earliest_release(needed)) if needed else {}

    @cached_property
    def _metadata_version(self) -> int:
        """The level that is given, or that of the release, or else the lowest. Raises OptionError
        for a lower one."""
        least = _WITH_DYNAMIC_VOTERS if self.is_dynamic else _LOWEST
        guess = _WITH_DIRECTORIES if all(self._directory_ids.values()) else _LOWEST
        of_release = self._levels_of_release.get(METADATA_VERSION, 0)
        lowest = of_release if self.release else max(least, guess, of_release)
        level = self.features.get(METADATA_VERSION, lowest)
        if level < least:
            allowed = f"{METADATA_VERSION}={least} or more"
            if self.is_dynamic:
                allowed += f" with {KRAFT_VERSION}={self.features[KRAFT_VERSION]}"
            raise OptionError("--feature", f"{METADATA_VERSION}={level}", allowed)
        return level

    @cached_property
    def _directory_ids(self) -> dict[str, str | None]:
        """The ids of the log directories, by their paths."""
        return {path: directory_id_of(path) for path in {log.log_dir.path for log in self.logs}}

    @property
    def _has_directories(self) -> bool:
        """Whether records about partitions name the directories of their replicas."""
        is_possible = self._metadata_version >= _WITH_DIRECTORIES
        return is_possible and all(self._directory_ids.values())

    def _topics(self) -> Iterator[Iterator[RebuiltRecord]]:
        topics: dict[str, dict[int, list[PartitionLog]]] = defaultdict(dict)
        for logs in live_replicas(self.logs):
            topics[logs[0].topic or ""][logs[0].partition or 0] = logs
        ids = {topic: _topic_id(topic, found) for topic, found in sorted(topics.items())}
        self._refuse_missing(topics)
        for topic, topic_id in ids.items():
            yield self._topic(topic, topic_id, topics[topic])

    def _refuse_missing(self, topics: Mapping[str, Mapping[int, list[PartitionLog]]]) -> None:
        """Raise LogDirError for partitions without a directory that are not to begin empty, or are
        more than a topic has."""
        for found in topics.values():
            last = max(found)
            if last - len(found) > _MOST_MISSING:
                raise LogDirError(
                    f"{found[last][0].path}: {last + 1 - len(found):,} partitions before this one "
                    "have no directory: its name is wrong, or most log directories are not given"
                )
        missing = [
            f"{topic}-{number}"
            for topic, found in sorted(topics.items())
            for number in range(max(found))
            if number not in found
        ]
        if missing and not self.creates_missing:
            raise LogDirError(
                f"no log directory has {first_names(missing, _MOST_NAMES)}: give the log "
                "directories of all brokers, or --create-missing to have these partitions begin "
                "empty"
            )

    def _topic(
        self, topic: str, topic_id: str, found: Mapping[int, list[PartitionLog]]
    ) -> Iterator[RebuiltRecord]:
        yield RebuiltRecord("TopicRecord", topic, 0, {"name": topic, "topicId": topic_id})
        some = next(iter(found.values()))
        for number in range(max(found) + 1):
            values = self._partition(number, found.get(number), some)
            guessed = [*("replicas", "isr", "leaderEpoch", "partitionEpoch")]
            if number not in found and self._has_directories:
                guessed.append("directories")
            yield RebuiltRecord(
                "PartitionRecord",
                f"{topic}-{number}",
                1 if self._has_directories else 0,
                {"partitionId": number, "topicId": topic_id, **values},
                tuple(guessed),
            )
        configs = dict(_CONFIGS.get(topic, _KEEP_ALL))
        if any(map(is_tiered, (log for logs in found.values() for log in logs))):
            configs |= _TIERED
        for name, text in configs.items():
            values = {"resourceType": _TOPIC, "resourceName": topic, "name": name, "value": text}
            yield RebuiltRecord("ConfigRecord", f"{topic} {name}", 0, values, ("value",))

    def _partition(
        self, number: int, logs: list[PartitionLog] | None, some: list[PartitionLog]
    ) -> Values:
        """Return what is different in each partition; one without a directory is where some other
        of its topic is. Leaders are spread as Kafka spreads them."""
        held = sorted(logs or some, key=lambda log: log.log_dir.broker_id or 0)
        start = number % len(held)
        held = held[start:] + held[:start]
        in_sync, epoch = self._in_sync(held) if logs else (held, 0)
        values: dict[str, object] = {
            "replicas": [log.log_dir.broker_id for log in held],
            "isr": [log.log_dir.broker_id for log in in_sync],
            "removingReplicas": [],
            "addingReplicas": [],
            "leader": -1,
            "leaderEpoch": epoch,
            "partitionEpoch": 0,
        }
        if self._has_directories:
            values["directories"] = [self._directory_ids[log.log_dir.path] for log in held]
        return values

    @cached_property
    def _facts(self) -> dict[str, LogFacts]:
        return {log.path: log_facts(log) for log in self.logs}

    def _in_sync(self, logs: Sequence[PartitionLog]) -> tuple[list[PartitionLog], int]:
        """Return the replicas with the latest leader epoch and, of these, the longest log: with any
        of them as the leader nothing is lost. And the newest epoch of all."""
        found = [self._facts[log.path] for log in logs]
        replicas = [each.replica for each in found]

        def rank(number: int) -> tuple[bool, int, int]:
            one, others = replicas[number], [*replicas[:number], *replicas[number + 1 :]]
            return (one.is_empty, one.last_epoch, believed_end(one, others))

        best = rank(by_lineage(replicas)[0])
        in_sync = [log for number, log in enumerate(logs) if rank(number) == best]
        return in_sync, max(0, *(each.last_epoch for each in found))

    def _producers(self) -> RebuiltRecord:
        highest = max(facts.producer_id for facts in self._facts.values())
        value = {
            "brokerId": min(log.log_dir.broker_id or 0 for log in self.logs),
            "brokerEpoch": -1,
            "nextProducerId": highest + 1 + _UNSEEN_PRODUCERS,
        }
        return RebuiltRecord("ProducerIdsRecord", "producer ids", 0, value, tuple(value))


def cluster_from_data(
    paths: Sequence[str],
    features: Mapping[str, int],
    *,
    creates_missing: bool,
    release: str | None = None,
) -> tuple[ClusterFromData, list[PartitionLog]]:
    """Return the cluster of the log directories under the paths, and all logs found there.

    Raises LogDirError for a copy of the metadata, which says more, and if there is no partition.
    """
    found = find_partitions(paths, strict=False, current_ids=None)
    copies = [log.path for log in found if log.topic == CLUSTER_METADATA]
    if copies:
        raise LogDirError(
            f"{copies[0]} is a copy of the metadata: leave out --from-data. If nothing in it can "
            "be read, move it away: a broker that starts with it does not follow a new controller"
        )
    logs = [log for log in found if log.is_live and log.topic_partition is not None]
    odd = [log.path for log in logs if is_oldest_layout(log) or log.tiered_topic_id is not None]
    if odd:
        raise LogDirError(f"{odd[0]} is not a partition directory of a broker with KRaft")
    if not logs:
        raise LogDirError(f"{', '.join(paths)}: there is no partition directory")
    unnamed = [log.log_dir.path for log in logs if log.log_dir.broker_id is None]
    if unnamed:
        raise LogDirError(f"{unnamed[0]}: no {META_PROPERTIES} says of which broker it is")
    return ClusterFromData(logs, features, creates_missing, release), found


def record_bytes(record: RebuiltRecord) -> bytes:
    """Return the value of a record of `__cluster_metadata`. Raises SchemaError for values that it
    cannot hold."""
    types = topic_family(CLUSTER_METADATA).record_types
    number = next(each.number for each in types.values() if each.name == record.name)
    return write_record_value(CLUSTER_METADATA, number, record.version, record.value)


def _topic_id(topic: str, found: Mapping[int, list[PartitionLog]]) -> str:
    """Return the id of a topic. Raises LogDirError if a directory has none, or another."""
    paths: dict[str, str] = {}
    for log in (log for logs in found.values() for log in logs):
        path = os.path.join(log.path, PARTITION_METADATA)
        try:
            text = read_text(path)
            topic_id = None if text is None else read_topic_id(text)
        except CorruptDataError as error:
            raise LogDirError(f"{path}: {error.detail}: {_WITHOUT_ID}") from error
        if topic_id is None:
            raise LogDirError(f"{path} is missing: {_WITHOUT_ID}")
        paths.setdefault(topic_id, log.path)
    if len(paths) > 1:
        named = "; ".join(f"{path}: {topic_id}" for topic_id, path in paths.items())
        raise LogDirError(
            f"{topic} has two topic ids, {named}: the topic was deleted and recreated. Move the "
            "directories of one of them away, or give only those of the other"
        )
    return next(iter(paths))


_WITHOUT_ID = (
    "the topic's id is not known, and a broker sets a directory without it aside. Move it away, or "
    f"write its {PARTITION_METADATA} again if another partition of the topic has one"
)
