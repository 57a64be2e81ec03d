"""View `clusters`: which clusters a data directory has, and how far it goes. Rule: F485."""

from pathlib import Path
from typing import Any

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster, cluster_of_log_dirs
from kafkalog.inspection.zookeeper.kafka_znodes import cluster_batches
from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.faults import ZooKeeperFinding
from kafkalog.zookeeper.replay import tree_at
from kafkalog.zookeeper.transactions import CloseSession, Delete
from tests.support.zookeeper.clusters import consumer, topic
from tests.support.zookeeper.ensembles import CTIME_MS, SESSION, write_ensemble
from tests.support.zookeeper.zookeeper_files import log_bytes, transaction, write_data_dir

G = "/consumers/g"
TREE = {"/brokers/topics/t": topic(1), f"{G}/ids/a": consumer("t"), f"{G}/offsets/t/0": "7"}


def refuse(finding: ZooKeeperFinding) -> None:
    raise AssertionError(finding)


def clusters(folder: Path) -> list[dict[str, Any]]:
    (data_dir,) = find_data_dirs([str(folder)])
    columns = tuple(arrow_schema("clusters").names)
    batches = cluster_batches(tree_at(data_dir, None, refuse), data_dir.path, columns)
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_member_that_knows_of_deletions_is_newer(tmp_path: Path) -> None:
    # F485: no znode that is left was set by the last transactions
    old, new = (write_ensemble(tmp_path / name, TREE) for name in ("old", "new"))
    deleted = transaction(0x101, Delete(f"{G}/offsets/t/0".encode()))
    gone = transaction(0x102, CloseSession(None), session_id=SESSION)
    write_data_dir(new, logs={0x101: log_bytes([deleted, gone])})
    found = [row for folder in (new, old) for row in clusters(folder)]
    made = f"0x3 {CTIME_MS}"
    assert [list(row.values()) for row in found] == [
        [str(new), None, "", made, 0x102],
        [str(old), None, "", made, 0x100],
    ]
    members = [EnsembleCluster(**row) for row in found]
    assert cluster_of_log_dirs(members, [None], allow_unknown=True) is members[0]


def test_clusters_without_offsets_and_topics_are_there_too(tmp_path: Path) -> None:
    # F431, F485
    tree = {**TREE, "/two/brokers/ids/0": "one:9092", "/two/cluster/id": '{"version":"1","id":"2"}'}
    found = clusters(write_ensemble(tmp_path, tree))
    assert [(row["chroot"], row["cluster_id"]) for row in found] == [("", None), ("/two", "2")]
