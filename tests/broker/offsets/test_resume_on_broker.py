"""Consumers continue where `kafkalog groups --resume` says: F1235 and F1236."""

import shutil
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from tests.support.broker.kafka_server import KafkaServer
from tests.support.golden.resumed_groups import resumes
from tests.support.repository import Unpack

pytestmark = [pytest.mark.deep, pytest.mark.timeout(600)]

TOPIC = "orders"
GROUPS = ("lost", "steady", "two", "behind", "ahead", "rewound")
_METADATA = "__cluster_metadata-0"
_WITHIN_SECONDS = 30


@pytest.fixture(scope="module")
def server(unpacked: Unpack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A broker that starts with the log directory."""
    folder = tmp_path_factory.mktemp("resume")
    log_dir = folder / "log-dirs"
    shutil.copytree(unpacked("positions44.logs") / "log-dirs", log_dir)
    (folder / "server" / "metadata").mkdir(parents=True)
    shutil.move(log_dir / _METADATA, folder / "server" / "metadata" / _METADATA)
    with KafkaServer(folder / "server", log_dir) as running:
        yield running


def first_offset(server: KafkaServer, group: str, reset: str) -> int | None:
    """The offset of the first record that a consumer gets which starts now, if need be of one that
    is written once it waits; None if it ends with an error. It commits nothing."""
    settings = {
        "bootstrap.servers": server.bootstrap,
        "group.id": group,
        "auto.offset.reset": "error" if reset == "none" else reset,
        "enable.auto.commit": False,
    }
    written = 0
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe([TOPIC])
        began = time.monotonic()
        while time.monotonic() < began + _WITHIN_SECONDS:
            message = consumer.poll(1)
            error = None if message is None else message.error()
            if error is not None:
                assert error.code() == KafkaError._AUTO_OFFSET_RESET
                return None
            if message is not None:
                return message.offset()
            if time.monotonic() > began + 5 and not written:
                written = 1
                producer = Producer({"bootstrap.servers": server.bootstrap})
                producer.produce(TOPIC, value=b"another")
                producer.flush()
    raise AssertionError(f"{group} got nothing")


@pytest.mark.parametrize("reset", ["earliest", "latest", "none"])
def test_consumers_continue_where_it_says(
    unpacked: Unpack, server: KafkaServer, reset: str
) -> None:
    log_dir = unpacked("positions44.logs") / "log-dirs"
    rows = resumes(log_dir, "--auto-offset-reset", reset)
    for group in GROUPS:
        end = server.end_offset(TOPIC, 0)
        expected = rows[group]["resumes_at"]
        if expected == rows[group]["log_end_offset"]:
            expected = end
        assert first_offset(server, group, reset) == expected, group
