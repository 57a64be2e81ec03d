"""Whether cluster ids found in different places agree. Rule: docs/zookeeper.md F469."""

from __future__ import annotations


def is_own(cluster_id: str | None, log_dir_id: str | None) -> bool:
    """Return whether a log directory can be of a cluster.

    One that names no cluster can, as those of clusters before 0.10.1 do. One that names a cluster
    is not of a cluster without id: the broker that wrote the name created /cluster/id first.
    """
    return log_dir_id is None or log_dir_id == cluster_id
