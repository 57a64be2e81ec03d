"""Which topics groups read, as far as their commits show it. Rule: docs/command-line.md F591."""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.command_line.inputs import views_with_progress
from kafkalog.coordination.groups.lag_question import LagQuestion
from kafkalog.coordination.zookeeper.kafka_directories import CONSUMER_OFFSETS_VIEW
from kafkalog.inspection.groups.commit_reach import reach_words
from kafkalog.inspection.logs.missing_records import missing_words
from kafkalog.inspection.zookeeper.cluster_trees import cluster_tree
from kafkalog.questions.groups.group_parts import refuse_without_commits
from kafkalog.questions.groups.lag import ConsumerLag
from kafkalog.storage.names import BROKERS_TOPICS, CONSUMER_OFFSETS, SHARE_GROUP_STATE
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Views
from kafkalog.words import counted


def unread_logs(
    logs: Sequence[PartitionLog],
    found: list[PartitionLog],
    paths: Sequence[str],
    zookeeper: Sequence[str],
    processes: int | None,
) -> tuple[list[PartitionLog], list[str]]:
    """Return the logs of topics that no group reads, and lines about that."""
    own = [log for log in logs if log.topic is not None and log.topic not in BROKERS_TOPICS]
    commits = [log for log in found if log.topic == CONSUMER_OFFSETS]
    with views_with_progress(paths, found, processes, "reading commits", selected=commits) as views:
        read, lines = _read_topics(views, zookeeper)
    unread = [log for log in own if log.topic not in read]
    whole = counted(len({log.topic for log in own}), "topic")
    here = " by those commits that are here" if lines else ""
    lines.append(
        f"of {whole} {len({log.topic for log in unread}):,} have no commit of a group{here}; "
        "consumers that do not commit, or whose commits have expired, leave no trace"
    )
    return unread, lines


def _read_topics(views: Views, zookeeper: Sequence[str]) -> tuple[set[str], list[str]]:
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
    lag = ConsumerLag(views, LagQuestion(0))
    found |= lag.rows.groups_alone().topics
    hidden = [reach_words([reach], None) for reach in lag.reaches if not reach.is_whole]
    of_shares = [each for each in lag.missing if each.topic == SHARE_GROUP_STATE]
    if of_shares:
        hidden.append(f"share groups: {missing_words(of_shares)}")
    return found, hidden
