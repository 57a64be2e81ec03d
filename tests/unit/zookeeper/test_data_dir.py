"""Which files a data directory has, and all that is wrong with them (F403, F408, F422)."""

from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.errors import LogDirError
from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.data_dir_check import data_dir_findings
from kafkalog.zookeeper.faults import ZooKeeperFault
from kafkalog.zookeeper.transactions import CreateSession, EntryDigest
from tests.support.repository import Unpack
from tests.support.zookeeper.zookeeper_files import (
    ROOT,
    flipped,
    log_bytes,
    snapshot_bytes,
    transaction,
    write_data_dir,
)

LOG = log_bytes([transaction(1, CreateSession(6000))])
SNAPSHOT = snapshot_bytes([ROOT], last_zxid=0)


def test_files_are_known_by_their_names(tmp_path: Path) -> None:
    # F403, F404, F408
    folder = write_data_dir(tmp_path, {0: SNAPSHOT, 0x1F: SNAPSHOT}, {1: LOG, 0x100000001: LOG})
    version = folder / "version-2"
    for name in ("snapshot.a.gz", "snapshot.b.snappy", "snapshot.c.tmp", "log.x", "acceptedEpoch"):
        (version / name).write_bytes(b"")
    (data_dir,) = find_data_dirs([str(folder)])
    assert [file.zxid for file in data_dir.snapshots] == [0, 0xA, 0xB, 0x1F]
    assert [file.zxid for file in data_dir.logs] == [1, 0x100000001]
    (same,) = find_data_dirs([str(version)])
    assert (same.snapshots, same.logs) == (data_dir.snapshots, data_dir.logs)
    (alone,) = find_data_dirs([str(version / "snapshot.0")])
    assert [file.zxid for file in alone.snapshots] == [0]


def test_a_server_that_is_given_twice_counts_once(tmp_path: Path) -> None:
    # F403
    folder = write_data_dir(tmp_path / "zk", {0: SNAPSHOT}, {1: LOG})
    (tmp_path / "link").symlink_to(folder)
    given = [folder, folder / "version-2", tmp_path / "link"]
    (found,) = find_data_dirs(map(str, given))
    assert found.path == str(folder)


def test_directories_of_snapshots_and_of_logs_given_together_are_one_servers(
    tmp_path: Path,
) -> None:
    data = write_data_dir(tmp_path / "data", {0: SNAPSHOT})
    logs = write_data_dir(tmp_path / "logs", logs={1: LOG})
    other = write_data_dir(tmp_path / "other", {0: SNAPSHOT}, {1: LOG})
    found = find_data_dirs([str(tmp_path / "*")])
    assert [(entry.path, len(entry.snapshots), len(entry.logs)) for entry in found] == [
        (str(other), 1, 1),
        (str(data), 1, 1),
    ]
    assert [entry.path for entry in find_data_dirs([str(logs)])] == [str(logs)]


def test_which_logs_belong_to_which_snapshots_is_not_guessed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_data_dir(tmp_path / name, {0: SNAPSHOT})
    write_data_dir(tmp_path / "logs", logs={1: LOG})
    with pytest.raises(LogDirError, match="one server at a time"):
        find_data_dirs([str(tmp_path / "*")])


def test_a_path_without_zookeepers_files_is_an_error_that_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(LogDirError, match=r"holds no snapshot\.\* and no log\.\*"):
        find_data_dirs([str(tmp_path)])
    with pytest.raises(LogDirError, match="does not exist"):
        find_data_dirs([str(tmp_path / "none")])


@pytest.mark.parametrize("folder", ["zookeeper-live", "zookeeper-after-broker-stop"])
@pytest.mark.parametrize("name", ["kafka08", "kafka010", "kafka39zk"])
def test_nothing_is_wrong_with_real_data_directories(
    name: str, folder: str, unpacked: Unpack
) -> None:
    # F422: of 3.8 this compares the digest after every transaction.
    (data_dir,) = find_data_dirs([str(unpacked(f"{name}.zookeeper") / folder)])
    assert data_dir_findings(data_dir) == []


def test_all_that_is_wrong_is_listed_used_or_not(tmp_path: Path) -> None:
    # F422
    snapshots = {0: SNAPSHOT[:-20], 1: flipped(SNAPSHOT, 8 * 50), 2: SNAPSHOT}
    digests = [transaction(3, CreateSession(1), digest=EntryDigest(2, 77))]
    logs = {1: flipped(LOG, 8 * 40), 3: log_bytes(digests), 5: b"no log of ZooKeeper's"}
    (data_dir,) = find_data_dirs([str(write_data_dir(tmp_path, snapshots, logs))])
    found = [(Path(entry.file).name, entry.fault) for entry in data_dir_findings(data_dir)]
    assert found == [
        ("snapshot.0", ZooKeeperFault.TRUNCATED),
        ("snapshot.1", ZooKeeperFault.SEAL),
        ("log.1", ZooKeeperFault.CHECKSUM),
        ("log.5", ZooKeeperFault.MAGIC),
        ("log.3", ZooKeeperFault.DIGEST),
    ]
    assert [entry.fault.is_damage for entry in data_dir_findings(data_dir)] == [False, *[True] * 4]


def test_what_a_snapshot_stands_for_is_not_damage(tmp_path: Path) -> None:
    # F412: as a follower leaves it that was away for long. The digest after it is checked still.
    later = [transaction(9, CreateSession(1), digest=EntryDigest(2, 77))]
    folder = write_data_dir(tmp_path, {0: SNAPSHOT, 8: SNAPSHOT}, {1: LOG, 9: log_bytes(later)})
    (data_dir,) = find_data_dirs([str(folder)])
    found = [(Path(entry.file).name, entry.fault) for entry in data_dir_findings(data_dir)]
    assert found == [("log.9", ZooKeeperFault.NOT_LOGGED), ("log.9", ZooKeeperFault.DIGEST)]
    without = replace(data_dir, snapshots=data_dir.snapshots[:1])
    assert [entry.fault for entry in data_dir_findings(without)] == [ZooKeeperFault.GAP]
