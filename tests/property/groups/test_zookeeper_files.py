"""ZooKeeper's files: what is written is read again, any flipped bit is found, any bytes give rows
or one typed error (F402 to F412)."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafkalog.errors import CorruptDataError
from kafkalog.storage.files.files import InputFile
from kafkalog.wire.snappy_stream import compress
from kafkalog.zookeeper.faults import ZooKeeperFinding
from kafkalog.zookeeper.snapshot import Snapshot, TreeDigest
from kafkalog.zookeeper.snapshot_input import snapshot_chunks
from kafkalog.zookeeper.snapshot_scan import scan_snapshot
from kafkalog.zookeeper.transaction_log import LogEntry, read_transaction_log
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
    SetAcl,
    SetData,
    Transaction,
)
from kafkalog.zookeeper.tree import STAT, Touched
from kafkalog.zookeeper.znode import CONTAINER_OWNER, Acl, ttl_owner
from tests.support.repository import Unpack
from tests.support.zookeeper.zookeeper_files import (
    Node,
    entry_bytes,
    flipped,
    log_bytes,
    snapshot_bytes,
)

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text("abz-_.0é", min_size=1, max_size=5)
PATHS = st.lists(NAMES, max_size=3).map(
    lambda names: "".join(f"/{name}" for name in names).encode()
)
DATA = st.none() | st.binary(max_size=40)
ACLS = st.lists(st.builds(Acl, INT32, NAMES, NAMES), max_size=2).map(tuple)
CREATES = (
    st.builds(Create, PATHS, DATA, ACLS, st.just(0), INT32, st.just(OpCode.CREATE)),
    st.builds(Create, PATHS, DATA, ACLS, st.just(0), INT32, st.just(OpCode.CREATE2)),
    st.builds(
        Create, PATHS, DATA, ACLS, st.just(CONTAINER_OWNER), INT32, st.just(OpCode.CREATE_CONTAINER)
    ),
    st.builds(
        Create,
        PATHS,
        DATA,
        ACLS,
        st.integers(1, 2**40 - 1).map(ttl_owner),
        INT32,
        st.just(OpCode.CREATE_TTL),
    ),
)
PARTS = st.one_of(
    *CREATES,
    st.builds(Delete, PATHS),
    st.builds(SetData, PATHS, DATA, INT32),
    st.builds(Check, PATHS, INT32),
    st.builds(Failed, INT32),
)
OPERATIONS = st.one_of(
    PARTS,
    st.builds(SetAcl, PATHS, ACLS, INT32),
    st.builds(CreateSession, INT32),
    st.builds(CloseSession, st.lists(PATHS.filter(len), max_size=3).map(tuple)),
    st.just(CloseSession(None)),
    st.builds(Multi, st.lists(PARTS, max_size=3).map(tuple)),
)
DIGESTS = st.none() | st.builds(EntryDigest, st.just(2), INT64)
TRANSACTIONS = st.builds(Transaction, INT64, INT32, INT64, INT64, OPERATIONS, DIGESTS)
STATS = st.tuples(INT64, INT64, INT64, INT64, INT32, INT32, INT32, INT64, INT64)

Codec = Callable[[bytes], bytes]
CODECS: dict[str, Codec] = {"": bytes, ".gz": gzip.compress, ".snappy": compress}


@st.composite
def trees(draw: st.DrawFn) -> list[Node]:
    """Nodes as a server writes them: depth first, each below the one it belongs to."""
    paths = {b""} | set(draw(st.lists(PATHS, max_size=8)))
    for path in list(paths):
        while path:
            path = path[: path.rfind(b"/")]
            paths.add(path)
    ordered = sorted(paths, key=lambda path: path.split(b"/"))
    return [Node(path, draw(DATA), draw(st.integers(-1, 1)), *draw(STATS)) for path in ordered]


ENDINGS = st.tuples(
    st.none() | st.builds(TreeDigest, INT64, st.sampled_from([1, 2]), st.integers(0, 2**63 - 1)),
    st.none() | INT64,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("zookeeper")


def log_items(folder: Path, content: bytes) -> list[LogEntry | ZooKeeperFinding]:
    path = folder / "log.1"
    path.write_bytes(content)
    with InputFile(str(path)) as file:
        return list(read_transaction_log(file))


def written(folder: Path, content: bytes, suffix: str = "") -> str:
    path = folder / f"snapshot.0{suffix}"
    path.write_bytes(content)
    return str(path)


@given(st.lists(TRANSACTIONS, max_size=6), st.integers(0, 40))
def test_logs_written_are_read_again(
    folder: Path, transactions: list[Transaction], padding: int
) -> None:
    found = log_items(folder, log_bytes(transactions, padding))
    assert [item.transaction for item in found if isinstance(item, LogEntry)] == transactions
    assert not any(isinstance(item, ZooKeeperFinding) for item in found)


@given(
    trees(),
    st.dictionaries(INT64, INT32, max_size=3),
    st.dictionaries(st.integers(0, 1), ACLS, max_size=2),
    ENDINGS,
    st.sampled_from(sorted(CODECS)),
)
def test_snapshots_written_are_read_again_in_every_form(
    folder: Path,
    nodes: list[Node],
    sessions: dict[int, int],
    acls: dict[int, tuple[Acl, ...]],
    ending: tuple[TreeDigest | None, int | None],
    suffix: str,
) -> None:
    # F403 to F405
    content = snapshot_bytes(nodes, sessions, acls, *ending)
    with InputFile(written(folder, CODECS[suffix](content), suffix)) as file:
        snapshot = Snapshot(file)
        found = [
            Node(path, data, acl, *STAT.unpack(stat))
            for _, path, data, acl, stat in snapshot.nodes()
        ]
    assert found == nodes
    assert snapshot.sessions == sessions
    assert {number: acl for number, acl in snapshot.acls.items() if number >= 0} == acls
    assert (snapshot.digest, snapshot.last_zxid) == ending


@given(trees(), ENDINGS, st.sampled_from(["", ".snappy"]), st.data())
def test_any_flipped_bit_of_a_snapshot_is_found(
    folder: Path,
    nodes: list[Node],
    ending: tuple[TreeDigest | None, int | None],
    suffix: str,
    data: st.DataObject,
) -> None:
    # F404. In gzip's header there are bits that mean nothing; its own CRC guards the rest. Snappy
    # may copy the same bytes from another place.
    content = snapshot_bytes(nodes, None, None, *ending)
    stored = CODECS[suffix](content)
    path = written(folder, flipped(stored, data.draw(st.integers(0, 8 * len(stored) - 1))), suffix)
    try:
        with InputFile(path) as file:
            assume(b"".join(snapshot_chunks(file)) != content)
    except CorruptDataError:
        pass
    with pytest.raises(CorruptDataError):
        scan_snapshot(path, 1, Touched())


@pytest.mark.parametrize(
    ("name", "snapshot"), [("kafka08", "snapshot.5b"), ("kafka39zk", "snapshot.5b")]
)
@given(data=st.data())
def test_any_flipped_bit_of_a_real_snapshot_is_found(
    name: str, snapshot: str, data: st.DataObject, unpacked: Unpack, folder: Path
) -> None:
    # F404
    live = unpacked(f"{name}.zookeeper") / "zookeeper-live" / "version-2"
    content = (live / snapshot).read_bytes()
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    with pytest.raises(CorruptDataError):
        scan_snapshot(written(folder, flipped(content, bit)), 1, Touched())


@given(st.lists(TRANSACTIONS, min_size=1, max_size=5), st.integers(0, 40), st.data())
def test_any_flipped_bit_of_a_log_entry_is_found(
    folder: Path, transactions: list[Transaction], padding: int, data: st.DataObject
) -> None:
    # F411: what is not damaged is still read, but for what could be the bytes not written yet.
    content = log_bytes(transactions, padding)
    end = len(content) - padding
    bit = data.draw(st.integers(8 * 16, 8 * end - 1))
    found = log_items(folder, flipped(content, bit))
    assert any(isinstance(item, ZooKeeperFinding) for item in found)
    read = [item.transaction for item in found if isinstance(item, LogEntry)]
    assert len(read) >= len(transactions) - 1
    remaining = iter(transactions)
    assert all(transaction in remaining for transaction in read)


@given(st.lists(TRANSACTIONS, min_size=1, max_size=4), st.integers(0, 30), st.data())
def test_a_log_cut_anywhere_gives_the_entries_before(
    folder: Path, transactions: list[Transaction], padding: int, data: st.DataObject
) -> None:
    # F411: with zeros in place of what was not written, or without.
    content = log_bytes(transactions)
    cut = data.draw(st.integers(0, len(content)))
    found = log_items(folder, content[:cut] + bytes(padding))
    read = [item.transaction for item in found if isinstance(item, LogEntry)]
    whole = log_bytes(transactions[: len(read)])
    # What ends in zeros, and has them appended again, is whole.
    assert len(whole) <= max(cut + padding, 16)
    assert read == transactions[: len(read)]
    findings = [item for item in found if isinstance(item, ZooKeeperFinding)]
    assert not any(finding.fault.is_damage for finding in findings)


@given(st.binary(max_size=300), st.booleans(), st.sampled_from(sorted(CODECS)))
def test_any_bytes_give_a_snapshot_or_one_typed_error(
    folder: Path, content: bytes, has_header: bool, suffix: str
) -> None:
    begin = snapshot_bytes([])[:16] if has_header else b""
    path = written(folder, CODECS[suffix](begin + content), suffix)
    with pytest.raises(CorruptDataError):
        scan_snapshot(path, 1, Touched())
    with pytest.raises(CorruptDataError):
        scan_snapshot(written(folder, content, suffix), 1, Touched())


@given(st.lists(st.binary(max_size=80), max_size=4), st.booleans())
def test_any_bytes_in_entries_give_transactions_or_findings(
    folder: Path, bodies: list[bytes], framed: bool
) -> None:
    frame = entry_bytes if framed else bytes
    content = log_bytes([]) + b"".join(map(frame, bodies))
    for item in log_items(folder, content):
        assert isinstance(item, LogEntry | ZooKeeperFinding)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(16, 100))
def test_a_length_is_checked_before_anything_is_allocated(
    folder: Path, length: int, position: int
) -> None:
    content = bytearray(snapshot_bytes([Node(b""), Node(b"/a", b"x")], {1: 2}))
    content[position : position + 4] = length.to_bytes(4, "big", signed=True)
    body = bytes(content[:-13])
    sealed = body + zlib.adler32(body).to_bytes(8, "big") + b"\0\0\0\x01/"
    try:
        scan_snapshot(written(folder, sealed), 1, Touched())
    except CorruptDataError as error:
        assert error.position <= len(sealed)
