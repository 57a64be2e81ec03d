"""Which tree files give, where they are fuzzy, damaged, incomplete or old (F407 to F419).

What is expected follows from ZooKeeper's DataTree and FileTxnSnapLog, by the rules cited.
"""

import struct
from pathlib import Path

import pytest

from kafkalog.errors import DataLossError
from kafkalog.zookeeper.faults import ZooKeeperFault
from kafkalog.zookeeper.replay import TreeAt
from kafkalog.zookeeper.snapshot_scan import SnapshotScan, scan_snapshot
from kafkalog.zookeeper.transactions import (
    Check,
    CloseSession,
    CreateSession,
    Delete,
    Failed,
    Multi,
    SetAcl,
    SetData,
)
from kafkalog.zookeeper.tree_walk import znodes
from kafkalog.zookeeper.znode import Acl, Znode
from tests.support.zookeeper.zookeeper_files import (
    OWN,
    ROOT,
    Node,
    create,
    faults,
    flipped,
    log_bytes,
    replayed,
    snapshot_bytes,
    transaction,
    write_data_dir,
)

SESSION = 0x1000


def nodes(tree: TreeAt) -> dict[str, Znode]:
    return {znode.path: znode for znode in znodes(tree) if not znode.path.startswith("/zookeeper")}


# /a made, filled, /a/b made and deleted.
STORY = [
    transaction(1, CreateSession(6000)),
    transaction(2, create("/a", 1)),
    transaction(3, SetData(b"/a", b"filled", 1)),
    transaction(4, create("/a/b", 1)),
    transaction(5, Delete(b"/a/b")),
]


def test_transactions_set_the_stat_as_a_server_does(tmp_path: Path) -> None:
    # F413, F401
    tree, findings = replayed(write_data_dir(tmp_path, logs={1: log_bytes(STORY)}))
    assert faults(findings) == [ZooKeeperFault.NO_SNAPSHOT]
    found = nodes(tree)
    assert set(found) == {"/", "/a"}
    root, a = found["/"], found["/a"]
    # ZooKeeper's own node is a child that was never created.
    assert (root.children, root.cversion, root.pzxid) == (2, 0, 2)
    assert (a.czxid, a.mzxid, a.pzxid) == (2, 3, 5)
    assert (a.version, a.cversion, a.children, a.data) == (1, 2, 0, b"filled")
    assert (a.ctime_ms, a.mtime_ms) == (1_000_002, 1_000_003)
    assert tree.changed.sessions == {SESSION: 6000}


def test_a_cversion_does_not_grow_beyond_an_int(tmp_path: Path) -> None:
    # F413: the server's number is an int of Java, which wraps.
    parent = Node(b"/a", cversion=2**31 - 1, pzxid=3)
    log = {5: log_bytes([transaction(5, create("/a/b", -1))])}
    tree, findings = replayed(write_data_dir(tmp_path, {4: snapshot_bytes([ROOT, parent])}, log))
    assert findings == []
    assert set(nodes(tree)) == {"/", "/a", "/a/b"}
    assert nodes(tree)["/a"].pzxid == 3


def test_a_path_or_a_list_that_no_server_has_is_damage(tmp_path: Path) -> None:
    # F403, F409: such files asked for gigabytes of memory.
    long = snapshot_bytes([ROOT, Node(b"/" + b"a" * (16 * 1024))])
    with pytest.raises(DataLossError):
        replayed(write_data_dir(tmp_path / "path", {1: long}))
    _, findings = replayed(
        write_data_dir(tmp_path / "sound", {1: snapshot_bytes([ROOT, Node(b"/" + b"a" * 16383)])})
    )
    assert findings == []
    everyone = transaction(6, SetAcl(b"/a", (Acl(0, "", ""),) * (256 * 1024 + 1), 1))
    tree, findings = replayed(write_data_dir(tmp_path, logs={1: log_bytes([*STORY, everyone])}))
    assert ZooKeeperFault.MALFORMED in faults(findings)
    assert nodes(tree)["/a"].aversion == 0


@pytest.mark.parametrize("most", ["MOST_SESSIONS", "MOST_ACLS"])
def test_more_sessions_or_lists_than_a_server_has_are_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    # F403
    reader = Acl(1, "world", "anyone")
    acls = {1: (reader,) * 3, 2: (reader,) * 2}
    content = snapshot_bytes([ROOT], dict.fromkeys(range(5), 1), acls)
    monkeypatch.setattr(f"kafkalog.zookeeper.snapshot.{most}", 5)
    _, findings = replayed(write_data_dir(tmp_path / "5", {1: content}))
    assert findings == []
    monkeypatch.setattr(f"kafkalog.zookeeper.snapshot.{most}", 4)
    with pytest.raises(DataLossError):
        replayed(write_data_dir(tmp_path / "4", {1: content}))


def test_lists_of_access_are_set_with_their_version(tmp_path: Path) -> None:
    readers = (Acl(1, "sasl", "kafka"), Acl(31, "digest", "u:p"))
    story = [*STORY, transaction(6, SetAcl(b"/a", readers, 1)), transaction(7, SetAcl(b"", (), 1))]
    tree, _ = replayed(write_data_dir(tmp_path, logs={1: log_bytes(story)}))
    found = nodes(tree)
    assert (found["/a"].acl, found["/a"].aversion) == (readers, 1)
    assert (found["/"].acl, found["/"].aversion) == ((Acl(31, "world", "anyone"),), 1)


def test_a_multi_with_an_error_does_nothing(tmp_path: Path) -> None:
    # F410
    failed = Multi((create("/x", 2), Failed(-110)))
    done = Multi((Check(b"/a", 1), create("/y", 2), Delete(b"/a")))
    story = [*STORY, transaction(6, failed), transaction(7, done)]
    tree, _ = replayed(write_data_dir(tmp_path, logs={1: log_bytes(story)}))
    assert set(nodes(tree)) == {"/", "/y"}


@pytest.mark.parametrize("listed", [None, (), (b"/a/e1",), (b"/a/e1", b"/a/e2")])
def test_a_session_takes_its_ephemeral_nodes_with_it(
    listed: tuple[bytes, ...] | None, tmp_path: Path
) -> None:
    # F414: before 3.6 the transaction does not list them.
    story = [
        transaction(1, create("/a", 1)),
        transaction(2, create("/a/e1", 1, owner=SESSION)),
        transaction(3, create("/a/e2", 2, owner=SESSION)),
        transaction(4, create("/a/other", 3, owner=SESSION + 1), session_id=SESSION + 1),
        transaction(5, CloseSession(listed)),
    ]
    tree, _ = replayed(write_data_dir(tmp_path, logs={1: log_bytes(story)}))
    found = nodes(tree)
    assert set(found) == {"/", "/a", "/a/other"}
    assert found["/a"].pzxid == 5


def test_a_session_of_the_snapshot_takes_its_nodes_with_it(tmp_path: Path) -> None:
    # F414: nothing but the session's id leads to them.
    snapshot = snapshot_bytes(
        [
            ROOT,
            Node(b"/a", cversion=2),
            Node(b"/a/e1", ephemeral_owner=SESSION),
            Node(b"/a/e2", ephemeral_owner=SESSION + 1),
        ],
        {SESSION: 6000, SESSION + 1: 6000},
    )
    log = log_bytes([transaction(11, CloseSession(None))])
    tree, findings = replayed(write_data_dir(tmp_path, {10: snapshot}, {11: log}))
    found = nodes(tree)
    assert set(found) == {"/", "/a", "/a/e2"}
    assert (found["/a"].pzxid, found["/a"].children, found["/a"].cversion) == (11, 1, 3)
    assert tree.changed.sessions == {SESSION + 1: 6000}
    assert findings == []


def test_what_a_fuzzy_snapshot_has_already_is_not_an_error(tmp_path: Path) -> None:
    # F407, F415: it was begun after 1, and finished after 5.
    fuzzy = [
        ROOT._replace(cversion=1, pzxid=2),
        *OWN,
        Node(b"/a", b"filled", -1, 2, 3, 1_000_002, 1_000_003, 1, 1, 0, 0, 5),
    ]
    folder = write_data_dir(tmp_path, {1: snapshot_bytes(fuzzy)}, {1: log_bytes(STORY)})
    tree, findings = replayed(folder)
    expected, _ = replayed(write_data_dir(tmp_path / "logs", logs={1: log_bytes(STORY)}))
    assert set(znodes(tree)) == set(znodes(expected))
    assert findings == []


def test_a_fuzzy_snapshot_without_its_logs_is_a_finding(tmp_path: Path) -> None:
    # F407
    folder = write_data_dir(tmp_path, {1: snapshot_bytes([ROOT._replace(pzxid=4)])})
    _, findings = replayed(folder)
    assert faults(findings) == [ZooKeeperFault.FUZZY]


def test_for_a_past_zxid_a_snapshot_that_may_be_fuzzy_gives_way_to_the_one_before(
    tmp_path: Path,
) -> None:
    # F418: the later one was begun after 2 and lacks /a/b, which was deleted while it was written.
    older = snapshot_bytes([ROOT, *OWN])
    later = snapshot_bytes([ROOT._replace(cversion=1, pzxid=2), Node(b"/a", czxid=2, cversion=1)])
    folder = write_data_dir(tmp_path, {0: older, 3: later}, {1: log_bytes(STORY)})
    tree, findings = replayed(folder, until=4)
    assert set(nodes(tree)) == {"/", "/a", "/a/b"}
    assert tree.snapshot is None or tree.snapshot.zxid == 0
    assert set(faults(findings)) <= {ZooKeeperFault.NO_SNAPSHOT}


def test_for_a_past_zxid_a_snapshot_is_good_that_says_when_it_was_finished(tmp_path: Path) -> None:
    # F418
    nodes_of_3 = [ROOT._replace(cversion=1, pzxid=2), *OWN, Node(b"/a", b"filled", czxid=2)]
    content = snapshot_bytes(nodes_of_3, last_zxid=3)
    folder = write_data_dir(tmp_path, {3: content}, {1: log_bytes(STORY)})
    tree, findings = replayed(folder, until=4)
    assert tree.snapshot is not None and tree.snapshot.zxid == 3
    assert set(nodes(tree)) == {"/", "/a", "/a/b"}
    assert findings == []


def test_a_snapshot_that_a_past_zxid_has_to_do_with_is_a_finding(tmp_path: Path) -> None:
    # F418: the log before it is missing, and a later change can be seen in it.
    content = snapshot_bytes([ROOT._replace(pzxid=5), *OWN, Node(b"/a", czxid=2, pzxid=5)])
    folder = write_data_dir(tmp_path, {3: content}, {4: log_bytes(STORY[3:])})
    _, findings = replayed(folder, until=4)
    assert faults(findings) == [ZooKeeperFault.FUZZY]


def test_a_gap_ends_the_replay(tmp_path: Path) -> None:
    # F412, F416
    snapshot = snapshot_bytes([ROOT, *OWN])
    log = log_bytes([transaction(1, create("/a", 1)), transaction(3, create("/b", 2))])
    tree, findings = replayed(write_data_dir(tmp_path / "within", {0: snapshot}, {1: log}))
    assert (set(nodes(tree)), faults(findings)) == ({"/", "/a"}, [ZooKeeperFault.GAP])
    late = log_bytes([transaction(2, create("/b", 2))])
    tree, findings = replayed(write_data_dir(tmp_path / "before", {0: snapshot}, {2: late}))
    assert (set(nodes(tree)), faults(findings)) == ({"/"}, [ZooKeeperFault.GAP])
    assert "0x0 and 0x2" in findings[0].detail


def test_the_first_transaction_of_a_later_leader_follows_any(tmp_path: Path) -> None:
    # F412
    first = (1 << 32) + 1
    story = [*STORY, transaction(first, create("/b", 2)), transaction(first + 1, Delete(b"/b"))]
    tree, findings = replayed(write_data_dir(tmp_path, logs={1: log_bytes(story)}))
    assert tree.zxid == first + 1
    assert faults(findings) == [ZooKeeperFault.NO_SNAPSHOT]


def test_entries_that_come_again_are_passed_over(tmp_path: Path) -> None:
    # F412
    logs = {1: log_bytes(STORY), 4: log_bytes([*STORY[3:], transaction(6, create("/c", 2))])}
    tree, findings = replayed(write_data_dir(tmp_path, {0: snapshot_bytes([ROOT])}, logs))
    assert set(nodes(tree)) == {"/", "/a", "/c"}
    assert faults(findings) == [ZooKeeperFault.ORDER, ZooKeeperFault.ORDER]


def test_damage_ends_the_replay_unless_a_snapshot_covers_it(tmp_path: Path) -> None:
    # F411, F416
    content = log_bytes(STORY)
    third = len(log_bytes(STORY[:2]))
    damaged = flipped(content, 8 * (third + 20))
    empty = snapshot_bytes([ROOT, *OWN])
    tree, findings = replayed(write_data_dir(tmp_path / "log", {0: empty}, {1: damaged}))
    assert (tree.zxid, faults(findings)) == (2, [ZooKeeperFault.CHECKSUM])
    assert findings[0].position == third
    covering = snapshot_bytes([ROOT, Node(b"/a", b"filled", czxid=2, cversion=1)])
    both = {0: empty, 3: covering}
    tree, findings = replayed(write_data_dir(tmp_path / "both", both, {1: damaged}))
    assert (tree.zxid, findings) == (5, [])


def test_an_entry_whose_last_letter_is_wrong_does_not_hide_the_next(tmp_path: Path) -> None:
    # F411
    content = log_bytes(STORY)
    second = len(log_bytes(STORY[:2]))
    damaged = flipped(content, 8 * (second - 1))
    covering = {2: snapshot_bytes([ROOT, *OWN, Node(b"/a", cversion=0)])}
    tree, findings = replayed(write_data_dir(tmp_path, covering, {1: damaged}))
    assert (tree.zxid, findings) == (5, [])


def test_a_last_entry_with_another_last_letter_is_damaged(tmp_path: Path) -> None:
    # F411: it was written to its end.
    damaged = flipped(log_bytes(STORY), 8 * len(log_bytes(STORY)) - 1)
    for padding in (b"", bytes(40)):
        folder = tmp_path / str(len(padding))
        tree, findings = replayed(write_data_dir(folder, logs={1: damaged + padding}))
        assert (tree.zxid, faults(findings)) == (
            4,
            [ZooKeeperFault.MALFORMED, ZooKeeperFault.NO_SNAPSHOT],
        )


def test_damage_that_looks_like_many_entries_does_not_hide_the_log(tmp_path: Path) -> None:
    # F411: what follows is not searched to the end, and does not count as a last entry that is cut.
    mark = b"B" + bytes(4) + b"1234" + struct.pack(">i", 60_000)
    first = transaction(1, create("/a", 1, mark * 10_000))
    story = [first, *(transaction(zxid, create(f"/n{zxid}", 1)) for zxid in range(2, 400))]
    damaged = flipped(log_bytes(story), 8 * (16 + 8) + 1)
    _, findings = replayed(write_data_dir(tmp_path, {0: snapshot_bytes([ROOT])}, {1: damaged}))
    assert faults(findings) == [ZooKeeperFault.MALFORMED]
    assert "so much damage follows that the rest is not read" in findings[0].detail


def test_a_torn_last_entry_is_passed_over(tmp_path: Path) -> None:
    # F411: the server goes on with a new file.
    torn = log_bytes(STORY)[:-10] + bytes(40)
    again = log_bytes([transaction(5, create("/z", 2))])
    logs = {1: torn, 5: again}
    tree, findings = replayed(write_data_dir(tmp_path, {0: snapshot_bytes([ROOT])}, logs))
    assert "/z" in nodes(tree)
    assert faults(findings) == [ZooKeeperFault.TRUNCATED]


def test_a_log_in_the_making_has_no_header_yet(tmp_path: Path) -> None:
    logs = {1: log_bytes(STORY), 6: b""}
    tree, findings = replayed(write_data_dir(tmp_path, {0: snapshot_bytes([ROOT])}, logs))
    assert (tree.zxid, faults(findings)) == (5, [ZooKeeperFault.TRUNCATED])


def test_a_snapshot_in_the_making_gives_way_to_the_one_before(tmp_path: Path) -> None:
    # F404, F417
    half = snapshot_bytes([ROOT, *OWN])[:100]
    snapshots = {0: snapshot_bytes([ROOT, *OWN]), 5: half}
    tree, findings = replayed(write_data_dir(tmp_path, snapshots, {1: log_bytes(STORY)}))
    assert tree.snapshot is not None and tree.snapshot.zxid == 0
    assert (tree.zxid, faults(findings)) == (5, [ZooKeeperFault.TRUNCATED])


def test_without_snapshot_and_first_log_there_is_no_tree(tmp_path: Path) -> None:
    # F419
    folder = write_data_dir(tmp_path, logs={4: log_bytes(STORY[3:])})
    with pytest.raises(DataLossError, match="do not begin with the first transaction"):
        replayed(folder)
    both = write_data_dir(tmp_path, {4: snapshot_bytes([ROOT])})
    with pytest.raises(DataLossError, match="the oldest snapshot is of zxid 0x4"):
        replayed(both, until=2)


def test_nodes_that_do_not_follow_their_parent_are_not_a_tree(tmp_path: Path) -> None:
    # F403
    orders: tuple[list[Node], ...] = (
        [Node(b"/a"), ROOT],
        [ROOT, Node(b"/a/b")],
        [ROOT, ROOT],
        [],
        [ROOT, Node(b"a")],
    )
    for number, order in enumerate(orders):
        snapshots = {0: snapshot_bytes([ROOT]), 1: snapshot_bytes(order)}
        tree, findings = replayed(write_data_dir(tmp_path / str(number), snapshots))
        assert (tree.zxid, faults(findings)) == (0, [ZooKeeperFault.MALFORMED])


def test_an_oldest_create_raises_its_parents_cversion_by_one(tmp_path: Path) -> None:
    # F409, F413: before 3.4 the transaction did not have it.
    story = [transaction(1, create("/a", -1)), transaction(2, create("/b", -1))]
    tree, _ = replayed(write_data_dir(tmp_path, logs={1: log_bytes(story)}))
    root = nodes(tree)["/"]
    assert root.cversion == 2 * 2 - root.children


def test_what_is_logged_while_it_is_read_is_left_for_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The nodes that it needs have not been looked for in the snapshot.
    first = snapshot_bytes([ROOT, *OWN, Node(b"/b", cversion=7)])
    folder = write_data_dir(tmp_path, {0: first}, {1: log_bytes(STORY)})
    more = [*STORY, transaction(6, create("/b/c", 8)), transaction(7, Delete(b"/a"))]

    def scan_and_write(*arguments: object) -> SnapshotScan:
        found = scan_snapshot(*arguments)  # type: ignore[arg-type]
        write_data_dir(folder, logs={1: log_bytes(more)})
        return found

    monkeypatch.setattr("kafkalog.zookeeper.replay.scan_snapshot", scan_and_write)
    tree, findings = replayed(folder)
    assert (tree.zxid, findings, set(nodes(tree))) == (5, [], {"/", "/a", "/b"})
