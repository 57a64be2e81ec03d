"""What is read of ZooKeeper's files for the lag. Rule: F403."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.errors import OptionError
from kafkalog.questions.zookeeper.zookeeper_cluster import zookeeper_input
from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperLag
from kafkalog.storage.log_dir.read_directories import refuse_inside
from kafkalog.zookeeper.transactions import SetData
from tests.support.zookeeper.ensembles import write_ensemble
from tests.support.zookeeper.zookeeper_files import log_bytes, transaction, write_data_dir

OFFSET = "/consumers/g/offsets/t/0"


def test_a_data_log_dir_is_read_with_its_data_dir(spark: SparkSession, tmp_path: Path) -> None:
    # F403: dataLogDir, where the snapshot says 7 and the log 8
    data = write_ensemble(tmp_path / "data", {OFFSET: "7"})
    later = transaction(0x101, SetData(OFFSET.encode(), b"8", 1))
    logs = write_data_dir(tmp_path / "logs", logs={0x101: log_bytes([later])})
    given = zookeeper_input([str(data), str(logs)], "FAILFAST")
    assert given.inputs == (str(data),)
    with pytest.raises(OptionError):
        refuse_inside("--output-dir", str(logs / "tables"), given.paths)
    found = ZookeeperLag(spark, given, [None])
    assert found.cluster.zxid == 0x101
    (row,) = found.view("consumer_offsets").collect()
    assert row.committed_offset == 8
    assert OFFSET in {row.path for row in found.paths().collect()}
    assert len(found.complete_from().collect()) == 1


@pytest.mark.deep
def test_commits_of_other_clusters_in_the_ensemble_are_not_taken(
    spark: SparkSession, tmp_path: Path
) -> None:
    # F431, F467: one at the root, one below it, a group and a topic of the same names.
    data = write_ensemble(tmp_path / "data", {OFFSET: "7", f"/other{OFFSET}": "40"})
    for chroot, committed in (("", 7), ("/other", 40)):
        found = ZookeeperLag(spark, zookeeper_input([str(data)], "FAILFAST", chroot), [None])
        (row,) = found.commits().collect()
        assert row.committed_offset == committed
        (row,) = found.view("consumer_offsets").collect()
        assert row.committed_offset == committed
