"""Views `cluster_topics`, `cluster_partitions`, `cluster_configs` and `cluster_acls` of clusters
whose metadata is in ZooKeeper. Their rows are those of `kafkalog metadata`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.columns.table_rows import TableRow
from kafkalog.coordination.zookeeper.znode_image import ZnodeImage
from kafkalog.inspection.zookeeper.cluster_trees import ClusterTree
from kafkalog.inspection.zookeeper.kafka_znodes import cluster_places
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding
from kafkalog.zookeeper.log_reading import OnFinding
from kafkalog.zookeeper.replay import TreeAt

_KINDS = {
    "cluster_topics": "topic",
    "cluster_partitions": "partition",
    "cluster_configs": "config",
    "cluster_acls": "acl",
}


def state_rows(tree: TreeAt, view: str, path: str, on_finding: OnFinding) -> Iterator[TableRow]:
    """Yield the rows of a view for each cluster in a data directory; secrets are hidden.
    `on_finding` is called with the znodes that cannot be read."""
    for place in cluster_places(tree).values():
        found = ZnodeImage.of(ClusterTree(path, tree, place).facts())
        for znode, detail in found.unreadable:
            what = f"{place.chroot}{znode}: {detail}"
            on_finding(ZooKeeperFinding(path, None, ZooKeeperFault.MALFORMED, what))
        constants = {
            "cluster_id": place.cluster_id,
            "chroot": place.chroot,
            "as_of_zxid": tree.zxid,
        }
        for row in found.rows(_KINDS[view]):
            yield {**constants, **row}
