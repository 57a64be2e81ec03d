"""Snapshots and transaction logs of real ensembles are read as ZooKeeper's own formatters read
them (F402 to F410)."""

import base64
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kafkalog.storage.files.files import InputFile
from kafkalog.wire.java_text import decoded
from kafkalog.zookeeper.digest import DIGEST_MASK, node_digest
from kafkalog.zookeeper.snapshot import Snapshot
from kafkalog.zookeeper.transaction_log import LogEntry, read_transaction_log
from kafkalog.zookeeper.transactions import (
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Failed,
    Multi,
    OpCode,
    SetData,
    Transaction,
)
from kafkalog.zookeeper.tree import STAT
from kafkalog.zookeeper.znode import Acl
from tests.support.repository import Unpack
from tests.support.zookeeper.zookeeper_files import operation_bytes

SETS = ("kafka08", "kafka010", "kafka39zk")
FOLDERS = ("zookeeper-live", "zookeeper-after-broker-stop")
NAMES = {
    OpCode.CREATE: "create",
    OpCode.DELETE: "delete",
    OpCode.SET_DATA: "setData",
    OpCode.CHECK: "check",
    OpCode.MULTI: "multi",
    OpCode.CREATE_SESSION: "createSession",
    OpCode.CLOSE_SESSION: "closeSession",
    OpCode.ERROR: "error",
}
ENTRY = re.compile(r"^(?=\d+/\d+/\d+, .* session 0x)", re.MULTILINE)


def transactions(path: Path) -> list[Transaction]:
    with InputFile(str(path)) as file:
        entries = list(read_transaction_log(file))
    assert all(isinstance(entry, LogEntry) for entry in entries)
    return [entry.transaction for entry in entries if isinstance(entry, LogEntry)]


def printed_time(time_ms: int) -> str:
    time = datetime.fromtimestamp(time_ms // 1000, UTC)
    half, hour = ("PM" if time.hour >= 12 else "AM"), time.hour % 12 or 12
    return f"{time.month}/{time.day}/{time:%y}, {hour}:{time:%M:%S} {half} UTC"


def acl_of_3_4(acl: tuple[Acl, ...]) -> str:
    entries = ",".join(f"s{{{perms},s{{'{scheme},'{name}}}}}" for perms, scheme, name in acl)
    return f"v{{{entries}}}"


def acl_of_3_8(acl: tuple[Acl, ...]) -> str:
    entries = ", ".join(f"{perms},s{{'{scheme},'{name}}}\n" for perms, scheme, name in acl)
    return f"[{entries}]"


def body_of_3_4(transaction: Transaction) -> str:
    match transaction.operation:
        case Create(path, data, acl, owner, cversion, _):
            hexed = f"#{data.hex()}" if data else ""
            listed = acl_of_3_4(acl)
            return f"'{path.decode()},{hexed},{listed},{'T' if owner else 'F'},{cversion}"
        case SetData(path, data, version):
            assert data is not None
            return f"'{path.decode()},#{data.hex()},{version}"
        case Delete(path):
            return f"'{path.decode()}"
        case CreateSession(number) | Failed(number):
            return str(number)
        case CloseSession(None):
            return "null"
    raise AssertionError(transaction)


def body_of_3_8(transaction: Transaction) -> str:
    match transaction.operation:
        case Create(path, data, acl, owner, cversion, _):
            flag = "true" if owner else "false"
            return f"{path.decode()},{decoded(data or b'')},{acl_of_3_8(acl)},{flag},{cversion}"
        case SetData(path, data, version):
            return f"{path.decode()},{decoded(data or b'')},{version}"
        case CreateSession(number) | Failed(number):
            return str(number)
        case CloseSession(paths):
            assert paths is not None
            return f"v{{{','.join(repr(path.decode())[:-1] for path in paths)}}}"
        case Multi(operations):
            parts = map(operation_bytes, operations)
            return ";".join(f"{NAMES[code]}:{decoded(data)}" for code, data in parts)
    raise AssertionError(transaction)


def printed(transaction: Transaction, body: Callable[[Transaction], str]) -> str:
    code, _ = operation_bytes(transaction.operation)
    return (
        f"{printed_time(transaction.time_ms)} session {transaction.session_id:#x}"
        f" cxid {transaction.cxid:#x} zxid {transaction.zxid:#x} {NAMES[code]}"
        f" {body(transaction)}"
    )


@pytest.mark.parametrize("name", SETS)
def test_log_entries_are_those_that_zookeepers_tool_prints(name: str, unpacked: Unpack) -> None:
    # F408 to F410
    body = body_of_3_8 if name == "kafka39zk" else body_of_3_4
    root = unpacked(f"{name}.zookeeper")
    for path in sorted(root.glob("zookeeper-live/version-2/log.*")):
        text = (root / "golden" / "zk" / f"{path.name}.txt").read_bytes().decode("utf-8")
        _, *entries = ENTRY.split(text)
        expected = [entry.split("EOF reached")[0].strip() for entry in entries]
        found = transactions(path)
        assert [printed(entry, body).strip() for entry in found] == expected
        assert f"EOF reached after {len(found)} txns." in text


def golden_nodes(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The nodes that SnapshotFormatter prints, with their fields as text."""
    blocks = text.split("Session Details")[0].split("----\n")[1:]
    for block in filter(None, blocks):
        path, *lines = block.splitlines()
        pairs = (line.strip().partition(" =") for line in lines)
        yield path, {name: value.strip() for name, separator, value in pairs if separator}


def printed_fields(data: bytes | None, stat: bytes) -> dict[str, str]:
    czxid, mzxid, ctime, mtime, version, cversion, aversion, owner, pzxid = STAT.unpack(stat)

    def time(time_ms: int) -> str:
        return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")

    return {
        "cZxid": f"0x{czxid:014x}",
        "ctime": time(ctime),
        "mZxid": f"0x{mzxid:014x}",
        "mtime": time(mtime),
        "pZxid": f"0x{pzxid:014x}",
        "cversion": str(cversion),
        "dataVersion": str(version),
        "aclVersion": str(aversion),
        "ephemeralOwner": f"0x{owner:014x}",
        # 3.4 prints the length, 3.8 the data.
        "dataLength": str(len(data or b"")),
        "data": base64.b64encode(data or b"").decode(),
    }


@pytest.mark.parametrize("name", SETS)
def test_snapshots_are_those_that_zookeepers_tool_prints(name: str, unpacked: Unpack) -> None:
    # F403 to F405
    root = unpacked(f"{name}.zookeeper")
    for path in sorted(root.glob("zookeeper-live/version-2/snapshot.*")):
        text = (root / "golden" / "zk" / f"{path.name}.txt").read_text()
        with InputFile(str(path)) as file:
            snapshot = Snapshot(file)
            nodes = list(snapshot.nodes())
        found = {node.path.decode() or "/": printed_fields(node.data, node.stat) for node in nodes}
        expected = dict(golden_nodes(text))
        assert {
            shown: {field: found[shown][field] for field in fields}
            for shown, fields in expected.items()
        } == expected
        assert len(found) == len(expected)
        sessions = re.findall(r"^0x([0-9a-f]+), (\d+), \d+$", text, re.MULTILINE)
        assert snapshot.sessions == {int(number, 16): int(ms) for number, ms in sessions}


@pytest.mark.parametrize("folder", FOLDERS)
def test_tree_digests_are_those_of_the_nodes(folder: str, unpacked: Unpack) -> None:
    # F406
    checked = 0
    for path in sorted(unpacked("kafka39zk.zookeeper").glob(f"{folder}/version-2/snapshot.*")):
        with InputFile(str(path)) as file:
            snapshot = Snapshot(file)
            digest = sum(node_digest(node.path, node.data, node.stat) for node in snapshot.nodes())
        assert snapshot.digest is not None
        if snapshot.digest.zxid:
            assert snapshot.digest.digest == digest & DIGEST_MASK
            checked += 1
    assert checked == 2
