"""Groups that ZooKeeper coordinates, with their commits, and its topics and leaders. Rules:
docs/zookeeper.md F493 and F494."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa

from kafkalog.columns.arrays import of_values
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.commit_status import KnownTopic
from kafkalog.coordination.groups.group_records import Group, GroupKey, GroupMember
from kafkalog.inspection.groups.commits_in_effect import COMMIT_COLUMNS, COMMIT_KEY, CommitsInEffect
from kafkalog.inspection.groups.placed_commits import of_placed_schema
from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperCluster
from kafkalog.views.options.zookeeper.zookeeper_options import ZookeeperView

# The type of groups that ZooKeeper coordinates.
TYPE = "zookeeper"


def zookeeper_commits(cluster: ZookeeperCluster, at_ms: int | None) -> pa.Table:
    """Return a row with PLACED_SCHEMA for each commit of groups in ZooKeeper, with the consumer
    that owns its partition, and for each owned partition without a commit. If several consumers
    claim a partition, because one of them has died, the last by id is named."""
    in_effect = CommitsInEffect(at_ms)
    for batch in cluster.commits(COMMIT_COLUMNS):
        in_effect.add(batch)
    kept = in_effect.rows()
    found = [] if kept is None else [kept]
    owned = cluster.rows(ZookeeperView.PARTITION_OWNERS, at_ms)
    owners: dict[tuple[str, str, int], str] = {}
    for row in owned:
        # They are null of a znode that could not be read.
        place = row["group_id"], row["topic"], row["partition"]
        if None not in (*place, row["consumer_id"]):
            owners[place] = max(owners.get(place, ""), row["consumer_id"])
    committed = [place for table in found for place in _places(table)]
    others = sorted(owners.keys() - set(committed))
    if others:
        about = cluster.cluster
        rows = [(about.cluster_id, None, *place, about.input_path) for place in others]
        schema = arrow_schema("offset_commits", (*COMMIT_KEY, "input_path"))
        values = zip(*rows, strict=True)
        arrays = [of_values(each, schema.field(n).type) for n, each in enumerate(values)]
        found.append(pa.table(arrays, schema=schema))
    if not found:
        return of_placed_schema(arrow_schema("offset_commits", COMMIT_COLUMNS).empty_table())
    members = _members(cluster, owned, at_ms)
    places = [*committed, *others]
    of_groups = [members.get(group) for group, _, _ in places]
    counts = [None if each is None else len(each) for each in of_groups]
    states = [None if each is None else "Stable" if each else "Empty" for each in of_groups]
    columns = {
        "member_id": of_values([owners.get(place) for place in places], pa.string()),
        "group_type": of_values([each and TYPE for each in states], pa.string()),
        "group_state": of_values(states, pa.string()),
        "member_count": of_values(counts, pa.int32()),
        "commits_complete_from_ms": of_values(
            [cluster.reach().complete_from_ms] * len(places), pa.int64()
        ),
    }
    return of_placed_schema(pa.concat_tables(found, promote_options="default"), columns)


def groups_in_zookeeper(
    cluster: ZookeeperCluster, at_ms: int | None
) -> tuple[list[Group], list[GroupMember]]:
    """Return the groups that anything is known of, and their members, the registered consumers,
    with the partitions that they own. Rule: docs/zookeeper.md F493."""
    owned = cluster.rows(ZookeeperView.PARTITION_OWNERS, at_ms)
    assigned: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in owned:
        if None not in (row["group_id"], row["consumer_id"], row["topic"], row["partition"]):
            assigned[row["group_id"], row["consumer_id"]][row["topic"]].append(row["partition"])
    found, members = [], []
    for group_id, consumers in sorted(_members(cluster, owned, at_ms).items()):
        key = GroupKey(cluster.cluster.cluster_id, None, group_id)
        found.append(
            Group(
                *(key, TYPE, "Stable" if consumers else "Empty", None, None, None, None, None),
                members=len(consumers),
                is_simple=False,
            )
        )
        members += [
            GroupMember(
                *(key, TYPE, consumer, None, None, None),
                assigned=[
                    {"topic": topic, "topic_id": None, "partitions": partitions}
                    for topic, partitions in sorted(assigned[group_id, consumer].items())
                ],
            )
            for consumer in sorted(consumers)
        ]
    return found, members


def zookeeper_topics(cluster: ZookeeperCluster, at_ms: int | None) -> list[KnownTopic]:
    """Return the topics, with the time of their creation; those that wait for their deletion are
    deleted."""
    waiting = {
        row["topic"]
        for row in cluster.rows(ZookeeperView.CLUSTER_ZNODES, at_ms)
        if row["kind"] == "deleted_topic"
    }
    return [
        KnownTopic(
            *(row["cluster_id"], row["topic"], row["topic_id"], row["topic"] in waiting),
            row["ctime_ms"],
        )
        for row in cluster.rows(ZookeeperView.TOPIC_REGISTRY, at_ms)
        if row["topic"] is not None
    ]


def zookeeper_leaders(cluster: ZookeeperCluster, topic: str, at_ms: int | None) -> dict[int, int]:
    """Return the leaders of a topic's partitions that have one."""
    return {
        row["partition"]: row["leader"]
        for row in cluster.rows(ZookeeperView.PARTITION_STATES, at_ms)
        if row["topic"] == topic
        and row["partition"] is not None
        and row["leader"] is not None
        and row["leader"] >= 0
    }


def _places(commits: pa.Table) -> list[tuple[str, str, int]]:
    names = ("group_id", "topic", "partition")
    return list(zip(*(commits[name].to_pylist() for name in names), strict=True))


def _members(
    cluster: ZookeeperCluster, owned: list[dict[str, object]], at_ms: int | None
) -> dict[str, set[str]]:
    """Return the registered consumers of each group that anything is known of."""
    found: dict[str, set[str]] = defaultdict(set)
    offsets = cluster.rows(ZookeeperView.CONSUMER_OFFSETS, at_ms)
    for row in (*owned, *offsets):
        if row["group_id"] is not None:
            found[str(row["group_id"])].update(())
    for row in cluster.rows(ZookeeperView.CONSUMER_REGISTRY, at_ms):
        if row["group_id"] is not None:
            found[row["group_id"]].update([row["consumer_id"]] if row["consumer_id"] else ())
    return dict(found)
