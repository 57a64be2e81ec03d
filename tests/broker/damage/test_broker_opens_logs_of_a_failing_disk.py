"""What salvage reads around the bad pages of a disk is a log directory that a real broker opens and
serves as a whole."""

from pathlib import Path

import pytest

from kafkalog.exit_codes import ExitCode
from tests.support.broker.consumed_rows import ConsumedRow, row_of
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.prepared_cluster import TOPIC, complaints, lines_about, prepared_cluster
from tests.support.disks.failing_disk import FailingDisk, compiled, forked_commands, needs_compiler
from tests.support.disks.outside_pages import records_outside
from tests.support.repository import SHOP

pytestmark = [needs_compiler, pytest.mark.deep]

_LOGS = SHOP
_FIRST = "00000000000000000000.log"
# Pages of the first segment of each partition.
_PAGES = {0: (0, 3, 4), 1: (7,), 2: (2,)}


def test_a_broker_opens_what_was_salvaged_and_a_consumer_receives_every_record_outside_the_pages(
    tmp_path: Path,
) -> None:
    # F77, F78, F180, F181.
    cluster = prepared_cluster(tmp_path / "kafka", len(_PAGES), {"retention.ms": "-1"})
    library, expected = compiled(tmp_path), []
    for partition, pages in _PAGES.items():
        cluster.fill(partition, _LOGS / f"orders-{partition}")
        for path in sorted(cluster.directory(partition).glob("*.log")):
            records = records_outside(path, *(pages if path.name == _FIRST else ()))
            expected += [row_of(partition, record) for record in records]
    target = cluster.work_dir / "salvaged"
    with forked_commands(library) as commands:
        disk = FailingDisk(library, commands)
        for partition, pages in _PAGES.items():
            disk.fail_pages(cluster.directory(partition) / _FIRST, *pages)
        disk.fail_open(cluster.directory(2) / "00000000000000000000.index")
        ended = disk.kafkalog("salvage", cluster.log_dir, "--to", target, "--topic", TOPIC)
    assert ended.returncode == ExitCode.UNREADABLE_INPUT, ended.stderr
    with KafkaServer(cluster.work_dir, target) as server:
        received = server.consume_all(TOPIC)
        text = server.log_text()
    assert sorted(received, key=_place) == sorted(expected, key=_place)
    for partition in _PAGES:
        lines = lines_about(text, partition)
        assert complaints(lines) == []
        assert any("Completed load of" in line for line in lines)


def _place(row: ConsumedRow) -> tuple[int, int]:
    return row.partition, row.offset
