"""The log read from an offset on, as a broker serves a fetch, against what consumers received."""

from bisect import bisect_left
from collections.abc import Iterator

import pytest

from kafkalog.format.batch_header import read_header
from kafkalog.format.record_batch import read_batch
from kafkalog.format.records import Record
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_reader import LogReader
from tests.support.golden.answered_offsets import partitions
from tests.support.golden.fixture_sets import CONSUMERS, consumed, topics
from tests.support.repository import Unpack

SETS = ("kafka44", "kafka39zk", "kafka010", "kafka08")


def served(log: PartitionLog, max_bytes: int) -> Iterator[Record]:
    """What a consumer makes of one fetch after another: control batches are not for it."""
    reader = LogReader(log)
    for chunk in reader.chunks(reader.start_offset, max_bytes):
        for batch in chunk.batches():
            if not read_header(batch, 0).is_control:
                records = read_batch(batch, 0)
                yield from (record for record in records if record.offset >= chunk.offset)


@pytest.mark.parametrize("name", SETS)
def test_fetch_by_fetch_the_records_are_those_that_the_consumer_received(
    name: str, unpacked: Unpack
) -> None:
    # F95, F140 to F143, F145: through the brokers' own indexes, and with the logs' own starts.
    golden, logs = unpacked(f"{name}.golden"), partitions(unpacked(f"{name}.logs"))
    compared = 0
    for topic in topics(golden, CONSUMERS[name]):
        rows = consumed(golden, topic, CONSUMERS[name])
        for partition in {row["partition"] for row in rows}:
            log = logs.get(f"{topic}-{partition}")
            if log is None:
                continue
            expected = [
                (row["offset"], row["timestamp"], row["key"], row["value"])
                for row in rows
                if row["partition"] == partition
            ]
            found = [
                (record.offset, record.timestamp_ms, record.key, record.value)
                for record in served(log, 10_000)
            ]
            assert found == expected, log.name
            compared += len(found)
    assert compared > 1000


@pytest.mark.parametrize("name", SETS)
def test_from_any_offset_on_the_broker_s_index_leads_to_the_right_batch(
    name: str, unpacked: Unpack
) -> None:
    # F141: the first record served is the first that there is from the offset on.
    logs = partitions(unpacked(f"{name}.logs"))
    largest = max(logs.values(), key=lambda log: len(log.segments))
    records = [record.offset for record in served(largest, 10**9)]
    known = set(records)
    reader = LogReader(largest)
    for offset in range(reader.start_offset, records[-1] + 1, 7):
        chunk = reader.read(offset, 1)
        assert chunk.next_offset > offset
        first = next(iter(chunk.records()), None)
        if first is not None and first.offset in known:
            assert first.offset == records[bisect_left(records, offset)]
