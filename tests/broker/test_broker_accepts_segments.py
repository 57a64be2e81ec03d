"""Real Kafka takes kafkalog's segments for its own and hands out what is in them."""

import re

from tests.support.broker.broker_run import (
    DAMAGED_END_OFFSET,
    DAMAGED_TOPIC,
    V2_TOPIC,
    BrokerRun,
    Received,
    WrittenAt,
)
from tests.support.broker.consumed_rows import row_of
from tests.support.broker.marks import each_written_partition
from tests.support.broker.written_partitions import V2_PARTITIONS

_CUT = re.compile("truncat|corrupt|discard|invalid|overflow", re.IGNORECASE)


def _log_lines(broker: BrokerRun, topic: str, partition: int) -> list[str]:
    """What the broker has logged about a partition since it got kafkalog's segments."""
    named = re.compile(rf"\b{re.escape(topic)}-{partition}\b")
    return [line for line in broker.server.log_text().split("\n") if named.search(line)]


@each_written_partition
def test_the_broker_checks_every_segment_and_cuts_nothing_off(
    broker: BrokerRun, end_offsets: dict[tuple[str, int], int], place: WrittenAt
) -> None:
    lines = _log_lines(broker, place.topic, place.partition)
    checked = re.findall(r"Recovering unflushed segment (\d+)\.", "\n".join(lines))
    assert [int(base) for base in checked] == [s.base_offset for s in place.written.segments]
    assert [line for line in lines if _CUT.search(line)] == []
    assert end_offsets[place.topic, place.partition] == place.written.end_offset


def test_the_broker_would_have_cut_off_a_broken_batch(broker: BrokerRun) -> None:
    told = [line for line in _log_lines(broker, DAMAGED_TOPIC, 0) if _CUT.search(line)]
    cut = f"Corruption found in segment 150, truncating to offset {DAMAGED_END_OFFSET}"
    assert any(cut in line for line in told)
    assert broker.server.end_offset(DAMAGED_TOPIC, 0) == DAMAGED_END_OFFSET


@each_written_partition
def test_the_broker_builds_the_very_indexes_that_were_written(
    broker: BrokerRun, place: WrittenAt
) -> None:
    directory = broker.server.log_dir / f"{place.topic}-{place.partition}"
    for segment in place.written.segments:
        for name, written in segment.by_name.items():
            rebuilt = (directory / name).read_bytes()
            assert rebuilt[: len(written)] == written, name
            # Behind the active segment's entries is room for those to come.
            assert not any(rebuilt[len(written) :]), name


@each_written_partition
def test_a_java_consumer_receives_exactly_the_records_that_were_written(
    received: Received, place: WrittenAt
) -> None:
    expected = [row_of(place.partition, record) for record in place.written.records]
    assert received[place.topic, place.partition] == expected


def test_a_java_consumer_of_committed_records_receives_no_aborted_ones(broker: BrokerRun) -> None:
    expected = [
        row_of(partition, record)
        for partition, written in enumerate(V2_PARTITIONS)
        for record in written.committed
    ]
    rows = broker.server.consume(V2_TOPIC, len(expected), "read_committed")
    assert sorted(rows, key=lambda row: (row.partition, row.offset)) == expected
