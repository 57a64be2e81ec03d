"""What is kept of a tree is what transactions touch; the rest streams by."""

import tracemalloc
from pathlib import Path

import pytest

from benchmarks.inputs.zookeeper_inputs import ZXID, write_snapshot
from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.faults import ZooKeeperFinding
from kafkalog.zookeeper.replay import tree_at
from kafkalog.zookeeper.tree_walk import znodes
from tests.support.zookeeper.zookeeper_files import create, log_bytes, transaction, write_data_dir

KIBIBYTE = 1 << 10


def refuse(finding: ZooKeeperFinding) -> None:
    raise AssertionError(finding)


def peak_of(folder: Path, count: int) -> int:
    """The most bytes that Python holds while a tree of so many nodes is walked."""
    written = write_snapshot(folder, count)
    log = log_bytes([transaction(ZXID + 1, create("/made", 4))])
    write_data_dir(written.path.parents[1], logs={ZXID + 1: log})
    (data_dir,) = find_data_dirs([str(written.path.parents[1])])
    tracemalloc.start()
    try:
        tree = tree_at(data_dir, None, refuse)
        assert sum(1 for _ in znodes(tree)) > count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_larger_tree_takes_no_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both are many times as long as the window.
    monkeypatch.setattr("kafkalog.zookeeper.snapshot_input.SNAPSHOT_CHUNK_BYTES", 64 * KIBIBYTE)
    small, large = peak_of(tmp_path, 3_000), peak_of(tmp_path, 15_000)
    assert large < small + 64 * KIBIBYTE
