"""The tree of the ensemble's member that has come furthest, for the cluster of log directories."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn

from kafkalog.coordination.zookeeper.ensemble_clusters import (
    NEWER_FILES,
    EnsembleCluster,
    cluster_of_log_dirs,
)
from kafkalog.coordination.zookeeper.kafka_directories import CLUSTER_ZNODES, ZnodeRow, kafka_rows
from kafkalog.coordination.zookeeper.znode_image import SUBTREES, ZnodeFacts
from kafkalog.errors import LogDirError
from kafkalog.inspection.zookeeper.kafka_znodes import ClusterPlace, cluster_places, cluster_znodes
from kafkalog.log_lines import logger
from kafkalog.storage.log_dir.topic_configs import ZOOKEEPER, RecordedConfigs
from kafkalog.words import first_names
from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.faults import ZooKeeperFinding
from kafkalog.zookeeper.moments import zxid_at
from kafkalog.zookeeper.replay import TreeAt, tree_at
from kafkalog.zookeeper.tree_walk import znodes

_SHOWN_ZNODES = 5
_DEFAULT_ENTITY = "<default>"

_logger = logger(__name__)


class ClusterTree(NamedTuple):
    """A tree of znodes, the data directory that it is of, and where the cluster begins in it."""

    path: str
    tree: TreeAt
    place: ClusterPlace

    def facts(self) -> Iterator[ZnodeFacts]:
        """Yield the znodes that a cluster's image is made of."""
        root = self.place.chroot
        for subtree in SUBTREES:
            subtree_path = f"{root}{subtree}".encode()
            for found in cluster_znodes(self.tree, {root: self.place}, subtree_path):
                znode = found.znode
                yield ZnodeFacts(found.path, znode.data, znode.version, znode.czxid)

    def rows(self, view: str, subtree: str) -> Iterator[ZnodeRow]:
        """Yield the rows of a view for the znodes below `subtree`, such as /config; a warning names
        those that cannot be read."""
        root = self.place.chroot
        for found in cluster_znodes(self.tree, {root: self.place}, f"{root}{subtree}".encode()):
            for row in kafka_rows(found.path, found.znode.data, view):
                if row.values.get("reason"):
                    _logger.warning("%s: %s", found.znode.path, row.values.get("detail"))
                else:
                    yield row.values


def cluster_tree(
    paths: Sequence[str], cluster_ids: Collection[str | None], chroot: str | None = None
) -> ClusterTree | None:
    """Return what `newest_tree` does, None without a data directory."""
    return newest_tree(paths, cluster_ids, chroot) if paths else None


def newest_tree(
    paths: Sequence[str],
    cluster_ids: Collection[str | None],
    chroot: str | None = None,
    time_ms: int | None = None,
) -> ClusterTree:
    """Return the tree in data directories that has the cluster with one of the ids, at the end or
    as of a time.

    Raises LogDirError for a path without ZooKeeper's files or without a cluster in them,
    OptionError where none or several clusters can be meant, and DataLossError for a time before all
    that is there. Damage is passed over, and a warning names it.
    """
    trees = {
        each.path: tree_at(each, None if time_ms is None else zxid_at(each, time_ms), _warn)
        for each in find_data_dirs(paths)
    }
    places = {
        EnsembleCluster(path, *place, tree.zxid): place
        for path, tree in trees.items()
        for place in cluster_places(tree).values()
    }
    if not places:
        refuse_without_cluster(trees, has_time=time_ms is not None)
    cluster = cluster_of_log_dirs(list(places), cluster_ids, chroot=chroot, allow_unknown=True)
    return ClusterTree(cluster.input_path, trees[cluster.input_path], places[cluster])


def refuse_without_cluster(trees: Mapping[str, TreeAt], *, has_time: bool = False) -> NoReturn:
    """Raise LogDirError for the trees of data directories, by path, in which no cluster is."""
    words = "; ".join(_without_cluster(path, tree) for path, tree in trees.items())
    raise LogDirError(f"{words}: {NEWER_FILES}{', or a later time' * has_time}")


def _without_cluster(path: str, tree: TreeAt) -> str:
    tops = sorted(each.path for each in znodes(tree) if each.path.count("/") == 1)
    shown = first_names([each for each in tops if each != "/"], _SHOWN_ZNODES) or "nothing"
    return f"{path}: no Kafka cluster as of zxid {tree.zxid:#x}, only {shown} is there"


def _warn(finding: ZooKeeperFinding) -> None:
    _logger.warning("%s: position %s: %s", finding.file, finding.position, finding.detail)


def zookeeper_configs(
    paths: Sequence[str], cluster_ids: Collection[str | None], chroot: str | None = None
) -> RecordedConfigs | None:
    """Return the settings of topics and brokers, which are below /config (F169), of the cluster
    with one of the ids; None without a data directory. Raises as `cluster_tree` does."""
    found = cluster_tree(paths, cluster_ids, chroot)
    if found is None:
        return None
    topics: dict[str, Mapping[str, str]] = {}
    brokers: dict[str, Mapping[str, str]] = {}
    for row in found.rows(CLUSTER_ZNODES, "/config"):
        kind, _, name = str(row.get("entity_path")).partition("/")
        settings = row.get("settings")
        if isinstance(settings, Mapping) and kind in ("topics", "brokers"):
            own = topics if kind == "topics" else brokers
            own["" if name == _DEFAULT_ENTITY else name] = settings
    return RecordedConfigs(topics, brokers, ZOOKEEPER)
