"""The settings of topics and brokers that Kafka keeps in ZooKeeper, below /config.

Rule: docs/format.md F169.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster, cluster_of_log_dirs
from kafkalog.coordination.zookeeper.kafka_directories import CLUSTER_ZNODES, kafka_rows
from kafkalog.inspection.zookeeper.kafka_znodes import cluster_places, cluster_znodes
from kafkalog.log_lines import logger
from kafkalog.storage.log_dir.topic_configs import ZOOKEEPER, RecordedConfigs
from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.faults import ZooKeeperFinding
from kafkalog.zookeeper.replay import TreeAt, tree_at

_logger = logger(__name__)
_DEFAULT = "<default>"


def zookeeper_configs(
    paths: Sequence[str], cluster_ids: Collection[str | None], chroot: str | None = None
) -> RecordedConfigs | None:
    """Return what the data directories say of the cluster with one of the ids, None without a data
    directory.

    Raises LogDirError for a path without ZooKeeper's files, and OptionError where none or several
    clusters can be meant. Damage is passed over, and a warning names it.
    """
    if not paths:
        return None
    trees = {each.path: tree_at(each, None, _warn) for each in find_data_dirs(paths)}
    found = [
        EnsembleCluster(path, *place, tree.zxid)
        for path, tree in trees.items()
        for place in cluster_places(tree).values()
    ]
    cluster = cluster_of_log_dirs(found, cluster_ids, chroot=chroot, allow_unknown=True)
    return _configs(trees[cluster.input_path], cluster.chroot)


def _configs(tree: TreeAt, chroot: str) -> RecordedConfigs:
    topics: dict[str, Mapping[str, str]] = {}
    brokers: dict[str, Mapping[str, str]] = {}
    places = {root: place for root, place in cluster_places(tree).items() if root == chroot}
    for znode in cluster_znodes(tree, places, f"{chroot}/config".encode()):
        for row in kafka_rows(znode.path, znode.znode.data, CLUSTER_ZNODES):
            if row.values.get("reason"):
                _logger.warning("%s: %s", znode.znode.path, row.values.get("detail"))
                continue
            kind, _, name = str(row.values.get("entity_path")).partition("/")
            settings = row.values.get("settings")
            if isinstance(settings, Mapping) and kind in ("topics", "brokers"):
                own = topics if kind == "topics" else brokers
                own["" if name == _DEFAULT else name] = settings
    return RecordedConfigs(topics, brokers, ZOOKEEPER)


def _warn(finding: ZooKeeperFinding) -> None:
    _logger.warning("%s: position %s: %s", finding.file, finding.position, finding.detail)
