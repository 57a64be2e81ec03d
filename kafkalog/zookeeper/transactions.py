"""The contents of one entry of a transaction log. Rules: docs/zookeeper.md F409 and F410."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from kafkalog.errors import CorruptDataError
from kafkalog.zookeeper.faults import ZooKeeperFault, corrupt
from kafkalog.zookeeper.jute import JuteReader
from kafkalog.zookeeper.znode import CONTAINER_OWNER, Acl, ttl_owner


class OpCode(IntEnum):
    """ZooKeeper's types of transactions, by its own names."""

    CREATE = 1
    DELETE = 2
    SET_DATA = 5
    SET_ACL = 7
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    CREATE_SESSION = -10
    CLOSE_SESSION = -11
    ERROR = -1


class Create(NamedTuple):
    """A node made. `parent_cversion` is what its parent's stored cversion becomes, -1 for one
    more than it is."""

    path: bytes
    data: bytes | None
    acl: tuple[Acl, ...]
    ephemeral_owner: int
    parent_cversion: int
    op_code: OpCode


class Delete(NamedTuple):
    """A node removed."""

    path: bytes


class SetData(NamedTuple):
    """The data of a node replaced; `version` is the one it has then."""

    path: bytes
    data: bytes | None
    version: int


class SetAcl(NamedTuple):
    """The access control list of a node replaced; `version` is the aversion it has then."""

    path: bytes
    acl: tuple[Acl, ...]
    version: int


class Check(NamedTuple):
    """A node's version compared, within a multi."""

    path: bytes
    version: int


class CreateSession(NamedTuple):
    """A session begun."""

    timeout_ms: int


class CloseSession(NamedTuple):
    """A session ended, with the ephemeral nodes that end with it; None if the entry does not list
    them."""

    paths: tuple[bytes, ...] | None


class Failed(NamedTuple):
    """A request that was refused, with ZooKeeper's error code."""

    error: int


Operation = Create | Delete | SetData | SetAcl | Check | CreateSession | CloseSession | Failed


class Multi(NamedTuple):
    """Operations that took effect together, or not at all."""

    operations: tuple[Operation, ...]


class EntryDigest(NamedTuple):
    """The digest of the tree after a transaction, as the leader had it."""

    version: int
    tree_digest: int


class Transaction(NamedTuple):
    """One transaction: the session that requested it, the leader's time, and its operations."""

    session_id: int
    cxid: int
    zxid: int
    time_ms: int
    operation: Operation | Multi
    digest: EntryDigest | None


_DIGEST_BYTES = 12


def read_transaction(data: bytes, position: int) -> Transaction:
    """Return the transaction in an entry's bytes, which begin at `position` of their file. Raises
    CorruptDataError."""
    reader = JuteReader(data, position)
    session_id, cxid = reader.read_long(), reader.read_int()
    zxid, time_ms = reader.read_long(), reader.read_long()
    op_code = _op_code(reader)
    if op_code is OpCode.MULTI:
        operation: Operation | Multi = _multi(reader, session_id)
    elif op_code is OpCode.CLOSE_SESSION:
        operation = _close_session(reader)
    elif op_code is OpCode.CREATE:
        operation = _create_of_any_age(reader, session_id)
    else:
        operation = _READERS[op_code](reader, session_id, op_code)
    return Transaction(session_id, cxid, zxid, time_ms, operation, _digest(reader))


def _op_code(reader: JuteReader) -> OpCode:
    place, number = reader.place, reader.read_int()
    try:
        return OpCode(number)
    except ValueError:
        raise corrupt(ZooKeeperFault.MALFORMED, f"a transaction of type {number}", place) from None


def _digest(reader: JuteReader) -> EntryDigest | None:
    if not reader.left:
        return None
    if reader.left != _DIGEST_BYTES:
        raise corrupt(ZooKeeperFault.MALFORMED, f"{reader.left} bytes too many", reader.place)
    return EntryDigest(reader.read_int(), reader.read_long())


def _path(reader: JuteReader) -> bytes:
    """Return a path as snapshots have it, where the root's is empty."""
    place, path = reader.place, reader.read_name()
    if not path.startswith(b"/"):
        raise corrupt(ZooKeeperFault.MALFORMED, f"{path[:40]!r} is not a path", place)
    return path if len(path) > 1 else b""


def _create(reader: JuteReader, session_id: int, op_code: OpCode) -> Create:
    path, data, acl = _path(reader), reader.read_buffer(), reader.read_acls()
    owner = session_id if reader.read_bool() else 0
    return Create(path, data, acl, owner, reader.read_int(), op_code)


def _create_of_any_age(reader: JuteReader, session_id: int) -> Create:
    """Before ZooKeeper 3.4 the parent's cversion was not in it."""
    begin = reader.position
    try:
        return _create(reader, session_id, OpCode.CREATE)
    except CorruptDataError:
        if reader.left:
            raise
        reader.position = begin
    path, data, acl = _path(reader), reader.read_buffer(), reader.read_acls()
    owner = session_id if reader.read_bool() else 0
    return Create(path, data, acl, owner, -1, OpCode.CREATE)


def _create_container(reader: JuteReader, session_id: int, op_code: OpCode) -> Create:
    path, data, acl = _path(reader), reader.read_buffer(), reader.read_acls()
    return Create(path, data, acl, CONTAINER_OWNER, reader.read_int(), op_code)


def _create_ttl(reader: JuteReader, session_id: int, op_code: OpCode) -> Create:
    path, data, acl = _path(reader), reader.read_buffer(), reader.read_acls()
    parent_cversion, ttl = reader.read_int(), reader.read_long()
    return Create(path, data, acl, ttl_owner(ttl), parent_cversion, op_code)


def _delete(reader: JuteReader, session_id: int, op_code: OpCode) -> Delete:
    return Delete(_path(reader))


def _set_data(reader: JuteReader, session_id: int, op_code: OpCode) -> SetData:
    return SetData(_path(reader), reader.read_buffer(), reader.read_int())


def _set_acl(reader: JuteReader, session_id: int, op_code: OpCode) -> SetAcl:
    return SetAcl(_path(reader), reader.read_acls(), reader.read_int())


def _check(reader: JuteReader, session_id: int, op_code: OpCode) -> Check:
    return Check(_path(reader), reader.read_int())


def _create_session(reader: JuteReader, session_id: int, op_code: OpCode) -> CreateSession:
    return CreateSession(reader.read_int())


def _failed(reader: JuteReader, session_id: int, op_code: OpCode) -> Failed:
    return Failed(reader.read_int())


_READERS: dict[OpCode, Callable[[JuteReader, int, OpCode], Operation]] = {
    OpCode.CREATE2: _create,
    OpCode.CREATE_CONTAINER: _create_container,
    OpCode.CREATE_TTL: _create_ttl,
    OpCode.DELETE: _delete,
    OpCode.DELETE_CONTAINER: _delete,
    OpCode.SET_DATA: _set_data,
    OpCode.RECONFIG: _set_data,
    OpCode.SET_ACL: _set_acl,
    OpCode.CHECK: _check,
    OpCode.CREATE_SESSION: _create_session,
    OpCode.ERROR: _failed,
}
_NOT_IN_MULTI = (OpCode.CLOSE_SESSION, OpCode.MULTI, OpCode.CREATE_SESSION)


def _multi(reader: JuteReader, session_id: int) -> Multi:
    def operation() -> Operation:
        op_code = _op_code(reader)
        if op_code in _NOT_IN_MULTI:
            raise corrupt(
                ZooKeeperFault.MALFORMED, f"a {op_code.name} within a multi", reader.place
            )
        place = reader.place + 4
        part = JuteReader(reader.read_name(), place)
        read = _create if op_code is OpCode.CREATE else _READERS[op_code]
        value = read(part, session_id, op_code)
        if part.left:
            raise corrupt(ZooKeeperFault.MALFORMED, f"{part.left} bytes too many", part.place)
        return value

    return Multi(tuple(reader.read_vector(operation) or ()))


def _close_session(reader: JuteReader) -> CloseSession:
    """Read the end of a session. Its paths are missing before 3.6, or if they are switched off:
    then the rest is not a list, but empty or a digest."""
    begin = reader.position
    if reader.left:
        try:
            paths = tuple(reader.read_vector(reader.read_name) or ())
        except CorruptDataError:
            paths = (b"",)
        if reader.left in (0, _DIGEST_BYTES) and all(path.startswith(b"/") for path in paths):
            return CloseSession(paths)
        reader.position = begin
    return CloseSession(None)
