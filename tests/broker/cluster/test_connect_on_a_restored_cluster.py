"""Connect's Iceberg sink, which keeps offsets in its groups and in the table, goes on with what
`kafkalog restore` made of the disk of its cluster: F1045 of docs/restore.md."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.broker.cluster.lost_cluster import Lost
from tests.support.broker.iceberg_sink import CONTROL_TOPIC, IcebergSink

pytestmark = pytest.mark.deep

WAIT_SECONDS = 90
TOPIC = "rows"


@pytest.fixture
def lost(unpacked: Callable[[str], Path], tmp_path: Path) -> Iterator[Lost]:
    disks = sorted(map(str, (unpacked("restore44.logs") / "snapshots").glob("*/data")))
    cluster = Lost(disks, tmp_path)
    yield cluster
    cluster.stop()


def produce(bootstrap: str, *numbers: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in numbers:
        producer.produce(TOPIC, json.dumps({"n": number}))
    assert producer.flush(WAIT_SECONDS) == 0


def numbers_up_to(last: int, bootstrap: str, home: Path) -> list[object]:
    """The numbers in the table once the sink has written the last one."""
    with IcebergSink(bootstrap, TOPIC, home) as sink:
        return sorted(row["n"] for row in sink.rows_with({"n": last}, WAIT_SECONDS))  # type: ignore[type-var]


def test_the_sink_writes_each_new_record_once(lost: Lost, tmp_path: Path) -> None:
    """It has written records that are from beyond the copy."""
    admin = AdminClient({"bootstrap.servers": lost.bootstrap})
    for made in admin.create_topics(
        [NewTopic(TOPIC, 1, 1), NewTopic(CONTROL_TOPIC, 1, 1)]
    ).values():
        made.result()
    home = tmp_path / "connect"
    produce(lost.bootstrap, 1, 2)
    assert numbers_up_to(2, lost.bootstrap, home) == [1, 2]
    lost.copy()
    produce(lost.bootstrap, 3, 4)
    assert numbers_up_to(4, lost.bootstrap, home) == [1, 2, 3, 4]
    with lost.replaced() as node:
        produce(node.bootstrap, 5, 6, 7)
        assert numbers_up_to(7, node.bootstrap, home) == [1, 2, 3, 4, 5, 6, 7]
