"""Every topic of every fixture, by both readers, against what a real consumer received."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.golden.fixture_sets import CONSUMERS, consumed, topics, unique_segments
from tests.support.logs.both_readers import COLUMNS, by_kernels, by_reference
from tests.support.repository import Unpack

Reader = Callable[..., tuple[list[Any], list[tuple[Any, ...]]]]


@pytest.mark.parametrize("reader", [by_reference, by_kernels])
@pytest.mark.parametrize("name", CONSUMERS)
def test_all_records_are_those_a_read_uncommitted_consumer_received(
    name: str, reader: Reader, unpacked: Unpack
) -> None:
    # F1 to F4, F10 to F27, F40 to F48 and F50 to F55 on real brokers' files; T9 and T21 to T27.
    logs, golden = unpacked(f"{name}.logs"), unpacked(f"{name}.golden")
    read = _read(logs, reader)
    for topic in topics(golden, CONSUMERS[name]):
        expected = consumed(golden, topic, CONSUMERS[name])
        first = {partition: offsets[0] for partition, offsets in _offsets(read[topic]).items()}
        if name == "tiered43":  # older segments are in the remote store
            expected = [row for row in expected if row["offset"] >= first[row["partition"]]]
        assert read[topic] == expected, topic


def _offsets(rows: list[dict[str, Any]]) -> dict[int, list[int]]:
    offsets: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        offsets[row["partition"]].append(row["offset"])
    return offsets


def _read(logs: Path, reader: Reader) -> dict[str, list[dict[str, Any]]]:
    starts = _log_starts(logs)
    read: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for segment in unique_segments(logs):
        account, rows = reader(
            segment.path.read_bytes(), segment.base_offset, segment.next_base_offset
        )
        assert {row[2] for row in account} <= {"none"}, segment.path
        control = _control_positions(segment.path.read_bytes(), account)
        start = starts.get((segment.topic, segment.partition), 0)
        for values in rows:
            row = dict(zip(COLUMNS, values, strict=True))
            if row["position"] not in control and row["offset"] >= start:
                read[segment.topic].append(_as_consumed(segment.partition, row))
    for rows_of_topic in read.values():
        rows_of_topic.sort(key=lambda row: (row["partition"], row["offset"]))
    return read


def _control_positions(data: bytes, account: list[Any]) -> set[int]:
    # Control batches hold no records of an application: bit 5 of the attributes.
    return {row[0] for row in account if data[row[0] + 16] == 2 and data[row[0] + 22] & 0b100000}


def _log_starts(logs: Path) -> dict[tuple[str, int], int]:
    starts: dict[tuple[str, int], int] = {}
    for path in logs.rglob("log-start-offset-checkpoint"):
        for line in path.read_text().splitlines()[2:]:
            topic, partition, offset = line.split()
            starts[topic, int(partition)] = int(offset)
    return starts


def _as_consumed(partition: int, row: dict[str, Any]) -> dict[str, Any]:
    return {
        "partition": partition,
        "offset": row["offset"],
        "timestamp": row["timestampMs"],
        "timestamp_type": row["timestampType"],
        "key": row["key"],
        "value": row["value"],
        "headers": row["headers"],
        "leader_epoch": row["leaderEpoch"],
    }
