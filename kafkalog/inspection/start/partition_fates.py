"""Which directories of a node a broker loads for which partition, and what becomes of each.

Rules: docs/format.md F963 and F967 to F970.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from kafkalog.inspection.start.assigned_replicas import WITHOUT_ID, Assignments, ReplicaFate
from kafkalog.inspection.start.meta_properties import assigned_id
from kafkalog.inspection.start.node_directories import NodeDirectory, NodeFiles
from kafkalog.inspection.start.reasons import Reason, move_away
from kafkalog.storage.names import PartitionName

_FUTURE = "future"
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Replica:
    """A directory that a broker loads for a partition: its topic's id, None without one, and why
    it is set aside, None where it is not."""

    directory: NodeDirectory
    path: str
    name: PartitionName
    topic_id: str | None
    stray_reason: str | None

    @property
    def key(self) -> tuple[str, int]:
        return self.name.topic, self.name.partition

    @property
    def is_future(self) -> bool:
        return self.name.mark == _FUTURE


@dataclass(frozen=True, slots=True)
class AbsentPartition:
    """A partition that the metadata has in a log directory, and that has no directory there: it
    begins empty, unless one marked `-future` takes the place."""

    topic: str
    partition: int
    log_dir: str
    fate: ReplicaFate
    future: str | None


@dataclass(frozen=True, slots=True)
class LoadedReplicas:
    """The directories that a broker loads, and the cluster's metadata as it has it; None where that
    is not known."""

    node: NodeFiles
    assignments: Assignments | None
    replicas: Sequence[Replica]

    @classmethod
    def of(cls, node: NodeFiles, assignments: Assignments | None) -> LoadedReplicas:
        """Return those of a node: the log directories that can be used, and in them what is not
        marked for deletion or set aside before."""
        found = []
        for each in node.directories:
            for entry, name in each.partitions() if each.meta_error is None else ():
                file = each.topic_ids[entry.path]
                if name.mark not in (None, _FUTURE) or file.refusal is not None:
                    continue
                reason = None
                if node.is_of_kraft and assignments is not None:
                    reason = assignments.stray_reason(file.topic_id, name)
                elif node.is_of_kraft and file.is_missing:
                    reason = WITHOUT_ID
                found.append(Replica(each, entry.path, name, file.topic_id, reason))
        return cls(node, assignments, found)

    def doubles(self, rows: Sequence[Row]) -> Iterator[Reason]:
        """Yield the partitions that are in two directories, or that two directories are to become.
        The replica to move away is the one that ends earlier; of the same end the one that is not
        assigned. `rows` are those of view `recovery_plan`."""
        places: defaultdict[PartitionName, list[Replica]] = defaultdict(list)
        for each in self.replicas:
            if each.stray_reason is None:
                places[each.name].append(each)
        ends = {row["directory"]: row["log_end_offset"] or 0 for row in rows}
        for name, found in places.items():
            place = self._place(name)
            found.sort(key=lambda it: (ends.get(it.path, 0), it.directory.directory_id == place))
            *others, kept = found
            for other in others:
                yield _double(other, kept.path, ends)
        yield from self._takeovers_in_place()

    def _place(self, name: PartitionName) -> str | None:
        if self.assignments is None:
            return None
        return self.assignments.place(name.topic, name.partition)

    def _takeovers_in_place(self) -> Iterator[Reason]:
        """Yield the copies that are to take the place of a directory beside them: a broker renames
        them before it renames the other one, and ends."""
        in_use = {each.path for each in self.replicas if not each.is_future}
        for each in self._takeovers().values():
            other = os.path.join(each.directory.path, f"{each.name.topic}-{each.name.partition}")
            if other in in_use:
                detail = f"a broker ends when it renames it to {other}, which is there"
                line = move_away(each.path, each.directory.path)
                yield Reason(each.path, detail, line, each.directory.path)

    def _takeovers(self) -> dict[tuple[str, int], Replica]:
        """Return the copies that are in the directory that the metadata assigns the partition to: a
        broker takes them at its start, however long they are."""
        if self.assignments is None or not self.node.is_of_kraft:
            return {}
        return {
            each.key: each
            for each in self._futures()
            if each.directory.directory_id is not None
            and self.assignments.assigned_to(each.topic_id, each.name.partition)
            == each.directory.directory_id
        }

    def _futures(self) -> list[Replica]:
        return [each for each in self.replicas if each.is_future and each.stray_reason is None]

    def fates(self, offline: Collection[str]) -> dict[str, ReplicaFate]:
        """Return what becomes of each directory by its path. `offline` are the log directories that
        go offline."""
        fates = self._offline_fates(offline)
        # Of many partitions nearly all have the same fate.
        shared: dict[ReplicaFate, ReplicaFate] = {}
        futures = {each.key: each for each in self._futures() if each.directory.path not in offline}
        takeovers = self._takeovers()
        in_use = {
            each.key: each.path
            for each in self.replicas
            if each.stray_reason is None and each.directory.path not in offline
        }
        for each in self.replicas:
            if each.directory.path in offline:
                continue
            if each.stray_reason is not None:
                fates[each.path] = self._stray_fate(each, in_use.get(each.key))
            elif not each.is_future:
                coming, fate = futures.get(each.key), ReplicaFate()
                if self.assignments is not None:
                    fate = self.assignments.fate(each.topic_id, each.name)
                if coming is not None:
                    is_now = each.key in takeovers
                    fate = _replaced(coming.path, fate.has_leader, is_now=is_now)
                fates[each.path] = shared.setdefault(fate, fate)
        return fates

    def _offline_fates(self, offline: Collection[str]) -> dict[str, ReplicaFate]:
        if self.assignments is None:
            return {}
        return {
            entry.path: self.assignments.offline_fate(name)
            for each in self.node.directories
            if each.path in offline
            for entry, name in each.partitions()
            if name.mark is None
        }

    def unused_fates(self) -> dict[str, ReplicaFate]:
        """Return what becomes of partitions in directories that `log.dirs` does not name: one that
        no other directory has begins empty in one of those that it names, and has a leader."""
        assignments = self.assignments
        if assignments is None:
            return {}
        here = {each.key for each in self.replicas if each.stray_reason is None}
        fates = {}
        for each in self.node.unused:
            for entry, name in each.partitions():
                is_own = assignments.place(name.topic, name.partition) is not None
                if name.mark is None and is_own and (name.topic, name.partition) not in here:
                    reason = f"log.dirs does not name {each.path}, and it begins empty elsewhere"
                    fates[entry.path] = ReplicaFate(False, reason, True, begins_empty=True)
        return fates

    def _stray_fate(self, replica: Replica, beside: str | None) -> ReplicaFate:
        line = None
        if beside is not None:
            line = f"{move_away(replica.path, replica.directory.path)}  # {beside} stays in use"
        found = ReplicaFate(True, replica.stray_reason, what_to_do=line, beside=beside)
        if self.assignments is None:
            return found
        fate = self.assignments.fate(replica.topic_id, replica.name)
        is_replaced = fate.begins_empty and beside is None and not replica.is_future
        return replace(found, has_leader=fate.has_leader, begins_empty=is_replaced)

    def absent(self, recorded: Iterable[AbsentPartition] = ()) -> Iterator[AbsentPartition]:
        """Yield the partitions that the metadata has in a log directory, without a directory; where
        it is not known, those that checkpoints have `recorded`."""
        if self.assignments is None:
            yield from recorded
            return
        # Where topic ids cannot be read there are directories, too.
        present = {
            (name.topic, name.partition)
            for each in self.node.directories
            for _, name in each.partitions()
            if name.mark is None
        }
        if self.assignments.is_of_zookeeper:
            places = {(each.topic, each.partition): each.log_dir for each in recorded}
            first = self.node.directories[0].path
            for topic, number, fate in self.assignments.absent(present):
                place = places.get((topic, number), first)
                yield AbsentPartition(topic, number, place, fate, None)
            return
        image = self.assignments.image
        by_id = {
            assigned_id(self.node, each, image): each.path
            for each in self.node.directories
            if each.is_there
        }
        futures = {each.key: each for each in self._futures()}
        for topic, number, fate in self.assignments.absent(present):
            path = by_id.get(self.assignments.place(topic, number))
            if path is not None:
                future = futures.get((topic, number))
                is_elsewhere = future is not None and future.directory.path != path
                if is_elsewhere and future is not None:
                    yield AbsentPartition(topic, number, path, _emptied(future, fate), None)
                else:
                    own = None if future is None else future.path
                    yield AbsentPartition(topic, number, path, fate, own)


def unrecorded(
    node: NodeFiles, absent: Iterable[tuple[str, Iterable[tuple[str, int]]]]
) -> Iterator[AbsentPartition]:
    """Yield the partitions that begin empty on a broker with ZooKeeper: those that checkpoints of a
    log directory name, by its path (`absent`), and that no directory is of. Rule: docs/format.md
    F1399."""
    if node.is_of_kraft or node.is_unknown:
        return
    here = {
        (name.topic, name.partition) for each in node.directories for _, name in each.partitions()
    }
    paths = {each.path for each in node.directories}
    for path, partitions in absent:
        for topic, number in partitions:
            if path in paths and (topic, number) not in here:
                yield AbsentPartition(topic, number, path, ReplicaFate(begins_empty=True), None)


def _replaced(path: str, has_leader: bool | None, *, is_now: bool) -> ReplicaFate:
    reason = f"the copy in {path} takes its place"
    if is_now:
        reason += " at once, whatever it has: the metadata assigns the partition to its directory"
    return ReplicaFate(
        *(True, reason, has_leader),
        replaced_by=path if is_now else None,
        is_moved=not is_now and has_leader is not False,
    )


def _emptied(future: Replica, fate: ReplicaFate) -> ReplicaFate:
    """Return what becomes of a partition that has nothing but a copy in another directory than the
    assigned one: a broker makes it empty, and lets the copy follow that, and replace it."""
    reason = (
        f"it begins empty, the copy in {future.path} is emptied as well, and takes its place: all "
        "records are LOST"
    )
    path = os.path.join(future.directory.path, f"{future.name.topic}-{future.name.partition}")
    line = f"mv {quote(future.path)} {quote(path)}"
    return replace(fate, is_set_aside=True, reason=reason, what_to_do=line)


def _double(other: Replica, kept: str, ends: Mapping[str, int]) -> Reason:
    detail = f"{kept} is of the same partition, and a broker ends at the second one"
    if not other.is_future and other.path in ends and kept in ends:
        detail += (
            f": this one ends at offset {ends[other.path]:,}, the other at "
            f"{ends[kept]:,}; kafkalog replicas {os.path.dirname(kept)} "
            f"{other.directory.path} shows whether their records differ"
        )
    line = move_away(other.path, other.directory.path)
    return Reason(other.path, detail, line, other.directory.path)
