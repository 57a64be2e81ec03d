"""The audit's rows from snapshots and logs that were made for them. Rules: F431, F436, F449, F461,
F468."""

from pathlib import Path
from typing import Any

import pytest

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.inspection.zookeeper.consumer_audit_rows import audit_rows
from kafkalog.inspection.zookeeper.kafka_znodes import directory_batches
from kafkalog.inspection.zookeeper.ownership_rows import znode_changes
from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.faults import ZooKeeperFinding
from kafkalog.zookeeper.replay import tree_at
from kafkalog.zookeeper.transactions import CloseSession, Delete, Transaction
from tests.support.zookeeper.clusters import consumer, topic
from tests.support.zookeeper.ensembles import CTIME_MS, SESSION, write_ensemble
from tests.support.zookeeper.zookeeper_files import (
    ROOT,
    Node,
    create,
    log_bytes,
    snapshot_bytes,
    transaction,
    write_data_dir,
)

G = "/consumers/g"
OTHER = 0x2000
TREE = {
    "/brokers/ids/0": "one:9092",
    "/brokers/topics/t": topic(1),
    f"{G}/ids/a": consumer("t"),
    f"{G}/owners/t/0": "a-0",
}


def refuse(finding: ZooKeeperFinding) -> None:
    raise AssertionError(finding)


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    (data_dir,) = find_data_dirs([str(folder)])
    return [
        {name: value for name, value in row.values.items() if value is not None}
        for row in audit_rows(data_dir, (), refuse)
        if row.table == table and row.values
    ]


def with_log(folder: Path, *transactions: Transaction) -> Path:
    """The ensemble of TREE as of zxid 0x100, and what happened then."""
    write_ensemble(folder, TREE)
    return write_data_dir(folder, logs={0x101: log_bytes(transactions)})


def test_what_a_snapshot_has_is_claimed_at_no_known_time(tmp_path: Path) -> None:
    # F449, F461: b joins, a releases and b claims; then b's session ends
    folder = with_log(
        tmp_path,
        transaction(
            0x101, create(f"{G}/ids/b", 2, consumer("t").encode(), OTHER), session_id=OTHER
        ),
        transaction(0x102, Delete(f"{G}/owners/t/0".encode())),
        transaction(0x103, create(f"{G}/owners/t/0", 2, b"b-0", OTHER), session_id=OTHER),
        transaction(0x104, CloseSession(None), session_id=OTHER),
    )
    assert rows(folder, "ownership_history") == [
        {
            "group_id": "g",
            "topic": "t",
            "partition": 0,
            "owner": "a-0",
            "owner_session_id": SESSION,
            "released_zxid": 0x102,
            "released_ms": 1_000_000 + 0x102,
            "release": "released",
            "release_cause": "member_joined",
            "release_cause_name": "b",
            "release_cause_ms": 1_000_000 + 0x101,
        },
        {
            "group_id": "g",
            "topic": "t",
            "partition": 0,
            "owner": "b-0",
            "owner_session_id": OTHER,
            "claimed_zxid": 0x103,
            "claimed_ms": 1_000_000 + 0x103,
            "unowned_ms": 1,
            "claim_cause": "member_joined",
            "claim_cause_name": "b",
            "claim_cause_ms": 1_000_000 + 0x101,
            "released_zxid": 0x104,
            "released_ms": 1_000_000 + 0x104,
            "release": "session_end",
        },
    ]
    assert [row["finding"] for row in rows(folder, "consumer_findings")] == [
        "partition_without_owner"
    ]


def held(folder: Path) -> list[tuple[object, ...]]:
    """Owner, claim and release of each row of the history."""
    names = ("owner", "claimed_zxid", "released_zxid", "release")
    (data_dir,) = find_data_dirs([str(folder)])
    return [
        tuple(row.values.get(name) for name in names)
        for row in audit_rows(data_dir, (), lambda finding: None)
        if row.table == "ownership_history"
    ]


OWNER = f"{G}/owners/t/0"
UNOWNED = {path: data for path, data in TREE.items() if path != OWNER}


def claim(zxid: int, owner: str, session_id: int = SESSION) -> Transaction:
    return transaction(zxid, create(OWNER, 2, owner.encode(), session_id), session_id=session_id)


def test_what_ended_before_a_server_took_over_a_snapshot_is_not_held(tmp_path: Path) -> None:
    # F412, F449: claimed at 2; snapshot.20 has no owner, and log.21 follows it
    write_ensemble(tmp_path, UNOWNED, zxid=0x20)
    begin = [transaction(1, create("/consumers", 1)), claim(2, "a-0")]
    logs = {1: log_bytes(begin), 0x21: log_bytes([transaction(0x21, create("/x", 1))])}
    write_data_dir(tmp_path, logs=logs)
    assert held(tmp_path) == [("a-0", 2, None, "not_logged")]


def test_what_a_gap_hides_at_the_end_the_tree_tells(tmp_path: Path) -> None:
    # F412, F449: the server took over snapshot.20, and logged nothing since
    write_ensemble(tmp_path, TREE, zxid=0x20)
    begin = [transaction(1, create("/consumers", 1)), claim(2, "b-0", OTHER)]
    write_data_dir(tmp_path, logs={1: log_bytes(begin)})
    assert held(tmp_path) == [("b-0", 2, None, "not_logged"), ("a-0", None, None, None)]


def test_a_claim_that_the_same_consumer_made_again_is_another(tmp_path: Path) -> None:
    # F412, F449: the znode of snapshot.20 is not the one of zxid 2
    write_ensemble(tmp_path, TREE, zxid=0x20)
    begin = [transaction(1, create("/consumers", 1)), claim(2, "a-0")]
    release = transaction(0x21, Delete(OWNER.encode()))
    write_data_dir(tmp_path, logs={1: log_bytes(begin), 0x21: log_bytes([release])})
    assert held(tmp_path) == [("a-0", 2, None, "not_logged"), ("a-0", None, 0x21, "released")]


@pytest.mark.parametrize("is_early", [False, True])
def test_what_a_fuzzy_snapshot_has_too_early_the_logs_tell(tmp_path: Path, is_early: bool) -> None:
    # F407, F412: written until zxid 9 or 10, it lacks what 9 deletes, or has what 10 makes
    above = ["/consumers", G, f"{G}/owners", f"{G}/owners/t"]
    nodes = [ROOT, *(Node(path.encode()) for path in above)]
    if is_early:
        nodes.append(Node(OWNER.encode(), b"b-0", czxid=10, mzxid=10, ephemeral_owner=OTHER))
    later = [transaction(9, Delete(OWNER.encode())), claim(10, "b-0", OTHER)]
    logs = {1: log_bytes([claim(1, "a-0")]), 9: log_bytes(later)}
    snapshot = snapshot_bytes(nodes, last_zxid=10 if is_early else 9)
    (data_dir,) = find_data_dirs([str(write_data_dir(tmp_path, {8: snapshot}, logs))])
    tree = tree_at(data_dir, None, refuse)
    changes = znode_changes(data_dir, tree, lambda finding: None)
    told = [(each.zxid, each.change) for each in changes if each.path == OWNER]
    assert told == [(1, "create"), (9, "delete"), (10, "create")]


def test_logs_that_begin_before_the_oldest_snapshot_are_reported(tmp_path: Path) -> None:
    # F449: claimed at 0x10, released at 0x11, and snapshot.12 follows
    write_ensemble(tmp_path, UNOWNED, zxid=0x12)
    story = [claim(0x10, "a-0"), transaction(0x11, Delete(OWNER.encode()))]
    write_data_dir(tmp_path, logs={0x10: log_bytes(story)})
    assert held(tmp_path) == [("a-0", 0x10, 0x11, "released")]


def test_logs_that_begin_with_a_leader_follow_the_snapshot_before(tmp_path: Path) -> None:
    # F412: the first transaction of an epoch follows the last of any before
    epoch = 5 << 32
    write_ensemble(tmp_path, TREE, zxid=epoch - 100)
    story = [transaction(epoch + 1, Delete(OWNER.encode())), claim(epoch + 2, "b-0", OTHER)]
    write_data_dir(tmp_path, logs={epoch + 1: log_bytes(story)})
    assert held(tmp_path) == [("a-0", None, epoch + 1, "released"), ("b-0", epoch + 2, None, None)]


def test_a_damaged_oldest_snapshot_gives_way_to_the_next(tmp_path: Path) -> None:
    # F417
    write_ensemble(tmp_path, TREE, zxid=0x20)
    damaged = tmp_path / "version-2" / "snapshot.20"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    write_ensemble(tmp_path, TREE, zxid=0x30)
    write_data_dir(tmp_path, logs={0x31: log_bytes([transaction(0x31, Delete(OWNER.encode()))])})
    assert held(tmp_path) == [("a-0", None, 0x31, "released")]


def test_an_id_in_two_places_is_told_apart_from_one_that_moved(tmp_path: Path) -> None:
    # F436, F468
    leave, come = Delete(b"/brokers/ids/0"), create("/brokers/ids/0", 2, b"two:9092", OTHER)
    moved = with_log(tmp_path / "moved", transaction(0x101, leave), transaction(0x102, come))
    assert rows(moved, "consumer_findings") == [
        {
            "finding": "broker_moved",
            "broker_id": 0,
            "detail": "broker 0 was at one:9092, then two:9092",
        }
    ]
    back = create("/brokers/ids/0", 3, b"one:9092", OTHER)
    both = with_log(
        tmp_path / "both",
        transaction(0x101, leave),
        transaction(0x102, come),
        transaction(0x103, leave),
        transaction(0x104, back),
    )
    assert [row["finding"] for row in rows(both, "consumer_findings")] == [
        "broker_id_went_back_and_forth"
    ]


def test_views_say_which_cluster_a_znode_is_of(tmp_path: Path) -> None:
    # F431: two in one ensemble, and znodes of neither
    second = {f"/k/two{path}": data for path, data in TREE.items()}
    tree = {
        **TREE,
        **second,
        "/k/two/cluster/id": '{"version":"1","id":"second"}',
        "/k/two/config/topics/t": '{"version":1,"config":{"retention.ms":"1"}}',
        "/else/consumers.bak/g/offsets/t/0": "1",
    }
    (data_dir,) = find_data_dirs([str(write_ensemble(tmp_path, tree))])
    found = tree_at(data_dir, None, refuse)

    def view(name: str, subtree: bytes = b"") -> list[dict[str, Any]]:
        columns = tuple(arrow_schema(name).names)
        batches = directory_batches(found, subtree, name, data_dir.path, columns)
        return [row for batch in batches for row in batch.to_pylist()]

    owners = sorted(view("partition_owners"), key=lambda row: row["path"])
    assert [(row["path"], row["chroot"], row["cluster_id"], row["owner"]) for row in owners] == [
        (f"{G}/owners/t/0", "", None, "a-0"),
        (f"/k/two{G}/owners/t/0", "/k/two", "second", "a-0"),
    ]
    assert {row["input_path"] for row in owners} == {str(tmp_path)}
    assert {(row["ctime_ms"], row["ephemeral_owner"]) for row in owners} == {(CTIME_MS, SESSION)}
    assert [row["chroot"] for row in view("partition_owners", b"/k")] == ["/k/two"]
    settings = [row["settings"] for row in view("cluster_znodes") if row["kind"] == "config"]
    assert settings == [[("retention.ms", "1")]]
    (data_dir,) = find_data_dirs([str(tmp_path)])
    assert {row.place.chroot for row in audit_rows(data_dir, (), refuse)} == {"", "/k/two"}
