"""Finding logs where the cluster's metadata says which of several topics has a name now, and which
of two directories has a partition.

Rules: docs/format.md F925, F1170.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto

from kafkalog.errors import LogDirError
from kafkalog.inspection.metadata.assigned_partitions import cluster_images
from kafkalog.inspection.metadata.doubled_partitions import DoubledPartition, doubled_partitions
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
