"""Kafka's directories in a tree of znodes as rows of their views (schemas/tables/, one for each
name in DIRECTORY_VIEWS), and the clusters themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from kafkalog.columns.table_rows import TableRow, row_batches
from kafkalog.coordination.zookeeper.cluster_znodes import read_cluster_id
from kafkalog.coordination.zookeeper.kafka_directories import kafka_rows
from kafkalog.coordination.zookeeper.znode_paths import below_root, cluster_roots, is_root_mark
from kafkalog.errors import CorruptDataError
from kafkalog.zookeeper.replay import TreeAt
from kafkalog.zookeeper.tree_walk import znodes
from kafkalog.zookeeper.znode import Znode

_ID = "/cluster/id"


class ClusterPlace(NamedTuple):
    """A cluster in an ensemble: its root, and its id if it has one. `made` tells clusters without
    an id apart: when their first znode was created, by zxid and time."""

    chroot: str
    cluster_id: str | None
    made: str


class ClusterZnode(NamedTuple):
    """A znode of a cluster, and its path below the root."""

    place: ClusterPlace
    path: str
    znode: Znode


def cluster_places(tree: TreeAt) -> dict[str, ClusterPlace]:
    """Return the clusters of an ensemble by their roots."""
    marks: dict[str, Znode] = {}
    ids: dict[str, str] = {}
    for znode in znodes(tree):
        if is_root_mark(znode.path):
            marks[znode.path] = znode
        elif znode.path.endswith(_ID):
            try:
                ids[znode.path] = read_cluster_id(znode.data)
            except CorruptDataError:
                continue  # its row says so
    places = {}
    for root in cluster_roots(marks):
        own = [node for path, node in marks.items() if below_root(path, [root])]
        czxid, ctime_ms = min((node.czxid, node.ctime_ms) for node in own)
        places[root] = ClusterPlace(root, ids.get(root + _ID), f"{czxid:#x} {ctime_ms}")
    return places


def cluster_znodes(
    tree: TreeAt, places: dict[str, ClusterPlace], subtree: bytes = b""
) -> Iterator[ClusterZnode]:
    """Yield the znodes of the clusters, those of all others left out."""
    roots = list(places)
    for znode in znodes(tree, subtree):
        place = below_root(znode.path, roots)
        if place is not None:
            yield ClusterZnode(places[place.chroot], place.path, znode)


def cluster_batches(
    tree: TreeAt, input_path: str, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Return view `clusters`."""
    rows = ({**place._asdict(), "zxid": tree.zxid} for place in cluster_places(tree).values())
    return row_batches("clusters", rows, input_path, columns)


def directory_batches(
    tree: TreeAt, subtree: bytes, view: str, input_path: str, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Return one of the views in DIRECTORY_VIEWS."""
    return row_batches(view, _rows(tree, subtree, view), input_path, columns)


def _rows(tree: TreeAt, subtree: bytes, view: str) -> Iterator[TableRow]:
    for found in cluster_znodes(tree, cluster_places(tree), subtree):
        znode = found.znode
        for row in kafka_rows(found.path, znode.data, view):
            yield {
                "cluster_id": found.place.cluster_id,
                "chroot": found.place.chroot,
                "path": znode.path,
                "znode_version": znode.version,
                **row.values,
                "ctime_ms": znode.ctime_ms,
                "mtime_ms": znode.mtime_ms,
                "mzxid": znode.mzxid,
                "ephemeral_owner": znode.ephemeral_owner,
            }
