"""The cluster's metadata: topics with their settings, brokers, settings of brokers."""

from __future__ import annotations

from kafkalog.report.contents import ClusterSection, Row
from kafkalog.report.markup import (
    Markup,
    anchor,
    element,
    folded,
    joined,
    name,
    paragraph,
    section,
    table,
)
from kafkalog.report.plot import Section, time_label
from kafkalog.words import counted

_TITLE = "Cluster metadata"


def cluster_section(cluster: ClusterSection | None) -> Section:
    """Return what the controllers have recorded."""
    if cluster is None:
        words = "These log directories have no __cluster_metadata of a KRaft cluster."
        return Section(section("cluster", _TITLE, paragraph(words)), {})
    words = (
        f"By its records up to {time_label(cluster.as_of_ms) or 'one without a time'}: "
        f"{counted(cluster.all_topics, 'topic')}, {counted(len(cluster.brokers), 'broker')} with "
        f"replicas, {counted(cluster.acls, 'ACL')}. A cluster that has stopped has no leaders."
    )
    parts = [paragraph(words), _brokers(cluster), _topics(cluster), _settings(cluster)]
    return Section(section("cluster", _TITLE, *parts), {})


def _brokers(cluster: ClusterSection) -> Markup:
    return table(
        ("Broker", "Replicas", "Leads", "Out of sync"),
        ((str(row.broker_id), row.replicas, row.leads, row.out_of_sync) for row in cluster.brokers),
    )


def _topics(cluster: ClusterSection) -> Markup:
    heads = (
        *("Topic", "Partitions", "Replication factor", "Without a leader", "Under-replicated"),
        "Settings of its own",
    )
    rows = (
        (
            *(anchor("settings", row.topic), row.partitions, row.replication_factor),
            *(row.leaderless_partitions, row.under_replicated_partitions, _configs(row)),
        )
        for row in cluster.topics
    )
    title = "Settings of each topic"
    return folded(title, table(heads, rows), len(cluster.topics), cluster.all_topics)


def _configs(row: Row) -> Markup:
    texts = [f"{key}={value}" for key, value in sorted(dict(row.configs or ()).items())]
    return joined(element("div", name(text)) for text in texts)


def _settings(cluster: ClusterSection) -> Markup:
    heads = ("Of", "Name", "Setting", "Value")
    rows = (
        (
            *(name(row.resource_type), name(row.resource_name or "all")),
            *(name(row.name), name(row.value)),
        )
        for row in cluster.configs
    )
    title = "Other dynamic settings"
    return folded(title, table(heads, rows), len(cluster.configs), cluster.all_configs)
