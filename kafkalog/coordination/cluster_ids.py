"""Where a cluster gets its id, and whether ids found in different places agree.

Rules: docs/zookeeper.md F443 and F469.
"""

from __future__ import annotations

from collections.abc import Iterable


def started_cluster_id(found: str | None, generated: str) -> str:
    """The id that a broker goes on with when it starts: that of /cluster/id, or if there is none
    the one that it creates it with."""
    return generated if found is None else found


def differing_cluster_ids(znode: str | None, log_dirs: Iterable[str | None]) -> list[str]:
    """The ids, sorted, if there are several among that of /cluster/id and those of log directories;
    None, which clusters before 0.10.1 have, agrees with all."""
    found = {cluster_id for cluster_id in (znode, *log_dirs) if cluster_id is not None}
    return sorted(found) if len(found) > 1 else []
