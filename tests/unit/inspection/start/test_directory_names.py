"""Which names of directories end a broker. Rule: docs/format.md F960."""

from pathlib import Path

import pytest

from kafkalog.inspection.start.directory_names import refused_directories
from kafkalog.inspection.start.node_directories import NodeDirectory
from kafkalog.storage.names import broker_partition_name

ID = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "is_taken"),
    [
        # What a broker of 4.4.0 did: fixtures 01 and 01c, and
        # tests/broker/damage/test_node_start_on_broker.py.
        ("orders-0", True),
        ("backup-2026", True),
        (f"orders-0.{ID}-delete", True),
        (f"orders-0.{ID}-stray", True),
        ("a b-0", True),
        ("orders-00", True),
        ("orders-0.x-future", True),
        ("lost+found", False),
        ("backup", False),
        ("orders-old", False),
        ("orders-", False),
        ("orders-9-delete", False),
        # Integer.parseInt of UnifiedLog.parseTopicPartitionName, in 4.4.0.
        ("-7", False),
        ("orders-2147483648", False),
    ],
)
def test_a_directory_is_a_partition_by_its_name(name: str, is_taken: bool) -> None:
    # F960.
    assert (broker_partition_name(name) is not None) == is_taken


def test_all_refused_directories_come_with_the_line_that_moves_them(tmp_path: Path) -> None:
    # F960: files, the cache of tiered storage and the metadata's directory are not partitions.
    log_dir = tmp_path / "disk2"
    for name in ("orders-0", "lost+found", "old", "remote-log-index-cache"):
        (log_dir / name).mkdir(parents=True)
    (log_dir / "notes").write_text("a file")
    reasons = [*refused_directories(NodeDirectory.read(str(log_dir)))]
    assert [reason.file for reason in reasons] == [f"{log_dir}/lost+found", f"{log_dir}/old"]
    assert reasons[1].what_to_do == f"mv {log_dir}/old {log_dir}.aside.old"
    assert all(reason.ends_process for reason in reasons)
