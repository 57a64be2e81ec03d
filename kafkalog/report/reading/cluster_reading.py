"""The parts of a report about the cluster's metadata, from the views of `__cluster_metadata`, and
about what a broker would do at its next start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.questions.node_start import NODES
from kafkalog.questions.recovery import RecoveryRequest, recovery_plan
from kafkalog.report.contents import ClusterSection, Row, StartSection, as_rows
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Views, rows_of_view
from kafkalog.views.options.options import Shutdown

# What a page has room for. F605
_LISTED = 500
_TOPIC_COLUMNS = (
    *("as_of_ms", "topic", "partitions", "replication_factor", "leaderless_partitions"),
    *("under_replicated_partitions", "configs"),
)
_CONFIG_COLUMNS = ("resource_type", "resource_name", "name", "value")


def read_cluster(
    views: Views, logs: Sequence[PartitionLog], as_of_ms: int | None
) -> ClusterSection | None:
    """Return topics with their settings, brokers with what they hold and lead, and settings of
    brokers, as of a time or the last record; None where the input has no cluster metadata."""
    if not any(log.topic == CLUSTER_METADATA for log in logs):
        return None
    options = {} if as_of_ms is None else {"asOf": str(as_of_ms)}

    def rows(view: str, *columns: str) -> list[Row]:
        return as_rows(rows_of_view(views, view, columns, options=options))

    topics = rows("cluster_topics", *_TOPIC_COLUMNS)
    topics.sort(key=_the_worst_first)
    configs = rows("cluster_configs", *_CONFIG_COLUMNS)
    settings = [row for row in configs if row.resource_type != "topic"]
    settings.sort(key=lambda row: (row.resource_type, row.resource_name, row.name))
    return ClusterSection(
        max((row.as_of_ms for row in topics if row.as_of_ms is not None), default=None),
        topics[:_LISTED],
        len(topics),
        _brokers(rows("cluster_partitions", "leader", "replicas", "isr")),
        settings[:_LISTED],
        len(settings),
        len(rows("cluster_acls", "acl_id")),
    )


def _the_worst_first(row: Row) -> tuple[int, int, str]:
    return -row.leaderless_partitions, -row.under_replicated_partitions, row.topic


def _brokers(partitions: Sequence[Row]) -> list[Row]:
    replicas = Counter(broker for row in partitions for broker in row.replicas)
    leads = Counter(row.leader for row in partitions)
    in_sync = Counter(broker for row in partitions for broker in row.isr)
    return [
        Row(
            broker_id=broker,
            replicas=replicas[broker],
            leads=leads[broker],
            out_of_sync=replicas[broker] - in_sync[broker],
        )
        for broker in sorted(replicas)
    ]


def read_start(
    views: Views,
    known: Sequence[PartitionLog] | None,
    *,
    at_ms: int,
    config: Mapping[str, str],
    most: int,
) -> StartSection | None:
    """Return the nodes, rows of table `node_starts`; what to say about each, with the lines that
    mend it; and the first `most` partitions that lose something, rows of table `recovery_plan`.
    None without a log. `known` are the logs with what is known of their files."""
    if not views.logs:
        return None
    settings = RecoveryRequest(
        Shutdown.AS_FOUND.value, INDEX_INTERVAL_BYTES, at_ms, config=config, logs=known
    )
    found = recovery_plan(views, settings)
    return StartSection(
        as_rows(found.rows(NODES)),
        list(found.nodes.lines()),
        as_rows(found.findings[:most]),
        len(found.findings),
        found.words(),
        has_findings=found.has_findings,
    )
