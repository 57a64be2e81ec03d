"""Transactions of the types and forms that no fixture has (F409), by ZooKeeper's jute records."""

import struct

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.zookeeper.transactions import (
    CloseSession,
    Create,
    Delete,
    EntryDigest,
    OpCode,
    SetData,
    read_transaction,
)
from kafkalog.zookeeper.znode import OPEN_ACL_UNSAFE
from tests.support.zookeeper.zookeeper_files import create_bytes, jute_buffer

DIGEST = struct.pack(">iq", 2, -5)


def entry(code: int, body: bytes) -> bytes:
    return struct.pack(">qiqqi", 7, 1, 2, 3, code) + body


def test_types_that_share_a_body_say_the_same() -> None:
    body = jute_buffer(b"/zookeeper/config") + jute_buffer(b"server.1=") + struct.pack(">i", 9)
    expected = SetData(b"/zookeeper/config", b"server.1=", 9)
    for code in (OpCode.SET_DATA, OpCode.RECONFIG):
        assert read_transaction(entry(code, body), 0).operation == expected
    for code in (OpCode.DELETE, OpCode.DELETE_CONTAINER):
        found = read_transaction(entry(code, jute_buffer(b"/a")), 0)
        assert found.operation == Delete(b"/a")


def test_a_create_of_before_3_4_has_no_cversion_of_its_parent() -> None:
    made = Create(b"/a", b"x", OPEN_ACL_UNSAFE, 7, -1, OpCode.CREATE)
    found = read_transaction(entry(OpCode.CREATE, create_bytes(made, oldest=True)), 0)
    assert found.operation == made
    # create2 came with 3.5, and always has it.
    with pytest.raises(CorruptDataError, match="4 bytes are needed"):
        read_transaction(entry(OpCode.CREATE2, create_bytes(made, oldest=True)), 0)


@pytest.mark.parametrize(
    ("body", "paths", "digest"),
    [
        (b"", None, None),
        # Paths switched off, digests on.
        (DIGEST, None, EntryDigest(2, -5)),
        (struct.pack(">i", 0), (), None),
        (struct.pack(">i", 0) + DIGEST, (), EntryDigest(2, -5)),
        # As long as a digest alone.
        (struct.pack(">i", 1) + jute_buffer(b"/abc"), (b"/abc",), None),
        (struct.pack(">i", 1) + jute_buffer(b"/abc") + DIGEST, (b"/abc",), EntryDigest(2, -5)),
    ],
)
def test_a_closed_session_has_four_forms(
    body: bytes, paths: tuple[bytes, ...] | None, digest: EntryDigest | None
) -> None:
    found = read_transaction(entry(OpCode.CLOSE_SESSION, body), 0)
    assert (found.operation, found.digest) == (CloseSession(paths), digest)


@pytest.mark.parametrize(
    ("code", "body", "said"),
    [
        (99, b"", "a transaction of type 99"),
        (OpCode.DELETE, jute_buffer(b"a"), "is not a path"),
        (OpCode.DELETE, jute_buffer(None), "a string that is null"),
        (OpCode.DELETE, jute_buffer(b"/a") + b"more", "4 bytes too many"),
        (OpCode.DELETE, struct.pack(">i", -2), "a length of -2"),
        (OpCode.DELETE, struct.pack(">i", 2**31 - 1), "2147483647 bytes are needed"),
        (OpCode.MULTI, struct.pack(">i", 2**31 - 1), "2147483647 items in 0 bytes"),
        (OpCode.MULTI, struct.pack(">iii", 1, OpCode.MULTI, 0), "a MULTI within a multi"),
    ],
)
def test_what_is_not_a_transaction_is_one_typed_error(code: int, body: bytes, said: str) -> None:
    with pytest.raises(CorruptDataError, match=said) as raised:
        read_transaction(entry(code, body), 1000)
    assert raised.value.position >= 1000
