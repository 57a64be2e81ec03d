"""All nodes of a tree, streamed from its snapshot with the changed ones in their places.

Rules: docs/zookeeper.md F401, F403 and F413.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkalog.storage.files.files import InputFile
from kafkalog.wire.java_text import decoded
from kafkalog.zookeeper.replay import TreeAt
from kafkalog.zookeeper.snapshot import Snapshot
from kafkalog.zookeeper.tree import STAT, TreeNode, parent_of
from kafkalog.zookeeper.znode import Acl, Znode


class ZnodeSize(NamedTuple):
    """How much is in a node and below it: bytes of data only, `descendants` without itself."""

    path: str
    data_bytes: int
    recursive_data_bytes: int
    children: int
    descendants: int


class _Frame:
    """A node whose subtree is being walked, and the sums of what was walked of it."""

    __slots__ = ("acl", "children", "data", "descendants", "path", "pending", "size", "stat")

    def __init__(
        self,
        path: bytes,
        data: bytes | None,
        acl: tuple[Acl, ...],
        stat: tuple[int, ...],
        pending: list[bytes],
    ) -> None:
        self.path = path
        self.data = data
        self.acl = acl
        self.stat = stat
        self.pending = pending
        self.children = 0
        self.descendants = 0
        self.size = len(data) if data else 0


def znodes(tree: TreeAt, subtree: bytes = b"") -> Iterator[Znode]:
    """Yield the nodes of a tree, or of the part below and at a path, children before their
    parents."""
    for frame in _frames(tree, subtree):
        czxid, mzxid, ctime_ms, mtime_ms, version, cversion, aversion, owner, pzxid = frame.stat
        yield Znode(
            shown_path(frame.path),
            frame.data,
            frame.acl,
            czxid,
            mzxid,
            pzxid,
            ctime_ms,
            mtime_ms,
            version,
            _seen_cversion(cversion, frame.children),
            aversion,
            owner,
            frame.children,
        )


def znode_sizes(tree: TreeAt, subtree: bytes = b"") -> Iterator[ZnodeSize]:
    """Yield the sizes of these nodes."""
    for frame in _frames(tree, subtree):
        yield ZnodeSize(
            shown_path(frame.path),
            len(frame.data) if frame.data else 0,
            frame.size,
            frame.children,
            frame.descendants,
        )


def shown_path(path: bytes) -> str:
    """Return a path as clients have it; the root's is empty in the files."""
    return decoded(path) or "/"


def _seen_cversion(stored: int, children: int) -> int:
    """Return what clients see, in Java's 32 bits."""
    return (2 * stored - children + (1 << 31)) % (1 << 32) - (1 << 31)


def _frames(tree: TreeAt, subtree: bytes) -> Iterator[_Frame]:
    for frame in _Walk(tree).frames():
        if is_below(frame.path, subtree):
            yield frame


def is_below(path: bytes, subtree: bytes) -> bool:
    """Return whether a path is that of a subtree or below it; the root's is empty."""
    return not subtree or path == subtree or path.startswith(subtree + b"/")


class _Walk:
    """Goes through a snapshot's nodes with those above the present one at hand."""

    def __init__(self, tree: TreeAt) -> None:
        self._changed = tree.changed.nodes
        self._added = _added(tree)
        self._snapshot = tree.snapshot
        self._open: list[_Frame] = []

    def frames(self) -> Iterator[_Frame]:
        """Yield every node when all below it have been walked."""
        if self._snapshot is None:
            root = self._changed.get(b"")
            if root is not None:
                self._open.append(self._changed_frame(b"", root))
        else:
            with InputFile(self._snapshot.path) as file:
                yield from self._snapshot_frames(Snapshot(file))
        yield from self._close(0)

    def _snapshot_frames(self, snapshot: Snapshot) -> Iterator[_Frame]:
        changed, opened, acls, unpack = self._changed, self._open, snapshot.acls, STAT.unpack
        removed_depth: int | None = None
        for depth, path, data, acl, stat in snapshot.nodes():
            if removed_depth is not None:
                if depth > removed_depth:
                    continue
                removed_depth = None
            if len(opened) > depth:
                yield from self._close(depth)
            if path in changed:
                node = changed[path]
                if node is None:
                    removed_depth = depth
                    continue
                frame = self._changed_frame(path, node)
            else:
                pending = self._added.pop(path, [])
                frame = _Frame(path, data, acls.get(acl, ()), unpack(stat), pending)
            if opened:
                opened[-1].children += 1
            opened.append(frame)

    def _changed_frame(self, path: bytes, node: TreeNode) -> _Frame:
        return _Frame(path, node.data, node.acl, node.stat(), self._added.pop(path, []))

    def _close(self, depth: int) -> Iterator[_Frame]:
        """End the nodes deeper than `depth`, walking first what was added to them."""
        opened = self._open
        while len(opened) > depth:
            frame = opened[-1]
            if frame.pending:
                path = frame.pending.pop()
                node = self._changed[path]
                if node is not None:
                    frame.children += 1
                    opened.append(self._changed_frame(path, node))
                continue
            opened.pop()
            if opened:
                parent = opened[-1]
                parent.size += frame.size
                parent.descendants += frame.descendants + 1
            yield frame


def _added(tree: TreeAt) -> dict[bytes, list[bytes]]:
    """Return the nodes that the snapshot does not have, by the path above them."""
    added: dict[bytes, list[bytes]] = {}
    for path, node in tree.changed.nodes.items():
        if node is not None and path != b"" and path not in tree.in_snapshot:
            added.setdefault(parent_of(path), []).append(path)
    return added
