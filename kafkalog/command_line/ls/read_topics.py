"""Which topics groups read, as far as their commits show it. Rule: docs/command-line.md F591."""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.command_line.groups.group_sources import Reading, group_sources, refuse_without_groups
from kafkalog.coordination.groups.commit_status import OFFSETS_RETENTION_MINUTES
from kafkalog.coordination.zookeeper.kafka_directories import CONSUMER_OFFSETS_VIEW
from kafkalog.inspection.groups.commit_reach import reach_words
from kafkalog.inspection.logs.missing_records import missing_words
from kafkalog.inspection.zookeeper.cluster_trees import cluster_tree
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from kafkalog.storage.partition_log import PartitionLog


def read_topics(
    reading: Reading, logs: list[PartitionLog], zookeeper: Sequence[str]
) -> tuple[set[str], list[str]]:
    """Return the topics that a group has committed offsets for, or a member is assigned, and lines
    about what hides commits. `logs` are all under the paths, `zookeeper` data directories.

    Raises LogDirError if there is neither a partition of `__consumer_offsets` nor ZooKeeper.
    """
    cluster_ids = {log.log_dir.cluster_id for log in logs}
    tree = cluster_tree(zookeeper, cluster_ids)
    found: set[str] = set()
    if tree is not None:
        rows = tree.rows(CONSUMER_OFFSETS_VIEW, "/consumers")
        found = {str(row["topic"]) for row in rows if row.get("topic") is not None}
    if tree is not None and not any(log.topic == CONSUMER_OFFSETS for log in logs):
        return found, []
    refuse_without_groups(reading.log_dirs, logs)
    retention_ms = OFFSETS_RETENTION_MINUTES * 60_000
    sources = group_sources(reading, logs, at_ms=None, retention_ms=retention_ms)
    places = (*sources.commits, *sources.assigned)
    found |= {topic for _, (topic, _) in places}
    hidden = [
        reach_words([reach], None) for reach in sources.commit_reaches() if not reach.is_whole
    ]
    of_shares = [each for each in sources.missing if each.topic == SHARE_GROUP_STATE]
    if of_shares:
        hidden.append(f"share groups: {missing_words(of_shares)}")
    return found, hidden
