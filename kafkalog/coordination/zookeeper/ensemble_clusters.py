"""Which cluster of a ZooKeeper ensemble is meant, and which of the ensemble's members has come
furthest. Rule: docs/migration.md F485.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from kafkalog.errors import LogDirError, OptionError, RefusedOptionError

# The advice where files have no cluster.
NEWER_FILES = (
    "give a newer snapshot, and also the transaction logs, which a server can have in another "
    "directory, dataLogDir"
)


class EnsembleCluster(NamedTuple):
    """A cluster in a data directory of ZooKeeper: the directory, where the cluster begins in the
    tree, its id if it has one, when it was made, and the last transaction of the whole tree."""

    input_path: str
    chroot: str
    cluster_id: str | None
    made: str
    zxid: int


def members_by_cluster(found: Iterable[EnsembleCluster]) -> list[list[EnsembleCluster]]:
    """Return every cluster as each of the given members has it, the one that has come furthest
    first; of those that have come as far the last by name.

    A cluster is known by its root and its id, one without an id by when it was made; of a cluster
    that got its id later a member may not know it yet.
    """
    members = sorted(found, key=lambda each: (each.zxid, each.input_path), reverse=True)
    ids = {
        (each.chroot, each.made): each.cluster_id for each in members if each.cluster_id is not None
    }
    clusters: dict[tuple[str, str], list[EnsembleCluster]] = {}
    for each in members:
        known_by = each.cluster_id or ids.get((each.chroot, each.made)) or each.made
        clusters.setdefault((each.chroot, known_by), []).append(each)
    return list(clusters.values())


def cluster_of_log_dirs(
    found: Sequence[EnsembleCluster],
    log_dir_ids: Collection[str | None],
    *,
    chroot: str | None = None,
    allow_unknown: bool = False,
) -> EnsembleCluster:
    """Return the cluster with the id that the log directories name, as the member of the ensemble
    has it that has come furthest.

    Raises LogDirError for files of ZooKeeper without a cluster and for log directories of several,
    OptionError where no cluster or several can be meant, and, but for `allow_unknown`, where an id
    is not known on either side.
    """
    if not found:
        raise LogDirError(f"the files of ZooKeeper hold no Kafka cluster: {NEWER_FILES}")
    known = {cluster_id for cluster_id in log_dir_ids if cluster_id is not None}
    if len(known) > 1:
        raise LogDirError(f"log directories of several clusters: {', '.join(sorted(known))}")
    candidates = [each for each in found if chroot is None or each.chroot == chroot]
    if not candidates:
        places = sorted({each.chroot or "/" for each in found})
        raise OptionError("--chroot", chroot, f"clusters there: {', '.join(places)}")
    wanted = next(iter(known), None)
    newest = [members[0] for members in members_by_cluster(candidates)]
    same = [each for each in newest if wanted is not None and each.cluster_id == wanted]
    if same:
        return _only(same)
    unknown = [each for each in newest if wanted is None or each.cluster_id is None]
    if not unknown:
        ids = ", ".join(sorted({each.cluster_id or "" for each in candidates}))
        raise OptionError("--zookeeper", f"cluster {ids}", f"cluster {wanted}, of the log dirs")
    if not allow_unknown:
        raise RefusedOptionError(
            "--zookeeper",
            "its cluster or that of the log directories has no id: if you know that they are one "
            "cluster, add --allow-unknown-cluster",
        )
    return _only(unknown)


def _only(clusters: Sequence[EnsembleCluster]) -> EnsembleCluster:
    """Return the one that there is."""
    places = {each.chroot for each in clusters}
    if len(places) > 1:
        words = ", ".join(sorted(place or "/" for place in places))
        raise OptionError("--chroot", None, f"one of the clusters: {words}")
    if len(clusters) > 1:
        words = "; ".join(sorted(f"{_name(each)} in {each.input_path}" for each in clusters))
        raise OptionError("--zookeeper", words, "data directories of one ensemble")
    return clusters[0]


def _name(cluster: EnsembleCluster) -> str:
    return f"cluster {cluster.cluster_id or 'without an id'}"


def is_own(cluster_id: str | None, log_dir_id: str | None) -> bool:
    """Return whether a log directory can be of a cluster.

    One that names no cluster can, as those of clusters before 0.10.1 do. One that names a cluster
    is not of a cluster without id: the broker that wrote the name created /cluster/id first.
    """
    return log_dir_id is None or log_dir_id == cluster_id
