"""The cluster's metadata: topics with their settings, brokers, settings of brokers; and what the
next start of its nodes does."""

from __future__ import annotations

from kafkalog.report.contents import ClusterSection, Row, StartSection
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
_START_TITLE = "The next start"
_HEADS = ("Topic", "Partition", "What", "Log end after it", "Records lost", "File or reason")


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


def start_section(start: StartSection | None) -> Section:
    """Return whether nodes start, with the lines that mend it, and what partitions lose."""
    if start is None:
        return Section(section("start", _START_TITLE, paragraph("There is no log.")), {})
    parts = [paragraph(f"{start.words[:1].upper()}{start.words[1:]}.")]
    if start.lines:
        parts.append(element("pre", "\n".join(start.lines)))
    if start.partitions:
        rows = table(_HEADS, map(_cells, start.partitions))
        every, shown = start.all_partitions, len(start.partitions)
        parts.append(folded("Partitions with findings", rows, shown, every))
    parts.append(
        paragraph(
            "By the files alone, for the newest release that opens them: ",
            joined([element("code", "kafkalog recover")]),
            " judges another version, with a server.properties and a user.",
        )
    )
    return Section(section("start", _START_TITLE, *parts), {})


def _cells(row: Row) -> tuple[str | int | Markup | None, ...]:
    return (
        name(row.topic),
        row.partition,
        _what(row),
        row.log_end_offset,
        row.lost_records,
        row.start_error
        or row.set_aside_reason
        or row.leader_reason
        or row.cut_kind
        or _of_coordinator(row)
        or "-",
    )


def _what(row: Row) -> str:
    if not row.broker_starts:
        return "keeps the broker from starting"
    if row.is_set_aside:
        return "is set aside"
    if row.begins_empty:
        return "begins empty"
    if row.has_leader is False:
        return "stays without a leader"
    if row.coordinator_error:
        return "its coordinator does not load"
    if row.deleted_soon and not row.deleted_soon["is_expected"]:
        return "is deleted soon"
    if row.lost_bytes:
        return "is truncated"
    return "has lost records" if row.missing_offsets else "keeps damage"


def _of_coordinator(row: Row) -> str | None:
    return None if not row.coordinator_error else row.coordinator_error["reason"]
