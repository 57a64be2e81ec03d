"""Commits to ZooKeeper from files that are damaged or incomplete. Rules: F411, F412, F490, F491."""

from pathlib import Path

import pytest

from kafkalog.columns.table_rows import TableRow
from kafkalog.errors import CorruptDataError
from kafkalog.inspection.zookeeper.zookeeper_commits import commit_rows
from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding
from kafkalog.zookeeper.transactions import SetData, Transaction
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

ABOVE = ["/consumers", "/consumers/g", "/consumers/g/offsets", "/consumers/g/offsets/t"]
OFFSET = "/consumers/g/offsets/t/0"


def committed(zxid: int) -> Transaction:
    return transaction(zxid, SetData(OFFSET.encode(), b"%d" % zxid, zxid))


def begun() -> list[Transaction]:
    """Zxid 1 to 5: the directories, and a first commit of 0."""
    made = [create(path, 1) for path in ABOVE] + [create(OFFSET, 1, b"0")]
    return [transaction(zxid, each) for zxid, each in enumerate(made, start=1)]


def snapshot(zxid: int, data: bytes | None) -> bytes:
    """The tree with an offset, last committed at a zxid, or without."""
    nodes = [ROOT, *(Node(path.encode()) for path in ABOVE)]
    if data is not None:
        nodes.append(Node(OFFSET.encode(), data, mzxid=zxid, mtime_ms=1_000_000 + zxid))
    return snapshot_bytes(nodes)


def read(folder: Path) -> tuple[list[TableRow], list[ZooKeeperFinding]]:
    (data_dir,) = find_data_dirs([str(folder)])
    findings: list[ZooKeeperFinding] = []
    return list(commit_rows(data_dir, None, b"", findings.append)), findings


def zxids(rows: list[TableRow]) -> list[object]:
    return [row["record_offset"] for row in rows]


def failfast(finding: ZooKeeperFinding) -> None:
    if finding.fault.is_damage:
        raise finding.error("")


def refused(folder: Path) -> str:
    (data_dir,) = find_data_dirs([str(folder)])
    with pytest.raises(CorruptDataError) as caught:
        list(commit_rows(data_dir, None, b"", failfast))
    return str(caught.value)


def test_damage_before_the_newest_snapshot_is_reported_once(tmp_path: Path) -> None:
    # F411, F491: the commits of 7 and 12 are lost, that of 12 behind the snapshot as well
    story = [*begun(), *map(committed, range(6, 9))]
    old = flipped(log_bytes(story), 8 * (len(log_bytes(story[:6])) + 30))
    later = [committed(zxid) for zxid in range(10, 14)]
    new = flipped(log_bytes(later), 8 * (len(log_bytes(later[:2])) + 30))
    logs = {1: old, 9: log_bytes([committed(9)]), 10: new}
    folder = write_data_dir(tmp_path, {9: snapshot(9, b"9")}, logs)
    rows, findings = read(folder)
    assert zxids(rows) == [5, 6, 8, 9, 10, 11, 13]
    expected = [
        (ZooKeeperFault.CHECKSUM, "log.a"),
        (ZooKeeperFault.CHECKSUM, "log.1"),
        (ZooKeeperFault.GAP, "log.1"),
    ]
    expected.append((ZooKeeperFault.GAP, "log.a"))
    assert [(each.fault, Path(each.file).name) for each in findings] == expected
    assert "checksum" in refused(folder)


def test_a_log_that_is_missing_before_the_newest_snapshot_is_reported(tmp_path: Path) -> None:
    # F412, F491
    logs = {1: log_bytes(begun()), 9: log_bytes([committed(9), committed(10)])}
    folder = write_data_dir(tmp_path, {10: snapshot(10, b"10")}, logs)
    rows, findings = read(folder)
    assert zxids(rows) == [5, 9, 10]
    assert [each.fault for each in findings] == [ZooKeeperFault.GAP]
    assert "0x5 and 0x9" in refused(folder)


def test_for_a_damaged_oldest_snapshot_the_next_one_is_taken(tmp_path: Path) -> None:
    # F491
    logs = {4: log_bytes([committed(zxid) for zxid in range(4, 10)])}
    damaged = flipped(snapshot(3, b"3"), 8 * 40)
    folder = write_data_dir(tmp_path, {3: damaged, 6: snapshot(6, b"6")}, logs)
    rows, findings = read(folder)
    assert sorted(map(int, map(str, zxids(rows)))) == [4, 5, 6, 7, 8, 9]
    assert [Path(each.file).name for each in findings] == ["snapshot.3"]
    assert "snapshot.3" in refused(folder)


def test_a_deletion_that_a_gap_hides_is_no_older_than_the_last_write(tmp_path: Path) -> None:
    # F490, F491: partition 0 was deleted between 6 and 9, partition 1 last written at 9
    other = OFFSET[:-1] + "1"
    logs = {
        1: log_bytes([*begun(), transaction(6, create(other, 2, b"1"))]),
        9: log_bytes([transaction(9, SetData(other.encode(), b"9", 1))]),
    }
    nodes = [ROOT, *(Node(path.encode()) for path in ABOVE)]
    nodes.append(Node(other.encode(), b"1", mzxid=6, mtime_ms=1_000_006))
    folder = write_data_dir(tmp_path, {8: snapshot_bytes(nodes)}, logs)
    rows, findings = read(folder)
    assert [each.fault for each in findings] == [ZooKeeperFault.NOT_LOGGED]
    last = rows[-1]
    assert (last["partition"], last["is_tombstone"], last["record_offset"]) == (0, True, 9)
    assert last["record_timestamp_ms"] == 1_000_009
