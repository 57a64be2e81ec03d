"""What a stream makes of logs that begin, end, break off and go on."""

import json
from pathlib import Path
from typing import Any

import pytest

from kafkalog.errors import LogDirError, OptionError
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from tests.support.logs.growing_logs import GrowingLog, write_logs
from tests.support.logs.streamed_logs import DrivenStream, StreamedLog, grown

KEY = "orders", 0


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return tmp_path / "log"


def test_a_stream_begins_at_the_latest_offsets_and_says_so_before_it_reads(log_dir: Path) -> None:
    # F522: a restart before the first micro-batch is done must not lose what has come since.
    log = grown(log_dir, 3)
    stream = DrivenStream(log_dir)
    start = json.dumps(stream.reader.initialOffset())
    log.append(1, 2)
    assert stream.trigger() == 0
    assert (stream.position, start) == ('{"orders": {"0": 3}}',) * 2
    stream.restart()
    later = json.dumps(stream.reader.initialOffset())
    assert stream.replay(later, start) == 0
    stream.trigger()
    assert stream.read == {KEY: [3, 4]}


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"startingOffsets": "earliest"}, 0),
        ({"startingOffsets": '{"orders":{"0":4}}'}, 4),
        ({"startingOffsets": '{"orders":{"0":-2}}'}, 0),
        ({"startingOffsets": '{"orders":{"0":-1}}'}, 8),
        # The record with offset n has the timestamp 1000 + n.
        ({"startingTimestamp": "1005"}, 5),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":1002}}'}, 2),
        ({"startingTimestamp": "9000", "startingOffsetsByTimestampStrategy": "latest"}, 8),
    ],
)
def test_a_stream_begins_where_options_say(
    options: dict[str, str], first: int, log_dir: Path
) -> None:
    grown(log_dir, 4, 4)
    stream = DrivenStream(log_dir, **options)
    assert stream.reader.initialOffset() == {"orders": {"0": first}}
    stream.trigger()
    assert stream.read.get(KEY, []) == list(range(first, 8))


def test_a_checkpoint_that_the_kafka_source_wrote_reads_alike(log_dir: Path) -> None:
    grown(log_dir, 4, 4)
    grown(log_dir, 2, partition=1)
    stream = DrivenStream(log_dir, start='{"orders":{"1":1,"0":3}}')
    stream.trigger()
    assert stream.read == {KEY: [3, 4, 5, 6, 7], ("orders", 1): [1]}
    assert stream.position == '{"orders": {"0": 8, "1": 2}}'


@pytest.mark.parametrize("cut", [1, 12, 61, 70])
def test_a_torn_batch_at_the_end_is_not_read_until_it_is_whole(log_dir: Path, cut: int) -> None:
    # F520
    log = grown(log_dir, 4)
    whole = log.log_file.stat().st_size
    log.append(1, 3)
    data = log.log_file.read_bytes()
    stream = DrivenStream(log_dir, startingOffsets="earliest")
    log.log_file.write_bytes(data[: whole + cut])
    stream.trigger()
    assert stream.position == '{"orders": {"0": 4}}'
    log.log_file.write_bytes(data)
    stream.trigger()
    assert stream.read == {KEY: [0, 1, 2, 3, 4, 5, 6]}


def test_a_batch_whose_bytes_are_not_there_yet_is_not_believed(log_dir: Path) -> None:
    # F520: a copy that makes room first and fills it later.
    log = grown(log_dir, 4)
    whole = log.log_file.stat().st_size
    log.append(2, 3)
    data = log.log_file.read_bytes()
    stream = DrivenStream(log_dir, startingOffsets="earliest")
    log.log_file.write_bytes(data[: whole + 61] + bytes(len(data) - whole - 61))
    stream.trigger()
    assert stream.position == '{"orders": {"0": 4}}'
    log.log_file.write_bytes(data)
    stream.trigger()
    assert stream.read == {KEY: list(range(10))}


def test_room_that_a_broker_made_in_advance_is_not_gone_through_again(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # F521
    log = grown(log_dir, 4)
    data = log.log_file.read_bytes()
    log.log_file.write_bytes(data + bytes(4096))
    stream = DrivenStream(log_dir, startingOffsets="earliest")
    stream.trigger()
    assert stream.position == '{"orders": {"0": 4}}'
    with monkeypatch.context() as patched:
        patched.setattr("kafkalog.inspection.logs.log_tails._walked", None)
        stream.trigger()
    batch = write_batch([Record(4, 9, 0, b"k", b"v")], BatchFields(leader_epoch=0))
    log.log_file.write_bytes(data + batch + bytes(4096 - len(batch)))
    stream.trigger()
    assert stream.read == {KEY: [0, 1, 2, 3, 4]}


def test_a_trigger_walks_only_what_is_new(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # F521
    log = grown(log_dir, *[5] * 50)
    stream = DrivenStream(log_dir, startingOffsets="earliest")
    stream.trigger()
    walked: list[int] = []
    walk = stream.reader._stream_ends()._tails.end.__globals__["SegmentHeaders"]

    class Counted(walk):  # type: ignore[misc,valid-type]
        def __init__(self, window: Any, options: Any) -> None:
            walked.append(window.size)
            super().__init__(window, options)

    monkeypatch.setattr("kafkalog.inspection.logs.log_tails.SegmentHeaders", Counted)
    stream.trigger()
    assert walked == []
    before = log.log_file.stat().st_size
    log.append(1, 5)
    stream.trigger()
    assert walked == [log.log_file.stat().st_size - before]


def test_a_partition_that_appears_is_read_from_its_start(log_dir: Path) -> None:
    # F522
    grown(log_dir, 4)
    stream = DrivenStream(log_dir)
    stream.trigger()
    grown(log_dir, 3, partition=1)
    grown(log_dir, 2, topic="payments")
    stream.trigger()
    assert stream.read == {("orders", 1): [0, 1, 2], ("payments", 0): [0, 1]}


def test_available_now_ends_at_what_was_there_when_it_began(log_dir: Path) -> None:
    # F524
    log = grown(log_dir, 4, 4, 4)
    stream = DrivenStream(log_dir, startingOffsets="earliest", maxOffsetsPerTrigger=5)
    stream.reader.prepareForTriggerAvailableNow()
    stream.trigger()
    log.append(1, 50)
    grown(log_dir, 4, partition=1)
    sizes = [stream.trigger() for _ in range(4)]
    assert (sizes, stream.position) == ([5, 2, 0, 0], '{"orders": {"0": 12}}')


def test_offsets_are_spread_in_proportion_and_none_waits(log_dir: Path) -> None:
    # F525
    grown(log_dir, 100)
    grown(log_dir, 50, partition=1)
    grown(log_dir, 1, partition=2)
    stream = DrivenStream(log_dir, startingOffsets="earliest", maxOffsetsPerTrigger=15)
    stream.trigger()
    assert stream.position == '{"orders": {"0": 9, "1": 4, "2": 1}}'
    # The engine may ask for everything, as with Trigger.Once.
    assert stream.trigger(all_there_is=True) == 137


def test_little_waits_for_more_or_for_its_time(log_dir: Path) -> None:
    # F528
    log = grown(log_dir, 2)
    options: dict[str, Any] = {"startingOffsets": "earliest", "minOffsetsPerTrigger": 5}
    patient = DrivenStream(log_dir, **options)
    quick = DrivenStream(log_dir, **options, maxTriggerDelay="0s")
    assert (patient.trigger(), quick.trigger()) == (2, 2)
    log.append(1, 4)
    assert (patient.trigger(), quick.trigger()) == (0, 4)
    log.append(1, 1)
    assert patient.trigger() == 5
    log.append(1, 1)
    assert patient.trigger() == 0
    assert patient.to_the_end() == [1]


def test_bytes_are_those_of_whole_batches_and_one_at_least(log_dir: Path) -> None:
    # F526
    log = grown(log_dir, *[1] * 10)
    size = log.log_file.stat().st_size
    stream = DrivenStream(log_dir, startingOffsets="earliest", maxBytesPerTrigger=size // 2)
    assert len(stream.to_the_end()) in (2, 3)
    tight = DrivenStream(log_dir, startingOffsets="earliest", maxBytesPerTrigger=1)
    assert tight.to_the_end() == [1] * 10
    assert tight.read == stream.read == {KEY: list(range(10))}


def test_of_several_replicas_the_best_is_read_and_the_others_where_it_is_damaged(
    tmp_path: Path,
) -> None:
    # F520
    logs = []
    for broker in (1, 2):
        log_dir = tmp_path / f"log{broker}"
        logs.append(StreamedLog(log_dir, "orders", 0))
        properties = f"version=1\nnode.id={broker}\ncluster.id=c\n"
        (log_dir / "meta.properties").write_text(properties)
    stream = DrivenStream(tmp_path / "log*", startingOffsets="earliest")
    for log in logs:
        log.append(1, 3)
    stream.trigger()
    logs[0].append(1, 3)
    stream.trigger()
    assert stream.offsets == {KEY: 6}
    logs[1].append(3, 3)
    stream.trigger()
    assert stream.read == {KEY: list(range(12))}


@pytest.mark.parametrize("seed", range(5))
def test_a_committed_read_ends_at_the_last_stable_offset(log_dir: Path, seed: int) -> None:
    # F527
    log = GrowingLog("orders", 0, seed)
    stream = DrivenStream(log_dir, startingOffsets="earliest", isolationLevel="read_committed")
    write_logs(log_dir, [log])
    for _ in range(12):
        log.grow(3)
        log.log_start = 0
        write_logs(log_dir, [log])
        stream.trigger()
        assert stream.offsets[KEY] == log.last_stable_offset
    assert stream.read.get(KEY, []) == [
        row["offset"]
        for row in log.rows
        if row["offset"] < log.last_stable_offset and row["offset"] not in log._aborted
    ]


def test_a_known_high_watermark_is_the_end_and_never_leads_back(log_dir: Path) -> None:
    # F520
    log = grown(log_dir, 4)
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\n")
    stream = DrivenStream(log_dir, startingOffsets="earliest", stopAt="highWatermark")
    stream.trigger()
    log.append(1, 4)
    (log_dir / ".kafka_cleanshutdown").write_text("")
    checkpoint = log_dir / "replication-offset-checkpoint"
    for mark, end in ((2, 4), (6, 6), (8, 8)):
        checkpoint.write_text(f"0\n1\norders 0 {mark}\n")
        stream.trigger()
        assert stream.offsets == {KEY: end}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"view": "batches"}, "view"),
        ({"replicas": "all"}, "replicas"),
        ({"endingOffsets": "latest"}, "endingOffsets"),
        ({"endingTimestamp": "1000"}, "endingTimestamp"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger"),
        ({"maxBytesPerTrigger": "much"}, "maxBytesPerTrigger"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "minOffsetsPerTrigger"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay"),
        ({"startingOffsets": "first"}, "startingOffsets"),
        ({"startingOffsets": '{"orders":{"0":-3}}'}, "startingOffsets"),
    ],
)
def test_what_a_stream_cannot_be_asked_for_is_an_error_naming_the_option(
    options: dict[str, str], named: str, log_dir: Path
) -> None:
    grown(log_dir, 1)
    with pytest.raises(OptionError, match=f"^{named}: "):
        DrivenStream(log_dir, **options)


def test_a_topic_that_was_never_there_is_an_error_at_the_start(log_dir: Path) -> None:
    grown(log_dir, 1)
    with pytest.raises(OptionError, match="subscribe"):
        DrivenStream(log_dir, subscribe="orders,oders").trigger()
    with pytest.raises(OptionError, match="startingOffsets: 'orders-0'"):
        grown(log_dir, 1, partition=1)
        DrivenStream(log_dir, startingOffsets='{"orders":{"0":0}}').trigger()


def test_files_by_their_own_names_are_not_a_stream(log_dir: Path) -> None:
    log = grown(log_dir, 1)
    with pytest.raises(LogDirError, match="a stream reads log directories"):
        DrivenStream(log.log_file).trigger()


def test_what_the_stream_reads_next_is_reported_before_it_is_read(log_dir: Path) -> None:
    grown(log_dir, 10)
    stream = DrivenStream(log_dir, startingOffsets="earliest", maxOffsetsPerTrigger=4)
    assert stream.reader.reportLatestOffset() is None
    stream.trigger()
    assert stream.reader.reportLatestOffset() == {"orders": {"0": 10}}
