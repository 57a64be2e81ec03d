"""Which topics groups read, as far as their commits show it. Rule: docs/command-line.md F591."""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.coordination.zookeeper.kafka_directories import CONSUMER_OFFSETS_VIEW
from kafkalog.inspection.groups.commit_reach import reach_words
from kafkalog.inspection.logs.missing_records import missing_words
from kafkalog.inspection.zookeeper.cluster_trees import cluster_tree
from kafkalog.questions.group_parts import refuse_without_commits
from kafkalog.questions.lag import ConsumerLag, LagSettings
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from kafkalog.views.engine import Views


def read_topics(views: Views, zookeeper: Sequence[str]) -> tuple[set[str], list[str]]:
    """Return the topics that a group has committed offsets for, or a member is assigned, and lines
    about what hides commits. `views` reads all logs, `zookeeper` are data directories.

    Raises LogDirError if there is neither a partition of `__consumer_offsets` nor ZooKeeper.
    """
    cluster_ids = {log.log_dir.cluster_id for log in views.logs}
    tree = cluster_tree(zookeeper, cluster_ids)
    found: set[str] = set()
    if tree is not None:
        rows = tree.rows(CONSUMER_OFFSETS_VIEW, "/consumers")
        found = {str(row["topic"]) for row in rows if row.get("topic") is not None}
    if tree is not None and not any(log.topic == CONSUMER_OFFSETS for log in views.logs):
        return found, []
    refuse_without_commits(views.log_dirs, views.logs)
    lag = ConsumerLag(views, LagSettings.at(0, None))
    found |= lag.rows.groups_alone().topics
    hidden = [reach_words([reach], None) for reach in lag.reaches if not reach.is_whole]
    of_shares = [each for each in lag.missing if each.topic == SHARE_GROUP_STATE]
    if of_shares:
        hidden.append(f"share groups: {missing_words(of_shares)}")
    return found, hidden
