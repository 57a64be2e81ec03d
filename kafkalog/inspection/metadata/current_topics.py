"""Finding logs where the cluster's metadata says which of several topics has a name now, and which
of two directories has a partition.

Rules: docs/format.md F925, F1170.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import combinations
from typing import NamedTuple

from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.metadata.assigned_partitions import assigned_directory, cluster_images
from kafkalog.inspection.metadata.copies import directory_id_of
from kafkalog.storage.files.unreadable_input import note_missing
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.same_partitions import refuse_doubles
from kafkalog.storage.partition_log import PartitionLog

# No topic has this name.
_NO_TOPIC = ""


class Doubles(Enum):
    """What of a partition that is in two directories of one broker, at which its start ends."""

    # The log that the cluster's metadata assigns, none without it; the run names the partition in
    # its last lines and ends with exit code 3.
    ASSIGNED = auto()
    # All of its logs, named in the same way.
    ALL = auto()
    # All of its logs, for a caller that says itself what becomes of them.
    UNSAID = auto()


def find_logs(
    paths: Sequence[str], *, strict: bool = True, doubles: Doubles = Doubles.ASSIGNED
) -> list[PartitionLog]:
    """Return the logs under the paths, as `find_partitions` does. Where topics share a name, the
    one that the cluster's metadata among the paths has keeps it, and the others are named TOPIC@ID.
    Of a partition that is in two directories of one broker return what `doubles` says; `strict`
    refuses it. Raises LogDirError for other partitions that are there twice.
    """
    found = find_partitions(paths, strict=strict, current_ids=current_topic_ids, needed=_NO_TOPIC)
    if doubles is Doubles.UNSAID:
        return found
    try:
        refuse_doubles(found)
    except LogDirError:
        doubled = [*doubled_partitions(found)]
        others = {log.path for each in doubled for log in each.logs[1:]}
        refuse_doubles([log for log in found if log.path not in others])
        if strict:
            raise LogDirError(doubled[0].refusal()) from None
        return _noted(found, doubled, reads_all=doubles is Doubles.ALL)
    return found


def _noted(
    found: list[PartitionLog], doubled: Iterable[DoubledPartition], *, reads_all: bool
) -> list[PartitionLog]:
    """Return the logs that are read, and note the partitions that are in two directories."""
    for each in doubled:
        note_missing(each.words(reads_all=reads_all))
    left_out = {log.path for each in doubled for log in each.logs if log is not each.taken}
    return found if reads_all else [log for log in found if log.path not in left_out]


def current_topic_ids(logs: Sequence[PartitionLog]) -> Mapping[tuple[str | None, str], str]:
    """Return the ids of topics by cluster id and name, at the end of the best copy of each
    cluster's metadata among the logs; none of a cluster without a copy that can be read."""
    return {
        (cluster_id, row["topic"]): topic_id
        for cluster_id, image in cluster_images(logs).items()
        for (topic_id,), row in image.tables["topic"].items()
    }


def without_former(logs: Iterable[PartitionLog], topics: Sequence[str] = ()) -> list[PartitionLog]:
    """Return the logs without those of former topics, whose names other topics have now, unless
    the topics or the paths name them."""
    return [log for log in logs if not log.is_former or log.is_named or log.topic in topics]


class DoubledPartition(NamedTuple):
    """The logs of a partition in directories of one broker, and that one of them which the
    cluster's metadata assigns to the broker; None where nothing says which."""

    logs: tuple[PartitionLog, ...]
    taken: PartitionLog | None

    def words(self, *, reads_all: bool) -> str:
        """Return a sentence about it for a run that goes on."""
        read = ", and only that one is read" if self.taken else ", and neither is read"
        advice = "the broker does not start: kafkalog recover says what to do"
        return f"{self._said}{'' if reads_all else read}; {advice}"

    def refusal(self) -> str:
        """Return a sentence about it for a run that stops at damage."""
        read = "reads only that one" if self.taken else "continues without the partition"
        return f"{self._said} (mode PERMISSIVE {read})"

    @property
    def _said(self) -> str:
        first = self.logs[0]
        places = " and ".join(log.path for log in self.logs)
        said = f"{first.name} is in two directories of broker {first.log_dir.broker_id}, {places}"
        if self.taken is None:
            return f"{said}: nothing says which of them counts"
        return f"{said}: the cluster's metadata assigns it to {self.taken.log_dir.path}"


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
            topic_id = image.id_of_topic(first.topic or "")
            of_topic = topic_id, first.partition or 0
            assigned = assigned_directory(image, of_topic, first.log_dir.broker_id)
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
