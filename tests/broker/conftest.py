"""One broker for all tests of this directory, and what its consumers and tools say."""

from collections.abc import Iterator
from itertools import chain

import pytest

from tests.support.broker.broker_run import WRITTEN, BrokerRun, Received, broker_run
from tests.support.broker.dump_report import DumpReport, parse_dump
from tests.support.broker.java_tools import run_dump
from tests.support.broker.marks import needs_kafka

_DUMPED = (".log", ".index", ".timeindex")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, which need a real Kafka."""
    for item in items:
        if item.nodeid.startswith("tests/broker/"):
            for mark in needs_kafka:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerRun]:
    """A running broker that has recovered what kafkalog wrote."""
    with broker_run(tmp_path_factory.mktemp("broker")) as run:
        yield run


@pytest.fixture(scope="session")
def received(broker: BrokerRun) -> Received:
    """What the Java consumer receives of all that kafkalog wrote."""
    found: Received = {}
    for topic, partitions in WRITTEN.items():
        count = sum(len(written.records) for written in partitions)
        for row in broker.server.consume(topic, count):
            found.setdefault((topic, row.partition), []).append(row)
    return found


@pytest.fixture(scope="session")
def end_offsets(broker: BrokerRun) -> dict[tuple[str, int], int]:
    """The ends of all partitions that kafkalog wrote, as GetOffsetShell tells them."""
    return {
        (topic, partition): end
        for topic in WRITTEN
        for partition, end in broker.server.end_offsets(topic).items()
    }


@pytest.fixture(scope="session")
def dumped(broker: BrokerRun) -> DumpReport:
    """What DumpLogSegments says of kafkalog's files and of those that the broker wrote."""
    paths = sorted(chain(broker.written.rglob("*"), broker.produced.rglob("*")))
    return parse_dump(run_dump([path for path in paths if path.suffix in _DUMPED]))
