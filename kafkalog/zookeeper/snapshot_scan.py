"""A first pass over a snapshot: is it sound, and what has it of the nodes that transactions touch.

Rules: docs/zookeeper.md F404 to F407.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kafkalog.storage.files.files import InputFile
from kafkalog.zookeeper.digest import DIGEST_MASK, DIGEST_VERSION, node_digest
from kafkalog.zookeeper.faults import ZooKeeperFault, corrupt
from kafkalog.zookeeper.snapshot import Snapshot, StoredNode, TreeDigest
from kafkalog.zookeeper.tree import Touched, TreeNode
from kafkalog.zookeeper.znode import Acl, OwnerKind, owner_kind

# czxid, mzxid, ephemeralOwner and pzxid of a stored stat.
_PART_OF_STAT = struct.Struct(">qq28xqq")


@dataclass(frozen=True, slots=True)
class SnapshotScan:
    """A sound snapshot: `zxid` is in its name, `end_zxid` is the last transaction whose changes it
    can hold according to its contents, and `is_end_known` whether that is certain. `digest` is that
    of its nodes, `stored_digest` what the server wrote."""

    path: str
    zxid: int
    end_zxid: int
    is_end_known: bool
    digest: int
    stored_digest: TreeDigest | None
    sessions: dict[int, int]
    nodes: dict[bytes, TreeNode | None]
    ephemerals: dict[int, set[bytes]]


def scan_snapshot(path: str, zxid: int, touched: Touched) -> SnapshotScan:
    """Read a snapshot to its end. Raises CorruptDataError with the position in the decompressed
    file if it is not sound, also if its digest is not that of its nodes."""
    with InputFile(path) as file:
        snapshot = Snapshot(file)
        found = _Found(touched, snapshot.acls)
        for node in snapshot.nodes():
            found.add(node)
    stored, last = snapshot.digest, snapshot.last_zxid
    # A digest of zxid 0 says that there was no transaction before the snapshot was complete.
    ends = [end for end in (last, stored.zxid if stored else None) if end is not None]
    scan = SnapshotScan(
        path,
        zxid,
        max(zxid, found.largest_zxid, *ends),
        bool(ends),
        found.digest,
        stored,
        snapshot.sessions,
        found.nodes,
        found.ephemerals,
    )
    _check_digest(scan)
    return scan


def _check_digest(scan: SnapshotScan) -> None:
    stored = scan.stored_digest
    if stored is None or stored.version != DIGEST_VERSION or stored.zxid != scan.zxid:
        return
    # A node of the next transaction can be in the snapshot before the server notes its digest.
    if scan.end_zxid > scan.zxid:
        return
    # With zxid 0 the server had no digest yet.
    if stored.zxid and stored.digest & DIGEST_MASK != scan.digest:
        detail = f"the digest of the nodes is {scan.digest:#x}, {stored.digest:#x} was written"
        raise corrupt(ZooKeeperFault.DIGEST, detail, 0)


class _Found:
    """What the scan keeps of the nodes that it reads."""

    def __init__(self, touched: Touched, acls: dict[int, tuple[Acl, ...]]) -> None:
        self.nodes: dict[bytes, TreeNode | None] = dict.fromkeys(touched.paths)
        self.ephemerals: dict[int, set[bytes]] = {}
        self.largest_zxid = 0
        self.digest = 0
        self._closed = touched.closed
        self._acls = acls
        self._above: list[StoredNode] = []

    def add(self, node: StoredNode) -> None:
        """Take note of a node, which the nodes above it came before."""
        path = node.path
        czxid, mzxid, owner, pzxid = _PART_OF_STAT.unpack(node.stat)
        self.largest_zxid = max(self.largest_zxid, czxid, mzxid, pzxid)
        self.digest = self.digest + node_digest(path, node.data, node.stat) & DIGEST_MASK
        del self._above[node.depth :]
        self._above.append(node)
        if path in self.nodes:
            self._keep(node)
        if owner in self._closed and owner_kind(owner) is OwnerKind.EPHEMERAL:
            self.ephemerals.setdefault(owner, set()).add(path)
            for kept in self._above[-2:]:
                self._keep(kept)

    def _keep(self, node: StoredNode) -> None:
        acl = self._acls.get(node.acl, ())
        self.nodes[node.path] = TreeNode.of_stat(node.data, acl, node.stat)
