"""Where a cluster gets its id, and whether ids found in different places agree.

Rules: docs/zookeeper.md F443 and F469.
"""

from __future__ import annotations


def started_cluster_id(found: str | None, generated: str) -> str:
    """The id that a broker goes on with when it starts: that of /cluster/id, or if there is none
    the one that it creates it with."""
    return generated if found is None else found


def agrees(one: str | None, other: str | None) -> bool:
    """Whether two ids can be of one cluster: None, which clusters before 0.10.1 have, agrees with
    all."""
    return one is None or other is None or one == other
