"""kafkalog reads from a broker's log directory what the Java consumer receives."""

from pathlib import Path

from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.wire.compression import CompressionType
from tests.support.broker.broker_run import PRODUCED_RECORDS, PRODUCED_TOPIC, BrokerRun
from tests.support.broker.consumed_rows import ConsumedRow, row_of
from tests.support.logs.plain_reader import FileRange, read_ranges, read_segment_records


def _read(log_dir: Path) -> tuple[list[FileRange], list[ConsumedRow]]:
    """All batches of the only partition there, and its records."""
    (log,) = find_partitions([str(log_dir)])
    ranges: list[FileRange] = []
    rows: list[ConsumedRow] = []
    for segment in log.segments:
        data = Path(segment.path).read_bytes()
        found = read_ranges(data, segment.base_offset, segment.next_base_offset)
        ranges += found
        rows += [row_of(0, record) for record in read_segment_records(data, found)]
    return ranges, rows


def test_kafkalog_reads_the_records_that_a_java_consumer_receives(broker: BrokerRun) -> None:
    _, rows = _read(broker.produced)
    assert rows == broker.server.consume(PRODUCED_TOPIC, PRODUCED_RECORDS)


def test_the_broker_has_written_batches_of_every_codec(broker: BrokerRun) -> None:
    ranges, _ = _read(broker.produced)
    codecs = {part.header.compression_id for part in ranges if part.header is not None}
    assert codecs == set(CompressionType)
