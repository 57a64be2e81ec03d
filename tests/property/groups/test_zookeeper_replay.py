"""A replay from a snapshot, however fuzzy, comes to the tree that the server has (F407, F410, F413
to F415). The server here is a plain model of a tree that applies one transaction after another, and
writes its snapshots node by node while it does so."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.digest import DIGEST_MASK, node_digest
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding
from kafkalog.zookeeper.history import changes
from kafkalog.zookeeper.log_reading import Logged
from kafkalog.zookeeper.replay import tree_at
from kafkalog.zookeeper.snapshot import TreeDigest
from kafkalog.zookeeper.transactions import (
    CloseSession,
    Create,
    Delete,
    EntryDigest,
    Multi,
    OpCode,
    Operation,
    SetData,
    Transaction,
)
from kafkalog.zookeeper.tree_walk import znodes
from kafkalog.zookeeper.znode import OPEN_ACL_UNSAFE
from tests.support.zookeeper.zookeeper_files import (
    OWN,
    ROOT,
    Node,
    log_bytes,
    node_bytes,
    snapshot_bytes,
    transaction,
    write_data_dir,
)

SESSIONS = (0x1000, 0x2000)
NAMES = (b"a", b"b", b"c")
# What a server of 3.5 and later begins with.
BEGIN = (ROOT, *OWN, Node(b"/zookeeper/config", aversion=-1))


@dataclass
class Server:
    """All nodes by path, as a snapshot would have them; what was logged; and the state after each
    transaction."""

    nodes: dict[bytes, Node] = field(default_factory=lambda: {node.path: node for node in BEGIN})
    logged: list[Transaction] = field(default_factory=list)
    closed: list[set[bytes]] = field(default_factory=list)

    def children(self, path: bytes) -> list[bytes]:
        return sorted(other for other in self.nodes if other and other[: other.rfind(b"/")] == path)

    def log(self, operation: Operation | Multi, session_id: int) -> None:
        zxid = len(self.logged) + 1
        digest = EntryDigest(2, self.digest())
        entry = transaction(zxid, operation, session_id=session_id, digest=digest)
        self.logged.append(entry)

    def digest(self) -> int:
        return (
            sum(
                node_digest(path, node.data, node_bytes(node)[-60:])
                for path, node in self.nodes.items()
            )
            & DIGEST_MASK
        )

    def create(self, path: bytes, owner: int) -> Create | None:
        parent = path[: path.rfind(b"/")]
        if path in self.nodes or parent not in self.nodes or self.nodes[parent].ephemeral_owner:
            return None
        zxid, cversion = len(self.logged) + 1, self.nodes[parent].cversion + 1
        self.nodes[parent] = self.nodes[parent]._replace(cversion=cversion, pzxid=zxid)
        time = 1_000_000 + zxid
        data = b"%d" % zxid
        self.nodes[path] = Node(path, data, -1, zxid, zxid, time, time, 0, 0, 0, owner, zxid)
        return Create(path, data, OPEN_ACL_UNSAFE, owner, cversion, OpCode.CREATE)

    def delete(self, path: bytes) -> Delete | None:
        if path not in self.nodes or not path or self.children(path):
            return None
        del self.nodes[path]
        parent = path[: path.rfind(b"/")]
        self.nodes[parent] = self.nodes[parent]._replace(pzxid=len(self.logged) + 1)
        return Delete(path)

    def set_data(self, path: bytes) -> SetData | None:
        if path not in self.nodes:
            return None
        node, zxid = self.nodes[path], len(self.logged) + 1
        version = node.version + 1
        self.nodes[path] = node._replace(
            data=None, version=version, mzxid=zxid, mtime_ms=1_000_000 + zxid
        )
        return SetData(path, None, version)

    def close(self, session_id: int, *, lists_paths: bool) -> CloseSession:
        owned = sorted(
            path for path, node in self.nodes.items() if node.ephemeral_owner == session_id
        )
        for path in owned:
            assert self.delete(path) is not None
        self.closed.append(set(owned))
        return CloseSession(tuple(owned) if lists_paths else None)

    def step(self, draw: st.DataObject, *, in_snapshot: bool = False) -> None:
        """One request that the server grants, or none. While a snapshot is written, sessions are
        closed as 3.6 does: before, a node that the snapshot lacks leaves its parent's pzxid as it
        was (F414)."""
        kind = draw.draw(
            st.sampled_from(["create", "ephemeral", "delete", "set", "multi", "close"])
        )
        session_id = draw.draw(st.sampled_from(SESSIONS))
        if kind == "close":
            lists_paths = in_snapshot or draw.draw(st.booleans())
            self.log(self.close(session_id, lists_paths=lists_paths), session_id)
            return
        kinds = [kind] if kind != "multi" else ["delete", "create", "set"]
        parts = [part for part in (self.part(kind, session_id, draw) for kind in kinds) if part]
        if parts:
            is_multi = kind == "multi"
            self.log(Multi(tuple(parts)) if is_multi else parts[0], session_id)

    def part(self, kind: str, session_id: int, draw: st.DataObject) -> Operation | None:
        names = draw.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3))
        path = b"".join(b"/" + name for name in names)
        match kind:
            case "create":
                return self.create(path, 0)
            case "ephemeral":
                return self.create(path, session_id)
            case "delete":
                return self.delete(path)
            case _:
                return self.set_data(path)

    def serialized(self, path: bytes, draw: st.DataObject) -> Iterator[Node]:
        """Nodes from one on, children as they are when it is its turn, with more transactions in
        between."""
        if path not in self.nodes:
            return
        node, children = self.nodes[path], self.children(path)
        yield node
        for child in children:
            if draw.draw(st.integers(0, 2)) == 0:
                self.step(draw, in_snapshot=True)
            yield from self.serialized(child, draw)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replay")


def refuse(finding: ZooKeeperFinding) -> None:
    assert finding.fault is ZooKeeperFault.NO_SNAPSHOT, finding


def tree(folder: Path, until: int | None = None) -> set[Node]:
    """The replayed nodes as they would be stored, which clients do not see of cversion."""
    (data_dir,) = find_data_dirs([str(folder)])
    return {
        Node(
            b"" if row.path == "/" else row.path.encode(),
            row.data,
            -1,
            row.czxid,
            row.mzxid,
            row.ctime_ms,
            row.mtime_ms,
            row.version,
            (row.cversion + row.children) // 2,
            row.aversion,
            row.ephemeral_owner,
            row.pzxid,
        )
        for row in znodes(tree_at(data_dir, until, refuse))
    }


@given(st.data(), st.integers(0, 12), st.integers(0, 6), st.booleans())
def test_a_replay_from_a_fuzzy_snapshot_comes_to_the_servers_tree(
    folder: Path, data: st.DataObject, before: int, after: int, has_ending: bool
) -> None:
    server = Server()
    empty = dict(server.nodes)
    for _ in range(before):
        server.step(data)
    zxid, as_of = len(server.logged), set(server.nodes.values())
    nodes = list(server.serialized(b"", data))
    end = len(server.logged)
    digest = TreeDigest(end, 2, server.digest()) if has_ending and end else None
    content = snapshot_bytes(nodes, None, None, digest, end if has_ending else None)
    for _ in range(after):
        server.step(data)
    for path in (folder / "version-2").glob("*"):
        path.unlink()
    first = snapshot_bytes(empty.values())
    logs = {1: log_bytes(server.logged, padding=30)} if server.logged else {}
    write_data_dir(folder, {0: first, zxid: content if zxid else first}, logs)
    assert tree(folder) == set(server.nodes.values())
    # And, where an older snapshot helps, to the tree at the moment when the newest was begun.
    assert tree(folder, until=zxid) == as_of
    (data_dir,) = find_data_dirs([str(folder)])
    ended: dict[Logged, set[bytes]] = {}
    for change in changes(data_dir, None, refuse):
        if change.change == "close_session":
            paths = ended.setdefault(change.logged, set())
            paths.update(() if change.path is None else (change.path,))
    assert list(ended.values()) == server.closed
