"""Spark's own Kafka source reads from `kafkalog serve` what view `records` has."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafkalog import serve
from tests.support.broker.live_records import write_live_records
from tests.support.serve.clients import records_of_view

pytestmark = [pytest.mark.deep, pytest.mark.timeout(600)]

Unpacked = Callable[[str], Path]

# Transactions, codecs, a compacted topic, one with deleted records.
TOPICS = {
    "shop.tx": 2,
    "shop.multi-3-part-0": 3,
    "shop.codec-zstd": 1,
    "shop.compact-tx": 1,
    "shop.del-records": 1,
}
EARLIEST = -2


def test_sparks_kafka_source_reads_as_from_a_cluster(unpacked: Unpacked, tmp_path: Path) -> None:
    path = str(unpacked("kafka44.logs") / "log-dirs")
    offsets = tmp_path / "offsets.json"
    starts = {
        topic: {str(number): EARLIEST for number in range(partitions)}
        for topic, partitions in TOPICS.items()
    }
    offsets.write_text(json.dumps(starts))
    with serve(path) as running:
        write_live_records(running.bootstrap_servers, offsets, tmp_path, seconds=500)
    expected = [
        (topic, partition, offset, key, value)
        for topic, partition, offset, _, key, value, _ in records_of_view([path], "read_committed")
        if topic in TOPICS
    ]
    assert len(expected) > 7000
    for name in ("batch", "stream"):
        rows = pq.read_table(tmp_path / name).to_pylist()
        columns = ("topic", "partition", "offset", "key", "value")
        found = [tuple(row[column] for column in columns) for row in rows]
        assert sorted(found, key=lambda row: row[:3]) == expected, name
