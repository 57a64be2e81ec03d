"""When the digests in logs and snapshots are compared with the tree. F405 to F407."""

from pathlib import Path

from kafkalog.zookeeper.digest import DIGEST_MASK
from kafkalog.zookeeper.faults import ZooKeeperFault
from kafkalog.zookeeper.snapshot import TreeDigest
from kafkalog.zookeeper.transactions import CreateSession, Delete, EntryDigest, Transaction
from kafkalog.zookeeper.tree import empty_tree
from tests.support.zookeeper.zookeeper_files import (
    ROOT,
    Node,
    create,
    faults,
    log_bytes,
    replayed,
    snapshot_bytes,
    transaction,
    write_data_dir,
)

SESSION = 0x1000


def digest_of_empty_tree() -> int:
    return sum(node.digest(path) for path, node in empty_tree(with_config=True).items())


def test_a_digest_that_is_not_the_trees_is_a_finding(tmp_path: Path) -> None:
    # F406: a transaction that did not reach the disk changes all digests after it.
    right = EntryDigest(2, digest_of_empty_tree() & DIGEST_MASK)
    wrong = EntryDigest(2, right.tree_digest + 1)
    other = EntryDigest(3, 77)  # of an unknown version
    story = [
        Transaction(SESSION, 1, 1, 1, CreateSession(1), right),
        Transaction(SESSION, 2, 2, 1, CreateSession(1), other),
        Transaction(SESSION, 3, 3, 1, CreateSession(1), wrong),
        Transaction(SESSION, 4, 4, 1, CreateSession(1), wrong),
    ]
    _, findings = replayed(write_data_dir(tmp_path, logs={1: log_bytes(story)}))
    assert faults(findings) == [ZooKeeperFault.NO_SNAPSHOT, ZooKeeperFault.DIGEST]
    assert "0x3" in findings[1].detail


def test_digests_are_not_compared_where_a_snapshot_does_not_say_how_fuzzy_it_is(
    tmp_path: Path,
) -> None:
    # F407: it lacks /e, which was deleted while it was written; 5 is what it shows of that time.
    snapshot = snapshot_bytes([ROOT._replace(pzxid=3), Node(b"/a", pzxid=5)])
    story = [
        transaction(4, create("/a/b", 1), digest=EntryDigest(2, 1)),
        transaction(5, Delete(b"/a/b"), digest=EntryDigest(2, 2)),
        transaction(6, Delete(b"/e"), digest=EntryDigest(2, 3)),
    ]
    _, findings = replayed(write_data_dir(tmp_path, {3: snapshot}, {4: log_bytes(story)}))
    assert findings == []


def test_a_digest_that_is_not_the_snapshots_is_damage(tmp_path: Path) -> None:
    # F405, F406, F417: every seal is right.
    content = snapshot_bytes([ROOT, Node(b"/a")], digest=TreeDigest(7, 2, 99))
    good = snapshot_bytes([ROOT], digest=TreeDigest(0, 2, 0))
    folder = write_data_dir(tmp_path, {0: good, 7: content})
    tree, findings = replayed(folder)
    assert (tree.zxid, faults(findings)) == (0, [ZooKeeperFault.DIGEST])


def test_a_digest_from_before_a_node_of_the_next_transaction_is_not_compared(
    tmp_path: Path,
) -> None:
    # F407: a server has carried a transaction out before it notes the digest; its log has both.
    nodes = [ROOT, Node(b"/a", czxid=8, mzxid=8, pzxid=8)]
    content = snapshot_bytes(nodes, digest=TreeDigest(7, 2, 99))
    tree, findings = replayed(
        write_data_dir(tmp_path, {7: content}, {8: log_bytes([transaction(8, create("/a", 1))])})
    )
    assert (tree.zxid, findings) == (8, [])
