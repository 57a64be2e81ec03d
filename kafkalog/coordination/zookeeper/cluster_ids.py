"""Whether cluster ids found in different places agree. Rule: docs/zookeeper.md F469."""

from __future__ import annotations


def is_own(cluster_id: str | None, log_dir_id: str | None) -> bool:
    """Whether a log directory can be of a cluster. One that names none can, as those of clusters
    before 0.10.1 do; one that names a cluster is not of one that has no id, as whoever wrote the
    name has made sure that /cluster/id is there."""
    return log_dir_id is None or log_dir_id == cluster_id
