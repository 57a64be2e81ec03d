"""Partitions that are in two directories of one broker, which its start would end at. Rule:
docs/format.md F1170."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.metadata.assigned_partitions import cluster_images
from kafkalog.inspection.metadata.copies import directory_id_of
from kafkalog.inspection.metadata.current_topics import current_topic_ids
from kafkalog.inspection.start.assigned_replicas import Assignments
from kafkalog.storage.files.unreadable_input import note_missing
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.same_partitions import refuse_doubles
from kafkalog.storage.partition_log import PartitionLog

_NO_TOPIC = ""


class DoubledPartition(NamedTuple):
    """The logs of a partition in directories of one broker, and that one of them which the
    cluster's metadata assigns to the broker; None where nothing says which."""

    logs: tuple[PartitionLog, ...]
    taken: PartitionLog | None

    def words(self, *, reads_all: bool) -> str:
        """Return a sentence about it."""
        first = self.logs[0]
        places = " and ".join(log.path for log in self.logs)
        said = f"{first.name} is in two directories of broker {first.log_dir.broker_id}, {places}"
        if self.taken is not None:
            read = f"the cluster's metadata assigns it to {self.taken.log_dir.path}"
            read += "" if reads_all else ", and only that one is read"
        else:
            read = "nothing says which of them counts"
            read += "" if reads_all else ", and neither is read"
        return f"{said}: {read}; the broker does not start: kafkalog recover says what to do"


def find_logs_once(paths: Sequence[str]) -> list[PartitionLog]:
    """Return the logs under the paths, as `find_logs` does, and go on where a partition is in two
    directories of one broker: with the one that the cluster's metadata assigns, or without the
    partition. The run names it in its last lines and ends with exit code 3. Raises LogDirError as
    `find_logs` does for other partitions that are there twice."""
    found, doubled = _found(paths)
    left_out = {log.path for each in doubled for log in each.logs if log is not each.taken}
    for each in doubled:
        note_missing(each.words(reads_all=False))
    return [log for log in found if log.path not in left_out]


def find_all_logs(paths: Sequence[str]) -> list[PartitionLog]:
    """Return the same with all directories of such a partition, and name it in the same way."""
    found, doubled = _found(paths)
    for each in doubled:
        note_missing(each.words(reads_all=True))
    return found


def _found(paths: Sequence[str]) -> tuple[list[PartitionLog], list[DoubledPartition]]:
    found = find_partitions(paths, strict=False, current_ids=current_topic_ids, needed=_NO_TOPIC)
    doubled = [*doubled_partitions(found)]
    others = {log.path for each in doubled for log in each.logs[1:]}
    refuse_doubles([log for log in found if log.path not in others])
    return found, doubled


def doubled_partitions(found: Sequence[PartitionLog]) -> Iterator[DoubledPartition]:
    """Yield the partitions that are in several directories of one broker, without those of
    directories that are copies of each other as a whole."""
    by_broker: dict[tuple[TopicPartition, str | None, int], list[PartitionLog]] = defaultdict(list)
    partitions: dict[str, set[TopicPartition]] = defaultdict(set)
    for log in found:
        if log.topic_partition is None or not log.is_live:
            continue
        partitions[log.log_dir.path].add(log.topic_partition)
        if log.log_dir.broker_id is not None:
            place = log.topic_partition, log.log_dir.cluster_id, log.log_dir.broker_id
            by_broker[place].append(log)
    several = [logs for logs in by_broker.values() if len(logs) > 1]
    images = cluster_images(found) if several else {}
    for logs in several:
        if any(_are_copies(*pair, partitions) for pair in combinations(logs, 2)):
            continue
        first = logs[0]
        image = images.get(first.log_dir.cluster_id)
        assigned = None
        if image is not None and first.log_dir.broker_id is not None:
            assignments = Assignments.of(image, first.log_dir.broker_id)
            assigned = assignments.place(first.topic or "", first.partition or 0)
        ids = [_directory_id(log) for log in logs]
        taken = [log for log, own in zip(logs, ids, strict=True) if own and own == assigned]
        yield DoubledPartition(tuple(logs), taken[0] if len(taken) == 1 else None)


def _are_copies(
    one: PartitionLog, other: PartitionLog, partitions: dict[str, set[TopicPartition]]
) -> bool:
    """Return whether a directory is a copy of another one, by its id, or because it has no other
    partitions."""
    ids = _directory_id(one), _directory_id(other)
    if None not in ids:
        return ids[0] == ids[1]
    own, others = partitions[one.log_dir.path], partitions[other.log_dir.path]
    return own <= others or others <= own


def _directory_id(log: PartitionLog) -> str | None:
    try:
        return directory_id_of(log.log_dir.path)
    except CorruptDataError:
        return None
