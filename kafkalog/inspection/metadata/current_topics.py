"""Finding logs where the cluster's metadata says which of several topics has a name now.

Rule: docs/format.md F925.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkalog.inspection.metadata.assigned_partitions import cluster_images
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog

# No topic has this name.
_NO_TOPIC = ""


def find_logs(
    paths: Sequence[str], *, strict: bool = True, with_doubles: bool = False
) -> list[PartitionLog]:
    """Return the logs under the paths, as `find_partitions` does. Where topics share a name, the
    one that the cluster's metadata among the paths has keeps it, and the others are named TOPIC@ID.
    `with_doubles` returns a partition that is in two directories, at which a broker ends, too.
    """
    needed = _NO_TOPIC if with_doubles else None
    return find_partitions(paths, strict=strict, current_ids=current_topic_ids, needed=needed)


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
