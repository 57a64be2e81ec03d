"""Which replica a controller makes the leader of a partition that has none. Rules: docs/format.md
F793, and F1188 to F1190 for brokers that start."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kafkalog.coordination.metadata.codes import LOST, MIGRATING, UNASSIGNED
from kafkalog.coordination.metadata.image import Row


@dataclass(frozen=True, slots=True)
class StartingBroker:
    """A broker that starts: the ids of the directories that it has online, whether it stopped
    cleanly, whether all of its directories are online, and the partitions that have a directory."""

    node_id: int
    online: Collection[str]
    stopped_cleanly: bool = True
    is_whole: bool = True
    present: Collection[tuple[str, int]] = ()

    def with_new_directory(self, partition: Row) -> Row:
        """Return a partition of which the broker has no directory, once it has made one: where none
        of its log directories is offline it makes it in any of them, and says in which. Rule:
        docs/format.md F1211."""
        places, own = list(partition["directories"]), partition["replicas"].index(self.node_id)
        if not self.is_whole or places[own] in self.online:
            return partition
        places[own] = UNASSIGNED
        return {**partition, "directories": places}

    def can_lead(self, partition: Row) -> bool:
        """Return whether it has the directory that its replica is assigned to. Where the metadata
        names none, it says at its start which it is."""
        if self.node_id not in partition["replicas"]:
            return False
        place = partition["directories"][partition["replicas"].index(self.node_id)]
        return place in (MIGRATING, UNASSIGNED, LOST) or place in self.online


@dataclass(frozen=True, slots=True)
class ElectionRules:
    """What a cluster and a topic set: whether eligible leader replicas are kept, and whether a
    replica that is not in sync may be elected."""

    has_eligible: bool = False
    is_unclean: bool = False


@dataclass(slots=True)
class Standing:
    """Who leads a partition once brokers have started, None without a leader, and who could: the
    replicas in sync, those eligible, and the leader of before that is known last."""

    leader: int | None
    in_sync: list[int]
    eligible: list[int]
    last_known: list[int]

    @classmethod
    def recorded(cls, partition: Row) -> Standing:
        """Return what the metadata says of a partition without a leader."""
        in_sync, eligible = partition["isr"], partition["eligible_leader_replicas"]
        return cls(None, list(in_sync), list(eligible), list(partition["last_known_elr"]))

    @property
    def may_lead(self) -> list[int]:
        """The brokers one of which has to come back."""
        return self.in_sync or self.eligible or [each for each in self.last_known if each >= 0]

    def take_out(self, broker: StartingBroker, recorded: int, *, has_eligible: bool) -> None:
        """Take a broker, which registers, out of the replicas in sync. The last one stays, or
        becomes eligible; not after a stop that was not clean."""
        own = broker.node_id
        if own in self.in_sync:
            left = [each for each in self.in_sync if each != own]
            if left or has_eligible:
                self.in_sync = left
            if not left and has_eligible:
                self.eligible = sorted({*self.eligible, own})
                # Only who loses the leadership now is the last known one (4.1 and later).
                if recorded >= 0 and not self.last_known:
                    self.last_known = [recorded]
        if has_eligible and not broker.stopped_cleanly:
            self.eligible = [each for each in self.eligible if each != own]

    def first(
        self, replicas: Sequence[int], alive: Collection[int], *, is_unclean: bool
    ) -> int | None:
        """Return the first replica alive that is in sync; without any in sync an eligible one, then
        the last leader. An unclean election takes any."""
        entitled = self.in_sync or self.eligible
        is_last = not entitled and len(self.last_known) == 1
        for group in (entitled, self.last_known if is_last else (), replicas if is_unclean else ()):
            for each in replicas:
                if each in alive and each in group:
                    return each
        return None


def elected(partition: Row, running: Collection[int]) -> int | None:
    """Return the broker that an unclean election makes the leader if these brokers run, None if no
    replica does. `partition` is a row of the cluster's image."""
    return Standing.recorded(partition).first(partition["replicas"], running, is_unclean=True)


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


def standing_after_start(
    partition: Row,
    starting: Sequence[StartingBroker],
    running: Collection[int],
    rules: ElectionRules,
) -> Standing:
    """Return who leads a partition once brokers have started beside those that run."""
    recorded = partition["leader"]
    found = Standing.recorded(partition)
    found.leader = recorded if recorded in running else None
    for each in starting:
        found.take_out(each, recorded, has_eligible=rules.has_eligible)
    if found.leader is not None:
        return found
    alive = {*running, *(each.node_id for each in starting if each.can_lead(partition))}
    if not rules.has_eligible:
        found.last_known = []
    found.leader = found.first(partition["replicas"], alive, is_unclean=rules.is_unclean)
    return found
