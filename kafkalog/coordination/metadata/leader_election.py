"""Which replica a controller makes the leader of a partition that has none. Rule: docs/format.md
F793."""

from __future__ import annotations

from collections.abc import Collection

from kafkalog.coordination.metadata.image import Row


def elected(partition: Row, running: Collection[int]) -> int | None:
    """Return the broker that an unclean election makes the leader if these brokers run, None if no
    replica does. `partition` is a row of the cluster's image."""
    alive: list[int] = [broker for broker in partition["replicas"] if broker in running]
    in_sync, eligible = partition["isr"], partition["eligible_leader_replicas"]
    clean = [broker for broker in alive if broker in (in_sync or eligible)]
    if clean:
        return clean[0]
    last_known: list[int] = partition["last_known_elr"]
    if not in_sync and not eligible and len(last_known) == 1 and last_known[0] in alive:
        return last_known[0]
    return alive[0] if alive else None


def stopped_for(partition: Row, choice: int, running: Collection[int]) -> list[int] | None:
    """Return which of the running brokers have to be stopped until the election so that the choice
    is elected; None if it never is."""
    left, stopped = set(running), []
    while (leader := elected(partition, left)) != choice:
        if leader is None:
            return None
        left.remove(leader)
        stopped.append(leader)
    return sorted(stopped)
