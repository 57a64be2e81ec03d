"""Connect's Iceberg sink, which keeps offsets in its groups and in the table, goes on with what
`kafkalog restore` made of the disk of its cluster: F1045 of docs/restore.md."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.broker.cluster.lost_cluster import Lost
from tests.support.broker.iceberg_sink import CONTROL_TOPIC, IcebergSink

pytestmark = pytest.mark.deep

WAIT_SECONDS = 90
TOPIC = "rows"
# Of some commits of the sink.
COMMIT_SECONDS = 10


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


def wait_for_commit(bootstrap: str, offset: int) -> None:
    """Wait until the sink's group has committed an offset of its topic."""
    place = TopicPartition(TOPIC, 0)
    group = ConsumerGroupTopicPartitions("connect-iceberg", [place])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        (found,) = admin.list_consumer_group_offsets([group]).values()
        (committed,) = found.result().topic_partitions
        if committed.offset >= offset:
            return
        assert time.monotonic() < deadline, committed
        time.sleep(0.5)


@pytest.fixture
def beyond(lost: Lost, tmp_path: Path) -> Path:
    """The directory of a sink that has written records from beyond the copy of the disk."""
    admin = AdminClient({"bootstrap.servers": lost.bootstrap})
    topics = [NewTopic(name, 1, 1) for name in (TOPIC, CONTROL_TOPIC)]
    for made in admin.create_topics(topics).values():
        made.result()
    home = tmp_path / "connect"
    produce(lost.bootstrap, 1, 2)
    assert numbers_up_to(2, lost.bootstrap, home) == [1, 2]
    lost.copy()
    produce(lost.bootstrap, 3, 4)
    assert numbers_up_to(4, lost.bootstrap, home) == [1, 2, 3, 4]
    return home


def test_the_sink_writes_each_new_record_once(lost: Lost, beyond: Path) -> None:
    with lost.replaced() as node:
        produce(node.bootstrap, 5, 6, 7)
        assert numbers_up_to(7, node.bootstrap, beyond) == [1, 2, 3, 4, 5, 6, 7]


def test_without_a_gap_the_sink_drops_new_records(lost: Lost, beyond: Path) -> None:
    """The table has offsets of the sink's own topic from beyond the copy: what this topic says of
    new files is taken for what was committed before."""
    with lost.replaced("--reuse-offsets") as node:
        produce(node.bootstrap, 5, 6, 7)
        with IcebergSink(node.bootstrap, TOPIC, beyond) as sink:
            wait_for_commit(node.bootstrap, 5)
            time.sleep(COMMIT_SECONDS)
            assert sorted(row["n"] for row in sink.rows()) == [1, 2, 3, 4]  # type: ignore[type-var]
