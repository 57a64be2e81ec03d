"""How partitions' leaders and in-sync replicas changed in a cluster with ZooKeeper, and why.

A controller reads there that a broker has left or come, and then writes the states of partitions. A
broker that shuts down asks the controller to move its leaders first, and ends its session after
that. Rule: docs/format.md F1244.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafkalog.coordination.metadata.image import Change, Key, Row
from kafkalog.coordination.zookeeper.broker_znodes import read_partition_state, read_topic
from kafkalog.coordination.zookeeper.ownership_history import (
    DELETE,
    NOT_LOGGED,
    SESSION_END,
    ZnodeChange,
)
from kafkalog.coordination.zookeeper.znode_paths import PathTemplate
from kafkalog.errors import CorruptDataError
from kafkalog.inspection.metadata.change_causes import Cause, cause_by_itself, moved_brokers
from kafkalog.inspection.zookeeper.cluster_trees import newest_tree
from kafkalog.inspection.zookeeper.ownership_rows import znode_changes
from kafkalog.words import time_text
from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.log_reading import OnFinding

_BROKER = PathTemplate("/brokers/ids/[broker_id]")
_TOPIC = PathTemplate("/brokers/topics/[topic]")
_STATE = PathTemplate("/brokers/topics/[topic]/partitions/[partition]/state")
_ENDS = (DELETE, SESSION_END, NOT_LOGGED)
# So soon after its leaders were moved the session of a broker ends that shuts down, and the
# partitions of a topic that is deleted are removed so soon after they have lost their leaders.
_SOON_MS = 60_000


class PartitionStep(NamedTuple):
    """A change of a partition by a transaction, of a znode's data, and its cause."""

    zxid: int
    time_ms: int
    znode: str
    change: Change
    cause: Cause | None


class PartitionChanges(NamedTuple):
    """The steps of a period; when the first and the last change of a partition was that the logs
    have, None without one; and whether the logs begin after changes that a snapshot shows."""

    steps: list[PartitionStep]
    span: tuple[int, int] | None
    is_cut: bool


class _BrokerStep(NamedTuple):
    time_ms: int
    zxid: int
    is_there: bool


@dataclass
class _History:
    """What has happened so far: the replicas of topics, the states of partitions, and of each
    broker when it came and went."""

    replicas: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    rows: dict[tuple[str, int], Row] = field(default_factory=dict)
    brokers: dict[int, list[_BrokerStep]] = field(default_factory=lambda: defaultdict(list))
    steps: list[PartitionStep] = field(default_factory=list)
    of_partitions: dict[Key, list[PartitionStep]] = field(default_factory=lambda: defaultdict(list))

    def take(self, path: str, change: ZnodeChange) -> None:
        """Take a change of a znode below the cluster's root. Raises CorruptDataError."""
        if (names := _BROKER.names(path)) is not None and names["broker_id"].isdigit():
            self._take_broker(int(names["broker_id"]), change)
        elif (names := _STATE.names(path)) is not None and names["partition"].isdigit():
            self._take_state(path, names["topic"], int(names["partition"]), change)
        elif (names := _TOPIC.names(path)) is not None:
            self._take_topic(path, names["topic"], change)

    def _take_broker(self, broker: int, change: ZnodeChange) -> None:
        if change.time_ms is not None and change.zxid is not None:
            is_there = change.change not in _ENDS
            self.brokers[broker].append(_BrokerStep(change.time_ms, change.zxid, is_there))

    def _take_topic(self, path: str, topic: str, change: ZnodeChange) -> None:
        if change.change in _ENDS:
            self.replicas.pop(topic, None)
            return
        partitions = read_topic(change.data).partitions
        self.replicas[topic] = {number: list(found) for number, found in partitions.items()}
        for number, replicas in self.replicas[topic].items():
            row = self.rows.get((topic, number))
            if row is not None and row["replicas"] != replicas:
                self._put(path, topic, number, {**row, "replicas": replicas}, change)

    def _take_state(self, path: str, topic: str, partition: int, change: ZnodeChange) -> None:
        if change.change in _ENDS:
            self._put(path, topic, partition, None, change)
            return
        state = read_partition_state(change.data)
        row = {
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
            "replicas": self.replicas.get(topic, {}).get(partition, []),
        }
        self._put(path, topic, partition, row, change)

    def _put(
        self, path: str, topic: str, partition: int, row: Row | None, change: ZnodeChange
    ) -> None:
        old = self.rows.pop((topic, partition), None)
        if row is not None:
            self.rows[topic, partition] = row
        if change.zxid is not None and change.time_ms is not None and old != row:
            found = Change("partition", (topic, partition), old, row, topic)
            step = PartitionStep(change.zxid, change.time_ms, path, found, None)
            self.steps.append(step)
            self.of_partitions[found.key].append(step)

    def cause(self, step: PartitionStep) -> Cause | None:
        """Return why a partition changed, once all is known."""
        old, new = step.change.old, step.change.new
        if old is None or new is None:
            return None
        if self._is_deleted_after(step):
            return Cause("its topic was deleted")
        left, came = moved_brokers(old, new)
        for broker in sorted(left):
            before, after = self._around(broker, step)
            if before is not None and not before.is_there:
                return Cause(f"the session of broker {broker} had ended", before.zxid)
            # A broker that shuts down leaves the in-sync replicas, one that only loses an
            # election stays there.
            has_left = broker in old["isr"] and broker not in new["isr"]
            is_soon = after is not None and _is_soon(step.time_ms, after.time_ms)
            if after is not None and not after.is_there and has_left and is_soon:
                when = time_text(after.time_ms)
                return Cause(f"broker {broker} shut down: its session ended at {when}", after.zxid)
        for broker in sorted(came):
            before, _ = self._around(broker, step)
            if before is not None and before.is_there and old["leader"] < 0:
                return Cause(f"broker {broker} had started", before.zxid)
        return cause_by_itself(old, new)

    def _is_deleted_after(self, step: PartitionStep) -> bool:
        """Return whether the next change of a partition is its end, soon after."""
        steps = self.of_partitions[step.change.key]
        number = bisect_right([each.zxid for each in steps], step.zxid)
        following = steps[number] if number < len(steps) else None
        is_end = following is not None and following.change.new is None
        return following is not None and is_end and _is_soon(step.time_ms, following.time_ms)

    def _around(
        self, broker: int, step: PartitionStep
    ) -> tuple[_BrokerStep | None, _BrokerStep | None]:
        """Return what happened to a broker last before a change, and next after it."""
        steps: Sequence[_BrokerStep] = self.brokers.get(broker, ())
        number = bisect_right([each.zxid for each in steps], step.zxid)
        before = steps[number - 1] if number else None
        return before, steps[number] if number < len(steps) else None


def _is_soon(time_ms: int, later_ms: int) -> bool:
    return later_ms - time_ms <= _SOON_MS


def partition_changes(
    paths: Sequence[str],
    chroot: str | None,
    first_ms: int,
    last_ms: int,
    report: OnFinding,
    on_unreadable: Callable[[str, str], None],
) -> PartitionChanges:
    """Return the changes of partitions after a time and up to another, by the member of the
    ensemble that has come furthest, as far back as its logs go. Damage is reported, and
    `on_unreadable` is called with the path of a znode that cannot be read and why. Raises what
    `newest_tree` does."""
    newest = newest_tree(paths, (), chroot)
    (data_dir,) = [each for each in find_data_dirs(paths) if each.path == newest.path]
    root = newest.place.chroot
    history, is_cut = _History(), False
    for change in znode_changes(data_dir, newest.tree, report):
        if change.path.startswith(f"{root}/"):
            is_cut = is_cut or (change.time_ms is None and not history.steps)
            try:
                history.take(change.path.removeprefix(root), change)
            except CorruptDataError as error:
                on_unreadable(change.path, error.detail)
    steps = [
        step._replace(cause=history.cause(step))
        for step in history.steps
        if first_ms < step.time_ms <= last_ms
    ]
    times = [step.time_ms for step in history.steps]
    return PartitionChanges(steps, (min(times), max(times)) if times else None, is_cut)


def step_row(step: PartitionStep) -> dict[str, Any]:
    """Return the columns of a step beside those of its change."""
    cause = Cause("") if step.cause is None else step.cause
    return {
        "zxid": step.zxid,
        "timestamp_ms": step.time_ms,
        "znode": step.znode,
        "cause": cause.words or None,
        "cause_zxid": cause.offset,
    }
