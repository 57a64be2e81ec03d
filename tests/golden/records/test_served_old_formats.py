"""Records of formats 0 and 1 in real brokers' files, as a server gives them to clients."""

from bisect import bisect_left
from typing import Any

import pytest

from kafkalog.format.batch_header import NO_TIMESTAMP_TYPE, computed_crc, read_header
from kafkalog.format.record_batch import read_batch
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.views.engine import AskedView, LocalViews
from tests.support.serve.served_sets import Unpacked, served_paths

COLUMNS = ("topic", "partition", "offset", "timestampMs", "timestampType", "key", "value")
SIZE = 5000


@pytest.mark.parametrize("name", ["kafka08", "kafka010"])
def test_they_are_batches_of_format_2_with_the_rows_of_view_records(
    unpacked: Unpacked, name: str
) -> None:
    # F850
    paths = served_paths(unpacked, name)
    expected = rows_of_view(paths)
    assert {row[:2] for row in expected}
    cluster = ServedCluster(paths)
    found: list[tuple[Any, ...]] = []
    for topic in cluster.topics.values():
        for log in topic.partitions.values():
            offset = log.start_offset
            while data := log.fetch(offset, SIZE).data.read():
                before = offset
                position = 0
                while position < len(data):
                    header = read_header(data, position)
                    assert header.magic == 2
                    assert header.crc == computed_crc(data, position, header)
                    records = read_batch(data, position)
                    assert len({each.timestamp_ms == -1 for each in records}) == 1
                    found += [
                        (log.topic, log.partition, *row(each))
                        for each in records
                        if each.offset >= offset
                    ]
                    position += header.size
                    offset = header.last_offset + 1
                # Of several batches none makes a response larger than asked for.
                assert position <= SIZE or position == read_header(data, 0).size
                assert offset > before
    assert sorted(found, key=lambda each: each[:3]) == expected


def row(record: Any) -> tuple[Any, ...]:
    is_timeless = record.timestamp_ms == -1
    timestamp = None if is_timeless else record.timestamp_ms
    kind = None if is_timeless else record.timestamp_type
    return (record.offset, timestamp, kind, record.key, record.value)


def rows_of_view(paths: list[str]) -> list[tuple[Any, ...]]:
    rows = []
    views = LocalViews(paths, find_logs(paths), processes=1)
    for batch in views.batches(AskedView("records", COLUMNS)):
        for topic, partition, offset, timestamp, kind, key, value in zip(
            *(column.to_pylist() for column in batch), strict=True
        ):
            is_timeless = timestamp in (None, -1)
            assert is_timeless or kind != NO_TIMESTAMP_TYPE
            time = (None, None) if is_timeless else (timestamp, kind)
            rows.append((topic, partition, offset, *time, key, value))
    return sorted(rows, key=lambda each: each[:3])


@pytest.mark.parametrize("name", ["kafka08", "kafka010"])
def test_a_fetch_from_any_offset_begins_with_it(unpacked: Unpacked, name: str) -> None:
    # F850
    paths = served_paths(unpacked, name)
    cluster = ServedCluster(paths)
    log = max(
        (log for topic in cluster.topics.values() for log in topic.partitions.values()),
        key=lambda log: log.end_offset,
    )
    place = log.topic, log.partition
    offsets = [row[2] for row in rows_of_view(paths) if row[:2] == place]
    assert len(offsets) > 50
    for offset in range(log.start_offset, min(offsets[-1], 200)):
        data = log.fetch(offset, 1).data.read()
        assert read_header(data, 0).size == len(data)
        found = [each.offset for each in read_batch(data, 0) if each.offset >= offset]
        assert found[0] == offsets[bisect_left(offsets, offset)]
