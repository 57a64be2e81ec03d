"""What the logs say of every path, and of moments (F412, F414, F420, F421)."""

from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.errors import DataLossError
from kafkalog.zookeeper.data_dir import DataDir, find_data_dirs
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding
from kafkalog.zookeeper.history import Change, changes
from kafkalog.zookeeper.moments import zxid_at
from kafkalog.zookeeper.replay import tree_at
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
from kafkalog.zookeeper.tree_walk import shown_path, znodes
from tests.support.repository import Unpack
from tests.support.zookeeper.zookeeper_files import (
    ROOT,
    Node,
    create,
    flipped,
    log_bytes,
    snapshot_bytes,
    transaction,
    write_data_dir,
)

SESSION = 0x1000


def data_dir_of(folder: Path) -> DataDir:
    (data_dir,) = find_data_dirs([str(folder)])
    return data_dir


def told(
    data_dir: DataDir, until: int | None = None
) -> tuple[list[Change], list[ZooKeeperFinding]]:
    findings: list[ZooKeeperFinding] = []
    return list(changes(data_dir, until, findings.append)), findings


def short(change: Change) -> tuple[object, ...]:
    zxid = change.logged.transaction.zxid
    return zxid, change.operation, change.change, change.path, change.version


def test_every_change_of_a_path_has_a_row(tmp_path: Path) -> None:
    story = [
        transaction(1, CreateSession(6000)),
        transaction(2, create("/a", 1, b"one")),
        transaction(3, Failed(-101)),
        transaction(4, Multi((Check(b"/a", 0), SetData(b"/a", b"two", 1), create("/b", 2)))),
        transaction(5, Multi((Delete(b"/b"), Failed(-110)))),
        transaction(6, SetAcl(b"/a", (), 3)),
        transaction(7, Delete(b"/b")),
        transaction(8, CloseSession(())),
    ]
    found, findings = told(data_dir_of(write_data_dir(tmp_path, logs={1: log_bytes(story)})))
    assert findings == []
    assert [short(change) for change in found] == [
        (1, None, "create_session", None, None),
        (2, None, "create", b"/a", 0),
        (4, 1, "set_data", b"/a", 1),
        (4, 2, "create", b"/b", 0),
        (6, None, "set_acl", b"/a", 3),
        (7, None, "delete", b"/b", None),
        (8, None, "close_session", None, None),
    ]
    assert [change.data for change in found[1:4]] == [b"one", b"two", b""]


@pytest.mark.parametrize("name", ["kafka08", "kafka010", "kafka39zk"])
def test_ephemeral_nodes_end_with_their_session_as_in_the_tree(name: str, unpacked: Unpack) -> None:
    # F421: for 3.4 the logs alone do not say it, and the replayed tree is the judge.
    data_dir = data_dir_of(unpacked(f"{name}.zookeeper") / "zookeeper-after-broker-stop")
    found, findings = told(data_dir)
    assert findings == []
    ended: dict[int, set[str]] = {}
    for change in found:
        if change.change == "close_session":
            paths = ended.setdefault(change.logged.transaction.zxid, set())
            paths.update([] if change.path is None else [shown_path(change.path)])
    assert any(ended.values())
    for zxid, paths in ended.items():
        before = tree_at(data_dir, zxid - 1, lambda finding: None)
        (session_id,) = {
            change.logged.transaction.session_id
            for change in found
            if change.logged.transaction.zxid == zxid
        }
        owned = {znode.path for znode in znodes(before) if znode.ephemeral_owner == session_id}
        assert paths == owned


def test_what_logs_that_begin_late_do_not_tell_the_next_snapshot_does(tmp_path: Path) -> None:
    # F421
    snapshot = snapshot_bytes(
        [ROOT, Node(b"/e1", ephemeral_owner=SESSION), Node(b"/e2", ephemeral_owner=SESSION)]
    )
    log = log_bytes(
        [
            transaction(9, CloseSession(None), session_id=7),
            transaction(10, create("/e2", 2, owner=SESSION)),
            transaction(11, Delete(b"/e1")),
            transaction(12, create("/e3", 3, owner=SESSION)),
            transaction(13, CloseSession(None)),
        ]
    )
    folder = write_data_dir(tmp_path, {10: snapshot}, {9: log})
    found, findings = told(data_dir_of(folder))
    assert findings == []
    ended = [(change.logged.transaction.zxid, change.path) for change in found[-3:]]
    assert ended == [(12, b"/e3"), (13, b"/e2"), (13, b"/e3")]


def test_after_what_is_not_logged_the_next_snapshot_tells(tmp_path: Path) -> None:
    # F412, F421: the server took over its leader's tree. /e1 may have been deleted in between.
    snapshot = snapshot_bytes([ROOT, Node(b"/e2", ephemeral_owner=SESSION)])
    first = log_bytes([transaction(1, create("/e1", 1, owner=SESSION))])
    second = log_bytes([transaction(5, CreateSession(1)), transaction(6, CloseSession(None))])
    folder = write_data_dir(tmp_path, {4: snapshot}, {1: first, 5: second})
    found, findings = told(data_dir_of(folder))
    assert [finding.fault for finding in findings] == [ZooKeeperFault.NOT_LOGGED]
    assert [change.path for change in found if change.change == "close_session"] == [b"/e2"]


def test_behind_a_gap_nothing_is_known_until_the_next_snapshot(tmp_path: Path) -> None:
    # F412, F421
    logs = {
        1: log_bytes([transaction(1, create("/e1", 1, owner=SESSION))]),
        5: log_bytes([transaction(5, CreateSession(1)), transaction(6, CloseSession(None))]),
    }
    found, findings = told(data_dir_of(write_data_dir(tmp_path, logs=logs)))
    assert [finding.fault for finding in findings] == [ZooKeeperFault.GAP]
    assert [change.path for change in found if change.change == "close_session"] == [None]


def test_history_goes_on_behind_damage(tmp_path: Path) -> None:
    # F411
    story = [transaction(number, create(f"/n{number}", number)) for number in range(1, 6)]
    begin = len(log_bytes(story[:2]))
    damaged = flipped(log_bytes(story), 8 * (begin + 30))
    found, findings = told(data_dir_of(write_data_dir(tmp_path, logs={1: damaged})))
    assert [change.path for change in found] == [b"/n1", b"/n2", b"/n4", b"/n5"]
    assert [finding.fault for finding in findings] == [ZooKeeperFault.CHECKSUM, ZooKeeperFault.GAP]
    assert findings[0].position == begin


def test_history_ends_with_the_asked_transaction(tmp_path: Path) -> None:
    story = [transaction(number, create(f"/n{number}", number)) for number in range(1, 6)]
    data_dir = data_dir_of(write_data_dir(tmp_path, logs={1: log_bytes(story)}))
    found, _ = told(data_dir, until=2)
    assert [change.path for change in found] == [b"/n1", b"/n2"]


def test_a_moment_comes_after_the_last_transaction_before_it(tmp_path: Path) -> None:
    # F420: the clock of the leader of 4 was behind.
    times = {1: 100, 2: 200, 3: 300, 4: 150, 5: 400}
    story = [
        transaction(zxid, CreateSession(1))._replace(time_ms=time) for zxid, time in times.items()
    ]
    logs = {1: log_bytes(story[:2]), 3: log_bytes(story[2:]), 6: log_bytes([])}
    data_dir = data_dir_of(write_data_dir(tmp_path, logs=logs))
    asked = {time: zxid_at(data_dir, time) for time in (100, 199, 250, 300, 399, 400, 9999)}
    assert asked == {100: 1, 199: 1, 250: 2, 300: 4, 399: 4, 400: 5, 9999: 5}
    with pytest.raises(DataLossError, match="its logs begin at 100"):
        zxid_at(data_dir, 99)
    with pytest.raises(DataLossError, match="no transactions"):
        zxid_at(replace(data_dir, logs=()), 99)


def test_a_moment_is_the_same_in_one_file_and_in_two(tmp_path: Path) -> None:
    # F420: the clock of the leader of 3 and 4 was behind.
    times = {1: 10, 2: 50, 3: 20, 4: 30}
    story = [
        transaction(zxid, CreateSession(1))._replace(time_ms=time) for zxid, time in times.items()
    ]
    one = write_data_dir(tmp_path / "one", logs={1: log_bytes(story)})
    two = write_data_dir(tmp_path / "two", logs={1: log_bytes(story[:2]), 3: log_bytes(story[2:])})
    assert [zxid_at(data_dir_of(folder), 25) for folder in (one, two)] == [1, 1]
