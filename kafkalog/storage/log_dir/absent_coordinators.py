"""Which partitions of the topic that transaction coordinators keep are not among some logs.

Rule: docs/format.md F216.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kafkalog.storage.names import TRANSACTION_STATE
from kafkalog.storage.partition_log import PartitionLog


def absent_coordinators(logs: Iterable[PartitionLog]) -> dict[str | None, list[int]]:
    """Return for each cluster the partitions of `__transaction_state` that it lacks, although
    checkpoints name them or a later one: their coordinators are unknown. Clusters that have all of
    them, or name none, are left out, unless other logs name no cluster (None) and can belong to
    any: these appear without a partition too."""
    here: dict[str | None, set[int]] = defaultdict(set)
    named: dict[str | None, set[int]] = defaultdict(set)
    log_dirs = {}
    for log in logs:
        log_dirs[log.log_dir.path] = log.log_dir
        if log.topic == TRANSACTION_STATE and log.partition is not None:
            here[log.log_dir.cluster_id].add(log.partition)
    for log_dir in log_dirs.values():
        for checkpoint in (log_dir.high_watermarks, log_dir.recovery_points):
            named[log_dir.cluster_id].update(
                partition for topic, partition in checkpoint if topic == TRANSACTION_STATE
            )
    absent = {
        cluster_id: sorted(
            set(range(max(here[cluster_id] | named[cluster_id], default=-1) + 1)) - here[cluster_id]
        )
        for cluster_id in here.keys() | named.keys()
    }
    clusters = {log_dir.cluster_id for log_dir in log_dirs.values()}
    is_mixed = None in clusters and len(clusters) > 1
    return {
        cluster_id: numbers
        for cluster_id in clusters
        if (numbers := absent.get(cluster_id, [])) or is_mixed
    }


def clusters_without_all_coordinators(logs: Iterable[PartitionLog]) -> frozenset[str | None]:
    """Return the clusters that lack partitions of `__transaction_state`, or all of it: a missing
    coordinator may know the transactional ids that the others do not."""
    found = list(logs)
    with_some = {log.log_dir.cluster_id for log in found if log.topic == TRANSACTION_STATE}
    without = {log.log_dir.cluster_id for log in found} - with_some
    return frozenset(without | absent_coordinators(found).keys())
