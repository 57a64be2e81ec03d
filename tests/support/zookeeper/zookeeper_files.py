"""A small writer of ZooKeeper's files, by the layout in docs/zookeeper.md: the tests' own; and what
is read from them."""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding
from kafkalog.zookeeper.replay import TreeAt, tree_at
from kafkalog.zookeeper.snapshot import TreeDigest
from kafkalog.zookeeper.transactions import (
    Check,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    EntryDigest,
    Failed,
    Multi,
    OpCode,
    Operation,
    SetAcl,
    SetData,
    Transaction,
)
from kafkalog.zookeeper.znode import OPEN_ACL_UNSAFE, Acl, ttl_ms

OPEN = -1


class Node(NamedTuple):
    """A node for a snapshot."""

    path: bytes
    data: bytes | None = b""
    acl: int = OPEN
    czxid: int = 0
    mzxid: int = 0
    ctime_ms: int = 0
    mtime_ms: int = 0
    version: int = 0
    cversion: int = 0
    aversion: int = 0
    ephemeral_owner: int = 0
    pzxid: int = 0


def jute_buffer(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def jute_acls(acls: Sequence[Acl]) -> bytes:
    entries = (
        struct.pack(">i", acl.perms)
        + jute_buffer(acl.scheme.encode())
        + jute_buffer(acl.id.encode())
        for acl in acls
    )
    return struct.pack(">i", len(acls)) + b"".join(entries)


def shown(path: bytes) -> bytes:
    return jute_buffer(path or b"/")


def create_bytes(create: Create, *, oldest: bool = False) -> bytes:
    front = shown(create.path) + jute_buffer(create.data) + jute_acls(create.acl)
    cversion = struct.pack(">i", create.parent_cversion)
    if create.op_code is OpCode.CREATE_CONTAINER:
        return front + cversion
    if create.op_code is OpCode.CREATE_TTL:
        return front + cversion + struct.pack(">q", ttl_ms(create.ephemeral_owner))
    is_ephemeral = bytes([create.ephemeral_owner != 0])
    return front + is_ephemeral + (b"" if oldest else cversion)


def operation_bytes(operation: Operation | Multi) -> tuple[OpCode, bytes]:
    """The type and body of an operation; where several types have one body, the commonest."""
    match operation:
        case Create():
            return operation.op_code, create_bytes(operation)
        case Delete(path):
            return OpCode.DELETE, shown(path)
        case SetData(path, data, version):
            return OpCode.SET_DATA, shown(path) + jute_buffer(data) + struct.pack(">i", version)
        case SetAcl(path, acl, version):
            return OpCode.SET_ACL, shown(path) + jute_acls(acl) + struct.pack(">i", version)
        case Check(path, version):
            return OpCode.CHECK, shown(path) + struct.pack(">i", version)
        case CreateSession(timeout_ms):
            return OpCode.CREATE_SESSION, struct.pack(">i", timeout_ms)
        case CloseSession(None):
            return OpCode.CLOSE_SESSION, b""
        case CloseSession(tuple(paths)):
            listed = b"".join(map(jute_buffer, paths))
            return OpCode.CLOSE_SESSION, struct.pack(">i", len(paths)) + listed
        case Failed(error):
            return OpCode.ERROR, struct.pack(">i", error)
        case Multi(operations):
            parts = [operation_bytes(part) for part in operations]
            body = b"".join(struct.pack(">i", code) + jute_buffer(data) for code, data in parts)
            return OpCode.MULTI, struct.pack(">i", len(parts)) + body
    raise AssertionError(operation)


def transaction_bytes(transaction: Transaction) -> bytes:
    session_id, cxid, zxid, time_ms, operation, digest = transaction
    code, body = operation_bytes(operation)
    header = struct.pack(">qiqqi", session_id, cxid, zxid, time_ms, code)
    return header + body + (struct.pack(">iq", *digest) if digest else b"")


def entry_bytes(body: bytes) -> bytes:
    return struct.pack(">qi", zlib.adler32(body), len(body)) + body + b"B"


def log_bytes(transactions: Iterable[Transaction], padding: int = 0) -> bytes:
    entries = (entry_bytes(transaction_bytes(transaction)) for transaction in transactions)
    return struct.pack(">iiq", 0x5A4B4C47, 2, 0) + b"".join(entries) + bytes(padding)


def node_bytes(node: Node) -> bytes:
    stat = struct.pack(">qqqqiiiqq", *node[3:])
    return jute_buffer(node.path) + jute_buffer(node.data) + struct.pack(">q", node.acl) + stat


def snapshot_bytes(
    nodes: Iterable[Node],
    sessions: Mapping[int, int] | None = None,
    acls: Mapping[int, Sequence[Acl]] | None = None,
    digest: TreeDigest | None = None,
    last_zxid: int | None = None,
) -> bytes:
    """A snapshot, nodes in the order given, with the optional parts that are given."""
    content = struct.pack(">iiq", 0x5A4B534E, 2, -1)
    content += struct.pack(">i", len(sessions or {}))
    content += b"".join(struct.pack(">qi", *session) for session in (sessions or {}).items())
    content += struct.pack(">i", len(acls or {}))
    content += b"".join(
        struct.pack(">q", number) + jute_acls(entries) for number, entries in (acls or {}).items()
    )
    content += b"".join(map(node_bytes, nodes)) + jute_buffer(b"/")
    content = _sealed(content)
    if digest is not None:
        content += struct.pack(">qi", digest.zxid, digest.version)
        if digest.version >= 2:
            content += struct.pack(">Q", digest.digest)
        else:
            content += jute_buffer(f"{digest.digest:x}".encode())
        content = _sealed(content)
    if last_zxid is not None:
        content = _sealed(content + struct.pack(">q", last_zxid))
    return content


def _sealed(content: bytes) -> bytes:
    return content + struct.pack(">q", zlib.adler32(content)) + jute_buffer(b"/")


def transaction(
    zxid: int,
    operation: Operation | Multi,
    *,
    session_id: int = 0x1000,
    digest: EntryDigest | None = None,
) -> Transaction:
    """A transaction whose other fields follow from its zxid."""
    return Transaction(session_id, zxid & 0x7FFFFFFF, zxid, 1_000_000 + zxid, operation, digest)


def create(path: str, cversion: int, data: bytes | None = b"", owner: int = 0) -> Create:
    return Create(path.encode(), data, OPEN_ACL_UNSAFE, owner, cversion, OpCode.CREATE)


ROOT = Node(b"")
OWN = (Node(b"/zookeeper"), Node(b"/zookeeper/quota"))


def write_data_dir(
    folder: Path,
    snapshots: Mapping[int, bytes] | None = None,
    logs: Mapping[int, bytes] | None = None,
) -> Path:
    """A dataDir with files by the zxid in their names."""
    version = folder / "version-2"
    version.mkdir(parents=True, exist_ok=True)
    for zxid, content in (snapshots or {}).items():
        (version / f"snapshot.{zxid:x}").write_bytes(content)
    for zxid, content in (logs or {}).items():
        (version / f"log.{zxid:x}").write_bytes(content)
    return folder


def flipped(content: bytes, bit: int) -> bytes:
    """The bytes with one bit changed."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def replayed(folder: Path, until: int | None = None) -> tuple[TreeAt, list[ZooKeeperFinding]]:
    """The tree that the files give, and what was found in them."""
    (data_dir,) = find_data_dirs([str(folder)])
    findings: list[ZooKeeperFinding] = []
    return tree_at(data_dir, until, findings.append), findings


def faults(findings: list[ZooKeeperFinding]) -> list[ZooKeeperFault]:
    return [finding.fault for finding in findings]
