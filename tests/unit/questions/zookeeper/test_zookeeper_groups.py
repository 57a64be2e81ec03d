"""What is read of ZooKeeper's files for the lag. Rule: F403."""

from pathlib import Path

import pytest

from kafkalog.errors import OptionError
from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperCluster, zookeeper_input
from kafkalog.questions.zookeeper.zookeeper_groups import zookeeper_commits
from kafkalog.storage.log_dir.read_directories import refuse_inside
from kafkalog.zookeeper.transactions import SetData
from tests.support.zookeeper.ensembles import write_ensemble
from tests.support.zookeeper.zookeeper_files import log_bytes, transaction, write_data_dir

OFFSET = "/consumers/g/offsets/t/0"


def test_a_data_log_dir_is_read_with_its_data_dir(tmp_path: Path) -> None:
    # F403: dataLogDir, where the snapshot says 7 and the log 8
    data = write_ensemble(tmp_path / "data", {OFFSET: "7"})
    later = transaction(0x101, SetData(OFFSET.encode(), b"8", 1))
    logs = write_data_dir(tmp_path / "logs", logs={0x101: log_bytes([later])})
    given = zookeeper_input([str(data), str(logs)], "FAILFAST")
    assert given.inputs == (str(data),)
    with pytest.raises(OptionError):
        refuse_inside("--output-dir", str(logs / "tables"), given.paths)
    found = ZookeeperCluster(given, [None])
    assert found.cluster.zxid == 0x101
    (row,) = zookeeper_commits(found, None).to_pylist()
    assert (row["group_id"], row["topic"], row["partition"]) == ("g", "t", 0)
    assert (row["committed_offset"], row["group_state"], row["member_count"]) == (8, "Empty", 0)
    assert OFFSET in found.paths


@pytest.mark.deep
def test_commits_of_other_clusters_in_the_ensemble_are_not_taken(tmp_path: Path) -> None:
    # F431, F467: one at the root, one below it, a group and a topic of the same names.
    data = write_ensemble(tmp_path / "data", {OFFSET: "7", f"/other{OFFSET}": "40"})
    for chroot, committed in (("", 7), ("/other", 40)):
        found = ZookeeperCluster(zookeeper_input([str(data)], "FAILFAST", chroot), [None])
        (row,) = zookeeper_commits(found, None).to_pylist()
        assert row["committed_offset"] == committed
