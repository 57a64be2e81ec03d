"""The part of a tree that transactions change.

Rules: docs/zookeeper.md F401, F410 and F413 to F415.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from kafkalog.zookeeper.digest import DIGEST_MASK, node_digest
from kafkalog.zookeeper.transactions import (
    Check,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Failed,
    Multi,
    OpCode,
    Operation,
    SetAcl,
    SetData,
    Transaction,
)
from kafkalog.zookeeper.znode import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, Acl, OwnerKind, owner_kind

# czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner, pzxid.
STAT = struct.Struct(">qqqqiiiqq")
_LARGEST_INT = (1 << 31) - 1


@dataclass(slots=True)
class TreeNode:
    """A node while transactions change it; `cversion` is the stored one (F401)."""

    data: bytes | None
    acl: tuple[Acl, ...]
    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    pzxid: int

    @classmethod
    def of_stat(cls, data: bytes | None, acl: tuple[Acl, ...], stat: bytes) -> TreeNode:
        """Return a node as stored in a snapshot."""
        return cls(data, acl, *STAT.unpack(stat))

    def stat(self) -> tuple[int, ...]:
        """Return the stat in the order of a snapshot."""
        return (
            self.czxid,
            self.mzxid,
            self.ctime_ms,
            self.mtime_ms,
            self.version,
            self.cversion,
            self.aversion,
            self.ephemeral_owner,
            self.pzxid,
        )

    def digest(self, path: bytes) -> int:
        """Return the node's part in the digest of the tree."""
        return node_digest(path, self.data, STAT.pack(*self.stat()))


def parent_of(path: bytes) -> bytes:
    """Return the path above; the root's is empty."""
    return path[: max(path.rfind(b"/"), 0)]


def empty_tree(*, with_config: bool) -> dict[bytes, TreeNode]:
    """Return the tree of a server without files: since ZooKeeper 3.5 with `/zookeeper/config`,
    which differs from the others only by its own list."""
    paths = (b"", b"/zookeeper", b"/zookeeper/quota")
    nodes = {path: TreeNode(b"", OPEN_ACL_UNSAFE, *STAT.unpack(bytes(STAT.size))) for path in paths}
    if with_config:
        nodes[b"/zookeeper/config"] = TreeNode(b"", READ_ACL_UNSAFE, 0, 0, 0, 0, 0, 0, -1, 0, 0)
    return nodes


@dataclass(slots=True)
class ChangedTree:
    """The nodes that transactions touch, over a snapshot that has the others.

    `nodes` has the value of each path that any transaction names and of its parent, None for one
    that is not there; `ephemerals` the nodes of the sessions that end. `digest` is that of the
    whole tree.
    """

    nodes: dict[bytes, TreeNode | None]
    sessions: dict[int, int]
    ephemerals: dict[int, set[bytes]]
    digest: int

    def apply(self, transaction: Transaction) -> None:
        """Carry out one transaction. Changes that are already there stay: a snapshot can hold
        changes that are later than its name."""
        for operation in effective_operations(transaction):
            self._apply(operation, transaction)

    def _apply(self, operation: Operation, transaction: Transaction) -> None:
        match operation:
            case Create():
                self._create(operation, transaction)
            case Delete():
                self._delete(operation.path, transaction.zxid)
            case SetData():
                self._set_data(operation, transaction)
            case SetAcl():
                self._set_acl(operation)
            case CreateSession():
                self.sessions[transaction.session_id] = operation.timeout_ms
            case CloseSession():
                self._close_session(operation, transaction)
            case Check() | Failed():
                pass

    def _node(self, path: bytes) -> TreeNode | None:
        return self.nodes.get(path)

    def _add_digest(self, path: bytes, node: TreeNode, times: int = 1) -> None:
        self.digest = self.digest + times * node.digest(path) & DIGEST_MASK

    def _create(self, create: Create, transaction: Transaction) -> None:
        path, zxid = create.path, transaction.zxid
        parent, existing = self._node(parent_of(path)), self._node(path)
        if parent is None:
            return
        if existing is not None:
            existing.acl = create.acl or OPEN_ACL_UNSAFE
            if create.op_code is OpCode.CREATE:
                self._add_child(parent_of(path), parent, create.parent_cversion, zxid)
            return
        self._add_child(parent_of(path), parent, create.parent_cversion, zxid)
        time_ms, owner = transaction.time_ms, create.ephemeral_owner
        acl = create.acl or OPEN_ACL_UNSAFE
        node = TreeNode(create.data, acl, zxid, zxid, time_ms, time_ms, 0, 0, 0, owner, zxid)
        self.nodes[path] = node
        self._add_digest(path, node)
        if owner_kind(owner) is OwnerKind.EPHEMERAL:
            self.ephemerals.setdefault(owner, set()).add(path)

    def _add_child(self, path: bytes, parent: TreeNode, cversion: int, zxid: int) -> None:
        now = parent.cversion + 1 if cversion == -1 else cversion
        # Where a server counts beyond an int, it gets a smaller one.
        if parent.cversion < now <= _LARGEST_INT:
            self._add_digest(path, parent, -1)
            parent.cversion, parent.pzxid = now, zxid
            self._add_digest(path, parent)

    def _delete(self, path: bytes, zxid: int) -> None:
        parent, node = self._node(parent_of(path)), self._node(path)
        if parent is None or path == b"":
            return
        if zxid > parent.pzxid:
            self._add_digest(parent_of(path), parent, -1)
            parent.pzxid = zxid
            self._add_digest(parent_of(path), parent)
        if node is not None:
            self._add_digest(path, node, -1)
            self.nodes[path] = None
            self.ephemerals.get(node.ephemeral_owner, set()).discard(path)

    def _set_data(self, change: SetData, transaction: Transaction) -> None:
        node = self._node(change.path)
        if node is not None:
            self._add_digest(change.path, node, -1)
            node.data, node.version = change.data, change.version
            node.mzxid, node.mtime_ms = transaction.zxid, transaction.time_ms
            self._add_digest(change.path, node)

    def _set_acl(self, change: SetAcl) -> None:
        node = self._node(change.path)
        if node is not None:
            self._add_digest(change.path, node, -1)
            node.acl, node.aversion = change.acl or OPEN_ACL_UNSAFE, change.version
            self._add_digest(change.path, node)

    def _close_session(self, close: CloseSession, transaction: Transaction) -> None:
        session_id = transaction.session_id
        self.sessions.pop(session_id, None)
        own = self.ephemerals.pop(session_id, set())
        listed = close.paths or ()
        for path in (*listed, *sorted(own.difference(listed))):
            self._delete(path, transaction.zxid)


def effective_operations(transaction: Transaction) -> Iterable[Operation]:
    """Return what a transaction does: one operation, or those of a multi if none of them failed."""
    operation = transaction.operation
    if not isinstance(operation, Multi):
        return (operation,)
    if any(isinstance(part, Failed) for part in operation.operations):
        return ()
    return operation.operations


@dataclass(slots=True)
class Touched:
    """The paths whose nodes transactions need, and the sessions that end in them."""

    paths: set[bytes] = field(default_factory=set)
    closed: set[int] = field(default_factory=set)
    last_zxid: int = 0

    def add(self, transaction: Transaction) -> None:
        """Note what one transaction needs."""
        self.last_zxid = max(self.last_zxid, transaction.zxid)
        for operation in effective_operations(transaction):
            match operation:
                case Create() | Delete():
                    self.paths.update((operation.path, parent_of(operation.path)))
                case SetData() | SetAcl():
                    self.paths.add(operation.path)
                case CloseSession():
                    self.closed.add(transaction.session_id)
                    for path in operation.paths or ():
                        self.paths.update((path, parent_of(path)))
                case _:
                    pass
