"""`kafka-get-offsets` at a real broker, and kafkalog at the broker's files, say the same."""

from collections.abc import Callable

import pytest

from kafkalog.inspection.logs.log_offsets import (
    earliest_offset,
    latest_offset,
    offset_of_max_timestamp,
)
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from tests.support.broker.broker_run import WRITTEN, BrokerRun


def max_timestamp(log: PartitionLog) -> int | None:
    found = offset_of_max_timestamp(log)
    return None if found is None else found.offset


@pytest.mark.deep
@pytest.mark.parametrize("topic", WRITTEN)
@pytest.mark.parametrize(
    ("time", "question"),
    [("earliest", earliest_offset), ("latest", latest_offset), ("max-timestamp", max_timestamp)],
)
def test_both_say_the_same_of_every_format(
    topic: str, time: str, question: Callable[[PartitionLog], int | None], broker: BrokerRun
) -> None:
    # F146 to F148: formats 0 to 2 mixed, wrappers, stamps of the broker, odd times, gaps.
    arguments = ["--topic-partitions", topic, "--time", time]
    output = broker.server.run_client("GetOffsetShell", arguments).stdout.decode()
    lines = (line.split(":") for line in output.splitlines())
    told = {f"{name}-{partition}": int(offset) for name, partition, offset in lines}
    logs = find_partitions([str(broker.server.log_dir / f"{topic}-*")])
    found = {log.name: question(log) for log in logs}
    assert len(found) == len(WRITTEN[topic])
    # Where there is no answer the tool prints no line.
    assert {name: offset for name, offset in found.items() if offset is not None} == told
