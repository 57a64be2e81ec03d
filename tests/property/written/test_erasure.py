"""Any set of records erased from any log gives exactly the rest. Rules: docs/erasure.md F1100 to
F1104, F1106, F1113."""

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.records.erased_batch import without_records
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import BatchHeader, read_header
from kafkalog.format.record_batch import (
    BatchFields,
    decompressed_payload,
    read_batch,
    with_checksum,
    write_batch,
)
from kafkalog.format.records import Record
from kafkalog.format.side_files.indexes import read_offset_index, read_time_index
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.inspection.erasure.erased_files import erased_file, erased_indexes
from kafkalog.inspection.erasure.file_search import FileSearch, Hits, Wanted, search_file
from kafkalog.inspection.erasure.identifiers import Identifier, Kind
from kafkalog.inspection.erasure.input_files import input_files
from kafkalog.storage.recovery.framing import frames
from kafkalog.storage.recovery.producer_state import ProducerState
from kafkalog.storage.recovery.side_files import rebuild_side_files
from tests.support.logs.plain_reader import BytesInMemory, read_ranges, read_segment_records
from tests.support.logs.samples import batch, batches_v2, joined, message_sets, segments

_NAME = "00000000000000000000"


def _header_facts(header: BatchHeader) -> tuple[object, ...]:
    """What of a header stays whatever is erased from the batch."""
    return (
        *(header.base_offset, header.leader_epoch, header.magic, header.last_offset_delta),
        *(header.producer_id, header.producer_epoch, header.base_sequence),
        *(header.is_transactional, header.is_control, header.timestamp_type),
    )


@given(st.data())
def test_a_batch_without_some_records_has_exactly_the_others(data: st.DataObject) -> None:
    # F1100, F1101.
    encoded, records, _ = data.draw(batches_v2(data.draw(st.integers(0, 2**40))))
    erased = data.draw(st.sets(st.sampled_from([record.offset for record in records])))
    left = without_records(encoded, erased)
    before, after = read_header(encoded, 0), read_header(left, 0)
    kept = [record for record in records if record.offset not in erased]
    assert read_batch(left, 0) == kept
    assert _header_facts(after) == _header_facts(before)
    assert after.records_count == len(kept)
    # The kernel and Kafka's own tools check it; here by the plain reader.
    assert [part.fault.label for part in read_ranges(left)] == ["none"]
    if not kept:
        assert len(left) == 61
        assert after.max_timestamp_ms == before.max_timestamp_ms
    elif before.timestamp_type == 1:
        assert after.max_timestamp_ms == before.max_timestamp_ms
    else:
        assert after.max_timestamp_ms == max(record.timestamp_ms for record in kept)
    if not erased:
        # Compressors of others may give other bytes.
        assert decompressed_payload(left, 0) == decompressed_payload(encoded, 0)


@given(st.data(), st.sampled_from((0, 1)))
def test_messages_of_formats_0_and_1_without_some(data: st.DataObject, magic: int) -> None:
    # F1102, F1103.
    encoded, records, _ = data.draw(message_sets(data.draw(st.integers(0, 2**40)), magic))
    erased = data.draw(st.sets(st.sampled_from([record.offset for record in records])))
    left = b"".join(
        without_records(message, erased & offsets) if erased & offsets else message
        for message, offsets in _messages(encoded)
    )
    kept = [record for record in records if record.offset not in erased]
    found = [record for message, _ in _messages(left) for record in read_batch(message, 0)]
    if (records and records[0].timestamp_type == 1) or not kept:
        # A wrapper of LogAppendTime keeps its time, which is that of all.
        assert [record.offset for record in found] == [record.offset for record in kept]
    assert [(each.key, each.value) for each in found] == [(each.key, each.value) for each in kept]
    assert [each.offset for each in found] == [each.offset for each in kept]
    assert [each.timestamp_ms for each in found] == [each.timestamp_ms for each in kept]


def _in_memory(data: bytes) -> BytesInMemory:
    return BytesInMemory(data, UnreadableRanges())


def _messages(data: bytes) -> list[tuple[bytes, set[int]]]:
    found = []
    for frame in frames(_in_memory(data)):
        message = data[frame.position : frame.end]
        found.append((message, {record.offset for record in read_batch(message, 0)}))
    return found


@given(st.data())
def test_an_offset_that_no_record_has_is_refused(data: st.DataObject) -> None:
    encoded, records, _ = data.draw(batches_v2(5))
    with pytest.raises(CorruptDataError, match="no record has offset"):
        without_records(encoded, {records[-1].offset + 1})


def test_a_batch_with_a_record_that_cannot_be_read_is_refused() -> None:
    encoded = bytearray(write_batch([Record(5, 1, 0, b"k", b"v", ())], BatchFields()))
    encoded[61] = 0x7E  # the record says that it is longer than the batch
    with pytest.raises(CorruptDataError, match="record 0 of 1 cannot be read"):
        without_records(with_checksum(bytes(encoded)), {5})


def _search(directory: Path, erased: Collection[int], batches: Sequence[bytes]) -> FileSearch:
    (entry,) = (each for each in input_files(str(directory)) if each.path.endswith(".log"))
    pairs: list[tuple[int, int]] = []
    position = end = 0
    for each in batches:
        for message, offsets in _messages(each):
            pairs += [(position, offset) for offset in offsets if offset in erased]
            position += len(message)
            end = read_header(message, 0).last_offset + 1
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    nothing = np.zeros(len(pairs), dtype=np.int64)
    hits = Hits(
        found[:, 0], found[:, 1], nothing, nothing, nothing, nothing, nothing.astype(np.bool_)
    )
    return FileSearch(entry, position, hits, 0, end)


@given(segments(), st.data())
def test_a_log_without_some_records_has_exactly_the_others(
    made: tuple[list[bytes], list[Record]], data: st.DataObject
) -> None:
    # F1104, F1113: with its end where it was, and indexes as a broker's recovery rebuilds them.
    batches, records = made
    if not records:
        return
    erased = data.draw(st.sets(st.sampled_from([record.offset for record in records])))
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "orders-0"
        directory.mkdir()
        for kind in (".log", ".index", ".timeindex"):
            (directory / f"{_NAME}{kind}").write_bytes(joined(batches) if kind == ".log" else b"")
        search = _search(directory, erased, batches)
        path = Path(folder) / f"{_NAME}.log"
        written = erased_file(search, str(path), hashes=True)
        indexes = {each.path: each for each in input_files(str(directory))}
        list(erased_indexes(written, indexes, hashes=False))
        left = path.read_bytes()
        found = read_segment_records(left, read_ranges(left, 0))
        assert [(each.offset, each.key, each.value, each.headers) for each in found] == [
            (each.offset, each.key, each.value, each.headers)
            for each in records
            if each.offset not in erased
        ]
        assert all(part.fault.label == "none" for part in read_ranges(left, 0))
        last = list(frames(_in_memory(left)))[-1]
        assert last.header.last_offset + 1 == search.end_offset
        offsets = read_offset_index((Path(folder) / f"{_NAME}.index").read_bytes(), 0).entries
        positions = {frame.position for frame in frames(_in_memory(left))}
        assert {entry.position for entry in offsets} <= positions
        times = read_time_index((Path(folder) / f"{_NAME}.timeindex").read_bytes(), 0).entries
        largest = max(frame.header.max_timestamp_ms for frame in frames(_in_memory(left)))
        # An entry of nothing but zeros is taken for room (F103).
        if largest:
            expected = [largest] if largest > 0 else []
            assert [entry.timestamp_ms for entry in times][-1:] == expected


@given(segments(), st.data())
def test_the_records_of_a_key_are_found_and_no_others(
    made: tuple[list[bytes], list[Record]], data: st.DataObject
) -> None:
    # F1106.
    batches, records = made
    keys = sorted({record.key for record in records if record.key is not None})
    if not keys:
        return
    key = data.draw(st.sampled_from(keys))
    found = _searched(batches, Identifier(Kind.KEY, key))
    assert found.hits.offsets.tolist() == [record.offset for record in records if record.key == key]
    assert found.unsearched == ()
    assert found.records == len(records)


@given(segments(), st.binary(min_size=1, max_size=2))
def test_the_records_with_a_text_are_found_and_no_others(
    made: tuple[list[bytes], list[Record]], text: bytes
) -> None:
    # F1106, F1315: whatever the format, the codec and the other records of a batch are.
    batches, records = made
    found = _searched(batches, Identifier(Kind.TEXT, text))
    assert found.hits.offsets.tolist() == [
        record.offset for record in records if any(text in part for part in _parts(record))
    ]
    assert found.records == len(records)


@given(segments())
def test_values_that_nothing_decodes_are_counted_in_every_batch(
    made: tuple[list[bytes], list[Record]],
) -> None:
    # F1108, F1315: in batches without the text too.
    batches, records = made
    found = _searched(batches, Identifier(Kind.VALUE_PATH, b"unknown person", "$.id"))
    values = [record.value for record in records if record.value is not None]
    assert found.undecoded == len([each for each in values if not _may_be_json(each)])


def _parts(record: Record) -> list[bytes]:
    named = [part for name, value in record.headers for part in (name.encode(), value or b"")]
    return [record.key or b"", record.value or b"", *named]


def _may_be_json(value: bytes) -> bool:
    """Return whether a value begins as JSON and is UTF-8 without a zero: what is not may be encoded
    in any way."""
    try:
        return value.decode()[:1] in set('{["-0123456789tfn \t\r\n') and b"\0" not in value
    except UnicodeDecodeError:
        return False


def _searched(batches: Sequence[bytes], identifier: Identifier) -> FileSearch:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "orders-0"
        directory.mkdir()
        (directory / f"{_NAME}.log").write_bytes(joined(batches))
        (entry,) = input_files(str(directory))
        return search_file(entry, Wanted([identifier]))


def test_indexes_are_those_that_a_brokers_recovery_writes(tmp_path: Path) -> None:
    # F1113: of many small batches, where entries come up.
    batches = [data for data, _, _ in _chain(300)]
    directory = tmp_path / "orders-0"
    directory.mkdir()
    for kind in (".log", ".index", ".timeindex"):
        (directory / f"{_NAME}{kind}").write_bytes(joined(batches) if kind == ".log" else b"")
    erased = {record.offset for _, records, _ in _chain(300) for record in records[::7]}
    search = _search(directory, erased, batches)
    written = erased_file(search, str(tmp_path / f"{_NAME}.log"), hashes=False)
    indexes = {each.path: each for each in input_files(str(directory))}
    list(erased_indexes(written, indexes, hashes=False))
    left = (tmp_path / f"{_NAME}.log").read_bytes()
    rebuilt = rebuild_side_files(_in_memory(left), 0, ProducerState(), [])
    # A recovery counts bytes from another place (F114): the entries' batches are of the log.
    ours = read_offset_index((tmp_path / f"{_NAME}.index").read_bytes(), 0).entries
    positions = {frame.position: frame.header.last_offset
                 for frame in frames(_in_memory(left))}  # fmt: skip
    assert len(ours) > 5
    assert all(positions[entry.position] == entry.offset for entry in ours)
    last = read_time_index((tmp_path / f"{_NAME}.timeindex").read_bytes(), 0).entries[-1]
    assert last == read_time_index(rebuilt.timeindex, 0).entries[-1]


def _chain(count: int) -> list[tuple[bytes, list[Record], int]]:
    found = []
    for number in range(count):
        data = batch(number * 3, value=b"value" * 20)
        found.append((data, read_batch(data, 0), number * 3 + 3))
    return found
