"""DumpLogSegments sees in kafkalog's files, and in a broker's, what kafkalog sees there."""

from itertools import pairwise
from pathlib import Path

from kafkalog.format.batch_header import BatchHeader
from kafkalog.format.faults import Fault
from kafkalog.format.records import Record
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.wire.compression import CompressionType
from tests.support.broker.broker_run import BrokerRun, WrittenAt
from tests.support.broker.dump_report import DumpedRecord, DumpReport
from tests.support.broker.marks import each_written_partition
from tests.support.logs.plain_reader import FileRange, read_ranges, read_segment_records

_TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}


def test_kafka_finds_nothing_wrong_in_any_file(dumped: DumpReport) -> None:
    assert dumped.findings == []
    verdicts = {batch["isvalid"] for file in dumped.files.values() for batch in file.batches}
    assert verdicts == {"true"}


@each_written_partition
def test_kafka_sees_the_offsets_and_index_entries_that_were_written(
    broker: BrokerRun, dumped: DumpReport, place: WrittenAt
) -> None:
    control: list[int] = []
    offsets: list[int] = []
    for segment in place.written.segments:
        log, index, timeindex = (
            dumped.files[broker.written / str(place) / name] for name in segment.by_name
        )
        offsets += [record.offset for record in log.records]
        control += [int(b["baseOffset"]) for b in log.batches if b.get("isControl") == "true"]
        assert len(index.index_entries) == len(segment.index) // 8
        assert len(timeindex.time_entries) == len(segment.timeindex) // 12
    assert offsets == sorted([*control, *(record.offset for record in place.written.records)])


@each_written_partition
def test_kafka_finds_only_those_gaps_in_offsets_that_were_written(
    broker: BrokerRun, dumped: DumpReport, place: WrittenAt
) -> None:
    for segment in place.written.segments:
        file = dumped.files[broker.written / str(place) / f"{segment.base_offset:020d}.log"]
        # The tool's own fault: it takes a segment's first record to follow an offset of -1.
        offsets = [-1, *(record.offset for record in file.records)]
        assert file.gaps == [pair for pair in pairwise(offsets) if pair[1] != pair[0] + 1]


@each_written_partition
def test_kafkalog_reads_the_batches_that_kafka_sees(
    broker: BrokerRun, dumped: DumpReport, place: WrittenAt
) -> None:
    _compare(broker.written / str(place), dumped)


def test_kafkalog_reads_the_batches_that_kafka_sees_in_a_segment_of_its_own(
    broker: BrokerRun, dumped: DumpReport
) -> None:
    _compare(broker.produced, dumped)


def _compare(directory: Path, dumped: DumpReport) -> None:
    """Each segment's batches and records, as the reference reader and the tool tell them."""
    (log,) = find_partitions([str(directory)])
    assert log.segments
    for segment in log.segments:
        data = Path(segment.path).read_bytes()
        expected = dumped.files[Path(segment.path)]
        ranges = read_ranges(data, segment.base_offset, segment.next_base_offset)
        assert [_in_kafkas_words(part) for part in ranges] == expected.batches
        records = read_segment_records(data, ranges)
        assert [_numbers(record) for record in records] == expected.records


def _in_kafkas_words(part: FileRange) -> dict[str, str]:
    header = part.header
    assert header is not None
    first = {"offset": f"{header.base_offset}"} if header.magic < 2 else _words_of_v2(header)
    return {
        **first,
        "position": f"{part.position}",
        _TIMESTAMP_TYPES[header.timestamp_type]: f"{header.max_timestamp_ms}",
        "size": f"{part.size}",
        "magic": f"{header.magic}",
        "compresscodec": CompressionType(header.compression_id).name.lower(),
        "crc": f"{part.computed_crc}",
        "isvalid": _java(part.fault is Fault.NONE),
    }


def _words_of_v2(header: BatchHeader) -> dict[str, str]:
    horizon = header.delete_horizon_ms
    return {
        "baseOffset": f"{header.base_offset}",
        "lastOffset": f"{header.last_offset}",
        "count": f"{header.records_count}",
        "baseSequence": f"{header.base_sequence}",
        "lastSequence": f"{header.last_sequence}",
        "producerId": f"{header.producer_id}",
        "producerEpoch": f"{header.producer_epoch}",
        "partitionLeaderEpoch": f"{header.leader_epoch}",
        "isTransactional": _java(header.is_transactional),
        "isControl": _java(header.is_control),
        "deleteHorizonMs": "OptionalLong" + (".empty" if horizon is None else f"[{horizon}]"),
    }


def _java(condition: bool) -> str:
    return "true" if condition else "false"


def _numbers(record: Record) -> DumpedRecord:
    key_size, value_size = (
        -1 if field is None else len(field) for field in (record.key, record.value)
    )
    return DumpedRecord(record.offset, record.timestamp_ms, key_size, value_size, record.sequence)
