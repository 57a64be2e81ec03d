"""Every change of every path that the logs hold. Rules: docs/zookeeper.md F414, F420 and F421."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafkalog.errors import CorruptDataError
from kafkalog.storage.files.files import InputFile
from kafkalog.zookeeper.data_dir import DataDir, ZookeeperFile
from kafkalog.zookeeper.faults import finding_of
from kafkalog.zookeeper.log_reading import Logged, OnFinding, all_entries, follows
from kafkalog.zookeeper.snapshot import Snapshot
from kafkalog.zookeeper.transactions import (
    Check,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Failed,
    Multi,
    Operation,
    SetAcl,
    SetData,
)
from kafkalog.zookeeper.tree import STAT, effective_operations
from kafkalog.zookeeper.znode import OwnerKind, owner_kind


class Change(NamedTuple):
    """What one transaction did to one path, whose root is empty; `path` is null for a session that
    begins, or ends without ephemeral nodes. `version` is the new version of the data, or of the
    access control list. `operation` counts from 0 within a multi."""

    logged: Logged
    operation: int | None
    change: str
    path: bytes | None
    data: bytes | None = None
    version: int | None = None
    ephemeral_owner: int | None = None


class TakenOver(NamedTuple):
    """Transactions are missing before the change that comes next; a sound snapshot has what they
    left, or some of them did."""

    snapshot: ZookeeperFile


def changes(data_dir: DataDir, until: int | None, report: OnFinding) -> Iterator[Change]:
    """Return all changes in the logs up to the transaction `until`, in their order."""
    return (step for step in znode_history(data_dir, until, report) if isinstance(step, Change))


def znode_history(
    data_dir: DataDir, until: int | None, report: OnFinding
) -> Iterator[Change | TakenOver]:
    """Yield all changes, and between them the snapshots that show what the logs lack."""
    owners = _EphemeralOwners(data_dir.snapshots, report)
    for logged in all_entries(data_dir, report):
        transaction = logged.transaction
        if until is not None and transaction.zxid > until:
            return
        taken_over = owners.come_to(transaction.zxid)
        if taken_over is not None:
            yield TakenOver(taken_over)
        is_multi = isinstance(transaction.operation, Multi)
        for number, operation in enumerate(effective_operations(transaction)):
            yield from _changes(logged, number if is_multi else None, operation, owners)


def _changes(
    logged: Logged, number: int | None, operation: Operation, owners: _EphemeralOwners
) -> Iterator[Change]:
    match operation:
        case Create(path, data, _, owner, _, _):
            owners.add(owner, path)
            yield Change(logged, number, "create", path, data, 0, owner)
        case Delete(path):
            owners.remove(path)
            yield Change(logged, number, "delete", path)
        case SetData(path, data, version):
            yield Change(logged, number, "set_data", path, data, version)
        case SetAcl(path, _, version):
            yield Change(logged, number, "set_acl", path, None, version)
        case CreateSession():
            yield Change(logged, number, "create_session", None)
        case CloseSession(paths):
            session_id = logged.transaction.session_id
            dropped = sorted(owners.close(session_id).union(paths or ()))
            for ended in dropped:
                yield Change(logged, number, "close_session", ended, ephemeral_owner=session_id)
            if not dropped:
                yield Change(logged, number, "close_session", None)
        case Check() | Failed():
            pass


class _EphemeralOwners:
    """The owners of ephemeral nodes over time. If the logs do not show them, because they begin
    later or lack transactions, the next snapshot does."""

    def __init__(self, snapshots: Sequence[ZookeeperFile], report: OnFinding) -> None:
        self._paths: dict[int, set[bytes]] = {}
        self._owners: dict[bytes, int] = {}
        self._snapshots = snapshots
        self._report = report
        self._last: int | None = None
        self._is_complete = True

    def come_to(self, zxid: int) -> ZookeeperFile | None:
        """Before a transaction: if earlier ones are missing, start again with the newest snapshot
        before it, and return that snapshot."""
        last = self._last or 0
        is_gap = zxid > 1 if self._last is None else not follows(zxid, last)
        if is_gap:
            self._paths.clear()
            self._owners.clear()
            self._is_complete = False
        loaded = None
        if not self._is_complete:
            passed = [file for file in self._snapshots if last <= file.zxid < zxid]
            loaded = next(filter(self._load, reversed(passed)), None)
            if loaded is not None:
                self._is_complete = not is_gap or follows(zxid, loaded.zxid)
        self._last = zxid
        return loaded

    def _load(self, snapshot: ZookeeperFile) -> bool:
        found: list[tuple[int, bytes]] = []
        try:
            with InputFile(snapshot.path) as file:
                for node in Snapshot(file).nodes():
                    owner = STAT.unpack(node.stat)[7]
                    if owner_kind(owner) is OwnerKind.EPHEMERAL:
                        found.append((owner, node.path))
        except CorruptDataError as error:
            self._report(finding_of(error, snapshot.path))
            return False
        for owner, path in found:
            self.add(owner, path)
        return True

    def add(self, owner: int, path: bytes) -> None:
        """A node with an owner of any kind."""
        self.remove(path)
        if owner_kind(owner) is OwnerKind.EPHEMERAL:
            self._paths.setdefault(owner, set()).add(path)
            self._owners[path] = owner

    def remove(self, path: bytes) -> None:
        """A node was deleted."""
        owner = self._owners.pop(path, None)
        if owner is not None:
            self._paths[owner].discard(path)

    def close(self, session_id: int) -> set[bytes]:
        """End a session and return the nodes that end with it."""
        paths = self._paths.pop(session_id, set())
        for path in paths:
            del self._owners[path]
        return paths
