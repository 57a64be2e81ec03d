"""Reading a log from an offset up to a number of bytes, whatever its indexes say. F140 to F145."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalog.errors import CorruptDataError, DataLossError, LogDirError, OffsetOutOfRangeError
from kafkalog.format.message_set import write_message_set
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading import log_reader
from kafkalog.storage.reading.index_lookup import checked_frames
from kafkalog.storage.reading.log_bounds import EndRule
from kafkalog.storage.reading.log_reader import LogChunk, LogReader
from kafkalog.wire.compression import CompressionType
from tests.support.logs.samples import batch, record
from tests.unit.storage.three_segments import (
    BATCHES,
    expected_from,
    first_offset,
    index_path,
    three_segments,
    write_log,
)

EVERYTHING = 10**9


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return three_segments(tmp_path / "orders-0")


@pytest.mark.parametrize("max_bytes", [0, 1, 500, 1000, 1001, 2500, EVERYTHING])
def test_whole_batches_from_any_offset_up_to_any_size(max_bytes: int, log: PartitionLog) -> None:
    # F140, F141, F143, F145: the first comes whole even if it is larger than asked for.
    reader = LogReader(log)
    for offset in range(60):
        chunk = reader.read(offset, max_bytes)
        assert chunk.data == expected_from(offset, max_bytes), offset
        assert chunk.next_offset % 3 == 0
        records = list(chunk.records())
        assert [found.offset for found in records] == list(range(offset, chunk.next_offset))


def test_exactly_as_many_bytes_as_fit(log: PartitionLog) -> None:
    # F143
    two = len(BATCHES[0]) + len(BATCHES[1])
    reader = LogReader(log)
    assert reader.read(0, two).data == BATCHES[0] + BATCHES[1]
    assert reader.read(0, two - 1).data == BATCHES[0]


def test_chunk_by_chunk_the_whole_log_is_read(log: PartitionLog) -> None:
    # F145
    reader = LogReader(log)
    assert b"".join(chunk.data for chunk in reader.chunks(0, 600)) == b"".join(BATCHES)
    paths = [chunk.path for chunk in reader.chunks(0, EVERYTHING)]
    assert paths == [segment.path for segment in log.segments]


def test_a_chunk_says_where_it_lies(log: PartitionLog) -> None:
    chunk = LogReader(log).read(25, 1)
    assert chunk.path is not None
    data = Path(chunk.path).read_bytes()
    assert data[chunk.position :].startswith(chunk.data)
    assert list(chunk.batches()) == [chunk.data]


def test_at_the_logs_end_there_is_nothing_yet(log: PartitionLog) -> None:
    # F144: to read from "right now" on is allowed.
    reader = LogReader(log)
    assert reader.end_offset() == 60
    assert reader.read(60, EVERYTHING) == LogChunk(60, 60)


@pytest.mark.parametrize("offset", [-1, 61, 10**12])
def test_an_offset_outside_the_log_is_an_error_that_names_the_range(
    offset: int, log: PartitionLog
) -> None:
    # F98, F144
    with pytest.raises(OffsetOutOfRangeError) as raised:
        LogReader(log).read(offset, 1)
    error = raised.value
    assert (error.offset, error.start, error.end) == (offset, 0, 60)
    assert str(error) == f"offset {offset} of orders-0 is not in the log, which holds 0 to 60"
    assert isinstance(error, DataLossError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_the_log_start_is_the_checkpoints(log: PartitionLog, tmp_path: Path) -> None:
    # F95, F144, T31
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 20\n")
    (cut,) = find_partitions([str(tmp_path)])
    reader = LogReader(cut)
    with pytest.raises(OffsetOutOfRangeError, match="holds 20 to 60"):
        reader.read(19, 1)
    chunk = reader.read(20, 1)
    assert first_offset(chunk.data) == 18
    assert [found.offset for found in chunk.records()] == [20]


def test_consumers_read_up_to_the_high_watermark(log: PartitionLog, tmp_path: Path) -> None:
    # F97, F147
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\norders 0 24\n")
    (tmp_path / ".kafka_cleanshutdown").touch()
    (replicated,) = find_partitions([str(tmp_path)])
    reader = LogReader(replicated, end_rule=EndRule.HIGH_WATERMARK)
    assert reader.end_offset() == 24
    assert reader.read(18, EVERYTHING).next_offset == 24
    assert reader.read(24, 1).data == b""
    with pytest.raises(OffsetOutOfRangeError, match="holds 0 to 24"):
        reader.read(25, 1)
    assert LogReader(replicated).end_offset() == 60


def test_offsets_that_are_in_no_segment_are_passed_over(tmp_path: Path) -> None:
    # F91, F140, F145: cleaned segments begin behind their name and end before the next.
    log = write_log(tmp_path / "a-0", (5, [batch(7), batch(20)]), (40, [batch(50)]), (60, []))
    reader = LogReader(log)
    found = [first_offset(reader.read(offset, 1).data) for offset in (5, 9, 10, 23, 52)]
    assert found == [7, 7, 20, 50, 50]
    assert reader.end_offset() == 60
    assert reader.read(53, 1) == LogChunk(53, 53)
    with pytest.raises(OffsetOutOfRangeError, match="holds 5 to 60"):
        reader.read(61, 1)


def test_an_empty_log_has_one_valid_offset(tmp_path: Path) -> None:
    # F96, F144
    (tmp_path / "a-0").mkdir()
    (log,) = find_partitions([str(tmp_path)])
    assert LogReader(log).read(0, 1).data == b""
    with pytest.raises(OffsetOutOfRangeError, match="holds 0 to 0"):
        LogReader(log).read(1, 1)


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_batches_of_their_own(
    magic: int, codec: CompressionType, tmp_path: Path
) -> None:
    # F44, F45, F141: a wrapper is named by its last offset.
    sets = [
        write_message_set([record(first), record(first + 2)], magic, codec)
        for first in range(0, 40, 4)
    ]
    messages: list[bytes] = []
    for each in sets:
        size = 12 + int.from_bytes(each[8:12], "big")
        messages += [each[:size], each[size:]] if size < len(each) else [each]
    log = write_log(tmp_path / "a-0", (0, messages))
    reader = LogReader(log)
    for offset in range(39):
        (first, *_) = reader.read(offset, 1).records()
        assert first.offset == offset + offset % 2


def damage(log: PartitionLog, number: int, position: int, content: bytes) -> None:
    path = Path(log.segments[number].path)
    data = bytearray(path.read_bytes())
    data[position : position + len(content)] = content
    path.write_bytes(bytes(data))


def test_what_is_sound_before_damage_is_read_and_the_damage_is_an_error(log: PartitionLog) -> None:
    # F143, T4
    size = len(BATCHES[6])
    damage(log, 1, size + 70, b"?!?")
    reader = LogReader(log)
    assert reader.read(18, EVERYTHING).data == BATCHES[6]
    with pytest.raises(CorruptDataError) as raised:
        reader.read(21, EVERYTHING)
    error = raised.value
    assert (error.fault, error.position, error.base_offset) == ("checksum", size, 21)
    assert error.path == log.segments[1].path
    assert LogReader(log, check_crcs=False).read(21, 1).data != BATCHES[7]
    assert reader.read(24, 1).data == BATCHES[8]


@pytest.mark.parametrize(
    ("place", "content", "fault"),
    [
        pytest.param(16, b"\x03", "magic", id="an unknown magic"),
        pytest.param(8, b"\0\0\0\5", "length", id="an impossible length"),
        pytest.param(8, b"\x7f\0\0\0", "truncated", id="a length beyond the file"),
        pytest.param(0, b"\x70", "offset_order", id="an offset beyond the segment"),
        pytest.param(0, bytes(8), "offset_order", id="an offset below the segment"),
    ],
)
def test_no_batch_is_taken_from_where_framing_or_offsets_are_wrong(
    place: int, content: bytes, fault: str, log: PartitionLog
) -> None:
    # F61, F63, F70, T1, T2: without an index, so that the walk comes by.
    index_path(log, 1).unlink()
    damage(log, 1, len(BATCHES[6]) + place, content)
    reader = LogReader(log)
    assert reader.read(19, EVERYTHING).data == BATCHES[6]
    with pytest.raises(CorruptDataError) as raised:
        reader.read(21, EVERYTHING)
    assert (raised.value.fault, raised.value.position) == (fault, len(BATCHES[6]))


@pytest.mark.parametrize(
    "tail",
    [b"\1", bytes(17), bytes(5000), BATCHES[0][:40], BATCHES[0][:-1]],
    ids=["one byte", "17 zeros", "5000 zeros", "part of a header", "part of a batch"],
)
def test_a_batch_that_was_not_finished_ends_the_log(tail: bytes, log: PartitionLog) -> None:
    # F69, F143, T3: the length shows a partial message and never handed out.
    with Path(log.segments[-1].path).open("ab") as file:
        file.write(tail)
    reader = LogReader(log)
    assert reader.end_offset() == 60
    assert reader.read(57, EVERYTHING).data == BATCHES[-1]
    assert reader.read(60, EVERYTHING).data == b""


def test_before_the_last_segment_it_is_damage(log: PartitionLog) -> None:
    with Path(log.segments[0].path).open("ab") as file:
        file.write(BATCHES[0][:40])
    assert LogReader(log).read(15, 1).data == BATCHES[5]
    Path(log.segments[0].path).write_bytes(b"".join(BATCHES[:5]) + BATCHES[5][:-1])
    with pytest.raises(CorruptDataError, match="truncated"):
        LogReader(log).read(15, 1)


def test_no_message_above_the_largest_size_is_handed_out(log: PartitionLog) -> None:
    # F143
    limit = len(BATCHES[8])
    reader = LogReader(log, max_message_bytes=limit)
    assert reader.read(18, EVERYTHING).next_offset == 27
    with pytest.raises(CorruptDataError, match=f"too_large.*allowed are {limit}"):
        reader.read(27, EVERYTHING)


def test_what_is_deleted_after_the_listing_is_read_under_its_new_name(log: PartitionLog) -> None:
    # F94, F140: a reader keeps the list of segments that it began with.
    reader = LogReader(log)
    gone = Path(log.segments[0].path)
    gone.rename(f"{gone}.deleted")
    index_path(log, 0).rename(f"{index_path(log, 0)}.deleted")
    assert reader.read(7, 1).data == BATCHES[2]
    Path(f"{gone}.deleted").unlink()
    # F950
    with pytest.raises(CorruptDataError, match="the file was deleted while it was read"):
        reader.read(7, 1)
    assert reader.read(18, 1).data == BATCHES[6]


def test_files_without_an_order_are_not_a_log(tmp_path: Path) -> None:
    # F140
    (tmp_path / "segment.bin").write_bytes(BATCHES[0])
    (log,) = find_partitions([str(tmp_path / "segment.bin")])
    with pytest.raises(LogDirError, match="no order of offsets"):
        LogReader(log)


def test_who_goes_on_reads_no_batch_twice_even_without_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # F142: a walk from the start for each read would be quadratic.
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(b"".join(batch(3 * n) for n in range(50)))
    (log,) = find_partitions([str(tmp_path)])
    walked = 0

    def counted(*arguments: Any) -> Iterator[Any]:
        nonlocal walked
        for frame in checked_frames(*arguments):
            walked += 1
            yield frame

    monkeypatch.setattr(log_reader, "checked_frames", counted)
    chunks = list(LogReader(log).chunks(0, 1))
    assert [chunk.next_offset for chunk in chunks] == list(range(3, 153, 3))
    # Each read looks at the next batch, to see that it does not fit.
    assert walked < 3 * 50
