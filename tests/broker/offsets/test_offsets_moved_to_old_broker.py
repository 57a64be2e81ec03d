"""A broker 0.10.2.2 goes on with its own logs and its own ZooKeeper, and finds the offsets that
were moved to it: the fixture's cluster, migrated.
"""

import shutil
import time
from pathlib import Path

import pytest

from kafkalog.coordination.groups.commit_status import offsets_partition_of
from kafkalog.inspection.groups.offset_segments import end_to_go_on_from, write_commits
from kafkalog.messages.commit_records import COMMIT_FORMS, GroupCommit
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.broker.old_broker import old_broker
from tests.support.broker.zookeeper_server import running, write_settings
from tests.support.free_ports import free_ports
from tests.support.repository import Unpack

pytestmark = pytest.mark.deep

GROUP, GONE = "old.g-old-zk", "old.g-old-gone"
# By ConsumerOffsetChecker, while the broker ran.
OFFSETS = {
    ("old.codec-none", 0): 150,
    ("old.multi-3", 0): 0,
    ("old.multi-3", 1): 150,
    ("old.multi-3", 2): 150,
}
_PARTITIONS = 3
_RETENTION_MINUTES = 60
_SETTINGS = {
    "offsets.retention.minutes": _RETENTION_MINUTES,
    "offsets.retention.check.interval.ms": 500,
}


def move(log_dir: Path, target: Path, group: str, commits: list[GroupCommit]) -> None:
    partition = offsets_partition_of(group, _PARTITIONS)
    logs = find_partitions([str(log_dir)])
    own = [log for log in logs if log.name == f"__consumer_offsets-{partition}"]
    now_ms = time.time_ns() // 1_000_000
    form = COMMIT_FORMS["0.10"]
    end = end_to_go_on_from(own)
    write_commits(str(target), partition, end, commits, form, now_ms=now_ms)
    shutil.copytree(target, log_dir, dirs_exist_ok=True)


def test_the_fixtures_own_broker_loads_what_was_moved_and_drops_what_is_too_old(
    unpacked: Unpack, tmp_path: Path
) -> None:
    # F479, F480, F482, F483
    (offsets,) = unpacked("kafka010.logs").rglob("__consumer_offsets-0")
    log_dir = Path(shutil.copytree(offsets.parent, tmp_path / "logs"))
    data_dir = unpacked("kafka010.zookeeper") / "zookeeper-after-broker-stop"
    shutil.copytree(data_dir, tmp_path / "zookeeper" / "data")
    now_ms = time.time_ns() // 1_000_000
    held = [GroupCommit(GROUP, *place, offset, now_ms) for place, offset in OFFSETS.items()]
    move(log_dir, tmp_path / "held", GROUP, held)
    too_old_ms = now_ms - (_RETENTION_MINUTES + 1) * 60_000
    move(log_dir, tmp_path / "old", GONE, [GroupCommit(GONE, "old.codec-lz4", 0, 77, too_old_ms)])
    (port,) = free_ports(1)
    write_settings(tmp_path / "zookeeper", port)
    with (
        running(tmp_path / "zookeeper", {}, port),
        old_broker(tmp_path / "kafka", log_dir, port, _SETTINGS) as broker,
    ):
        for partition in range(_PARTITIONS):
            broker.wait_for(f"Finished loading offsets from __consumer_offsets-{partition}")
        broker.wait_for("Removed [1-9][0-9]* expired offsets")
        assert broker.described(GROUP) == OFFSETS
        assert broker.described(GONE) == {}
