"""The audit of old consumers in a server's files, as rows of tables partition_ownership,
consumer_findings and ownership_history (schemas/tables/)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from kafkalog.columns.table_rows import TableRow
from kafkalog.coordination.zookeeper.consumer_audit import (
    ConsumerFinding,
    PartitionAudit,
    group_audit,
)
from kafkalog.coordination.zookeeper.disk_audit import Disk, DiskPartition, disk_findings
from kafkalog.coordination.zookeeper.found_cluster import FoundCluster, FoundZnode, add_znode
from kafkalog.coordination.zookeeper.ownership_history import BrokerPlace, moved_brokers
from kafkalog.inspection.zookeeper.kafka_znodes import ClusterPlace, cluster_places, cluster_znodes
from kafkalog.inspection.zookeeper.ownership_rows import ownership_row, replayed_ownerships
from kafkalog.storage.log_dir.log_dir_names import LogDirNames
from kafkalog.zookeeper.data_dir import DataDir
from kafkalog.zookeeper.log_reading import OnFinding, once
from kafkalog.zookeeper.replay import TreeAt, tree_at

OWNERSHIP = "partition_ownership"
CONSUMER_FINDINGS = "consumer_findings"
HISTORY = "ownership_history"
AUDIT_TABLES = (OWNERSHIP, CONSUMER_FINDINGS, HISTORY)


class AuditRow(NamedTuple):
    """A row of one of AUDIT_TABLES, and which cluster it is about as of which transaction."""

    table: str
    place: ClusterPlace
    zxid: int
    values: TableRow


def audit_rows(
    data_dir: DataDir, log_dirs: Sequence[LogDirNames], report: OnFinding
) -> Iterator[AuditRow]:
    """Yield all rows about the clusters in a server's files. Clusters without a group have a row of
    findings without a finding, so that it is known that they are there."""
    report = once(report)
    tree = tree_at(data_dir, None, report)
    places = cluster_places(tree)
    clusters = _found_clusters(tree, places)
    ownerships, brokers = replayed_ownerships(data_dir, tree, places, report)
    disks = _disks(log_dirs, is_only_cluster=len(places) == 1)
    for root, place in places.items():
        yield AuditRow(CONSUMER_FINDINGS, place, tree.zxid, {})
        for table, values in _cluster_rows(clusters[root], tree.changed.sessions, disks):
            yield AuditRow(table, place, tree.zxid, values)
        for finding in _moved(brokers[root]):
            yield AuditRow(CONSUMER_FINDINGS, place, tree.zxid, finding_row(finding))
        for ownership in ownerships[root]:
            yield AuditRow(HISTORY, place, tree.zxid, ownership_row(ownership))


def _found_clusters(tree: TreeAt, places: dict[str, ClusterPlace]) -> dict[str, FoundCluster]:
    clusters = {root: FoundCluster() for root in places}
    for each in cluster_znodes(tree, places):
        node = each.znode
        found = FoundZnode(each.path, node.data, node.ephemeral_owner, node.ctime_ms, node.mtime_ms)
        add_znode(clusters[each.place.chroot], found)
    return clusters


def _disks(log_dirs: Sequence[LogDirNames], *, is_only_cluster: bool) -> list[Disk]:
    """Return the disks. One of several clusters without an id could own any unnamed directory."""
    return [
        Disk(
            log_dir.path,
            log_dir.cluster_id,
            log_dir.broker_id,
            tuple(
                DiskPartition(each.directory, each.name.topic, each.name.partition, each.name.mark)
                for each in log_dir.partitions
            ),
        )
        for log_dir in log_dirs
        if is_only_cluster or log_dir.cluster_id is not None
    ]


def _cluster_rows(
    cluster: FoundCluster, sessions: Collection[int], disks: Sequence[Disk]
) -> Iterator[tuple[str, TableRow]]:
    for group_id, group in sorted(cluster.groups.items()):
        audited = group_audit(group_id, group, cluster, sessions)
        for partition in audited.partitions:
            yield OWNERSHIP, ownership_of(group_id, partition)
            for finding in partition.findings:
                yield CONSUMER_FINDINGS, finding_row(finding)
        for finding in audited.findings:
            yield CONSUMER_FINDINGS, finding_row(finding)
    for finding in disk_findings(cluster, disks):
        yield CONSUMER_FINDINGS, finding_row(finding)


def _moved(places: Sequence[BrokerPlace]) -> Iterator[ConsumerFinding]:
    for name, run in moved_brokers(places).items():
        listed = ", then ".join(place.place for place in run)
        has_returned = len({place.place for place in run}) < len(run)
        kind = "broker_id_went_back_and_forth" if has_returned else "broker_moved"
        broker_id = int(name) if name.isascii() and name.isdigit() else None
        yield ConsumerFinding(kind, f"broker {name} was at {listed}", broker_id=broker_id)


def ownership_of(group_id: str, partition: PartitionAudit) -> TableRow:
    """Return a row of partition_ownership, without the cluster and what the log adds."""
    owner, offset = partition.owner, partition.offset
    return {
        "group_id": group_id,
        "topic": partition.place.topic,
        "broker_id": partition.place.partition.broker_id,
        "partition": partition.place.partition.partition,
        "owner": owner and owner.owner,
        "owner_session_id": owner and owner.session_id,
        "claimed_ms": owner and owner.claimed_ms,
        "assigned": partition.assigned,
        "is_assignment_known": partition.is_computed,
        "strategy": partition.strategy,
        "committed_offset": offset and offset.offset,
        "committed_ms": offset and offset.committed_ms,
        "findings": [finding.finding for finding in partition.findings],
    }


def finding_row(finding: ConsumerFinding) -> TableRow:
    """Return a row of consumer_findings, all but the cluster."""
    partition = finding.partition
    broker_id = finding.broker_id if partition is None else partition.broker_id
    return {
        "finding": finding.finding,
        "group_id": finding.group_id,
        "topic": finding.topic,
        "broker_id": broker_id,
        "partition": None if partition is None else partition.partition,
        "consumer_id": finding.consumer_id,
        "detail": finding.detail,
        "other_cluster_id": finding.other_cluster_id,
    }
