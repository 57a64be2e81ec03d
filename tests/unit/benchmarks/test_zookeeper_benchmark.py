"""The input of the ZooKeeper benchmark: a sound snapshot with as many nodes as it says."""

from collections import Counter

import pytest

from benchmarks.inputs.zookeeper_inputs import PARTITIONS, Written, write_snapshot
from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.data_dir_check import data_dir_findings
from kafkalog.zookeeper.faults import ZooKeeperFinding
from kafkalog.zookeeper.replay import tree_at
from kafkalog.zookeeper.tree_walk import znode_sizes, znodes

ASKED = 5000


def refuse(finding: ZooKeeperFinding) -> None:
    raise AssertionError(finding)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_snapshot(tmp_path_factory.mktemp("zookeeper"), ASKED)


def test_the_snapshot_is_sound_and_has_the_nodes_that_were_requested(written: Written) -> None:
    (data_dir,) = find_data_dirs([str(written.path)])
    assert data_dir_findings(data_dir) == []
    tree = tree_at(data_dir, None, refuse)
    assert tree.snapshot is not None
    assert tree.snapshot.stored_digest is not None and tree.snapshot.is_end_known
    (root,) = (size for size in znode_sizes(tree) if size.path == "/")
    assert (root.descendants + 1, root.recursive_data_bytes) == (written.nodes, written.data_bytes)
    assert ASKED <= written.nodes < ASKED + 1000


def test_its_paths_are_those_of_a_kafka_cluster(written: Written) -> None:
    (data_dir,) = find_data_dirs([str(written.path)])
    paths = [znode.path for znode in znodes(tree_at(data_dir, None, refuse))]
    assert len(set(paths)) == len(paths)
    tops = Counter(path.split("/")[1] for path in paths if path != "/")
    assert tops["consumers"] > tops["brokers"] > tops["config"] > 1
    states = [path for path in paths if path.endswith("/state")]
    topics = [path for path in paths if path.startswith("/config/topics/")]
    assert len(states) == PARTITIONS * len(topics)


def test_a_second_run_takes_the_snapshot_that_is_there(written: Written) -> None:
    before = written.path.stat().st_mtime_ns
    assert write_snapshot(written.path.parents[2], ASKED) == written
    assert written.path.stat().st_mtime_ns == before
