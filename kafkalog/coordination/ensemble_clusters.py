"""Which cluster of a ZooKeeper ensemble the log directories belong to. Rule: docs/migration.md
F485.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kafkalog.errors import LogDirError, OptionError


class EnsembleCluster(NamedTuple):
    """A cluster in a data directory of ZooKeeper: the directory, where the cluster begins in the
    tree, its id if it has one, and the newest change that the directory has of it."""

    input_path: str
    chroot: str
    cluster_id: str | None
    last_zxid: int


def cluster_of_log_dirs(
    found: Sequence[EnsembleCluster],
    log_dir_ids: Collection[str | None],
    *,
    chroot: str | None = None,
    allow_unknown: bool = False,
) -> EnsembleCluster:
    """The cluster with the id that the log directories name, as the member of the ensemble has it
    that has come furthest.

    Raises LogDirError for log directories of several clusters, and OptionError where no cluster or
    several can be meant, and, but for `allow_unknown`, where an id is not known on either side.
    """
    known = {cluster_id for cluster_id in log_dir_ids if cluster_id is not None}
    if len(known) > 1:
        raise LogDirError(f"log directories of several clusters: {', '.join(sorted(known))}")
    candidates = [each for each in found if chroot is None or each.chroot == chroot]
    if not candidates:
        places = sorted({each.chroot or "/" for each in found})
        raise OptionError("--chroot", chroot, f"clusters there: {', '.join(places)}")
    wanted = next(iter(known), None)
    same = [each for each in candidates if wanted is not None and each.cluster_id == wanted]
    if same:
        return _newest(same)
    unknown = [each for each in candidates if wanted is None or each.cluster_id is None]
    if not unknown:
        ids = ", ".join(sorted({each.cluster_id or "" for each in candidates}))
        raise OptionError("--zookeeper", f"cluster {ids}", f"cluster {wanted}, of the log dirs")
    if not allow_unknown:
        raise OptionError(
            "--zookeeper",
            "a cluster that cannot be told to be that of the log directories, for one has no id",
            "with --allow-unknown-cluster, if you know that it is",
        )
    return _newest(unknown)


def _newest(candidates: Sequence[EnsembleCluster]) -> EnsembleCluster:
    places = {each.chroot for each in candidates}
    if len(places) > 1:
        told = ", ".join(sorted(place or "/" for place in places))
        raise OptionError("--chroot", None, f"one of the clusters: {told}")
    return max(candidates, key=lambda each: each.last_zxid)
