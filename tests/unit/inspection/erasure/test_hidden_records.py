"""Places in which a person's records hide from a search by records. Rules: docs/erasure.md F1108,
F1110, F1111, F1260, F1261.

The batches are written by hand here, from Kafka's message format.
"""

import struct
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from kafkalog.columns.records.record_metadata import record_schema
from kafkalog.format.record_batch import with_checksum
from kafkalog.inspection.erasure.file_search import Wanted
from kafkalog.inspection.erasure.identifiers import Identifier, Kind
from kafkalog.inspection.erasure.record_matching import RecordMatcher
from kafkalog.questions.disks.erasure import Erasure, ErasureRequest, listed_files, search_files
from kafkalog.storage.log_dir.metadata_snapshots import BOOTSTRAP

PERSON = b"cust-17"
_LOG = f"{0:020d}.log"


def _record(delta: int, key: bytes) -> bytes:
    # Attributes, time and offset delta, key, value, no headers; small numbers as zigzag varints.
    body = b"\0\0" + bytes([delta * 2, len(key) * 2]) + key + b"\2v\0"
    return bytes([len(body) * 2]) + body


def _batch(base: int, records: Sequence[bytes], count: int | None = None) -> bytes:
    payload = b"".join(records)
    header = struct.pack(
        ">qiibIhiqqqhii",
        *(base, 49 + len(payload), 0, 2, 0, 0, len(records) - 1, 10**12, 10**12, -1, -1, -1),
        len(records) if count is None else count,
    )
    return with_checksum(header + payload)


def _searched(directory: Path) -> Erasure:
    wanted = Wanted([Identifier(Kind.KEY, PERSON)])
    request = ErasureRequest([str(directory)], wanted)
    return search_files(request, listed_files(request), processes=1)


def _partition(directory: Path, data: bytes) -> Path:
    partition = directory / "orders-0"
    partition.mkdir(parents=True)
    (partition / _LOG).write_bytes(data)
    return partition


@pytest.mark.parametrize(
    ("data", "unsearched", "position"),
    [
        # A broker stopped while it wrote the record.
        (_batch(0, [_record(0, b"k")]) + _batch(1, [_record(0, PERSON)])[:-2], 74, 136),
        # A header that announces no record, with one after it.
        (_batch(0, [_record(0, PERSON)], count=0), 15, 66),
        # A header that announces fewer.
        (_batch(0, [_record(0, b"k"), _record(1, PERSON)], count=1), 85, 75),
        # A wrong checksum.
        (_batch(0, [_record(0, PERSON)])[:-1] + b"\2", 76, 66),
    ],
)
def test_a_record_that_nothing_reads_is_not_claimed_to_be_absent(
    data: bytes, unsearched: int, position: int, tmp_path: Path
) -> None:
    # F1108, F1260.
    _partition(tmp_path, data)
    erasure = _searched(tmp_path)
    (search,) = erasure.searches
    assert len(search.hits) == 0
    assert not erasure.is_complete
    assert sum(each.size for each in search.unsearched) == unsearched
    (place,) = search.unsearched
    assert f"the bytes of an identifier are at position {position}" in place.why


def test_zeros_that_a_broker_took_in_advance_hide_nothing(tmp_path: Path) -> None:
    # F1108.
    _partition(tmp_path, _batch(0, [_record(0, b"k")]) + bytes(5000))
    assert _searched(tmp_path).is_complete


@pytest.mark.parametrize("name", [f"{_LOG}.bak", f"{_LOG}.1", "1.kafka"])
def test_a_file_that_brokers_do_not_write_is_a_finding(name: str, tmp_path: Path) -> None:
    # F1110, F1111, F1260.
    partition = _partition(tmp_path, _batch(0, [_record(0, b"k")]))
    assert _searched(tmp_path).is_complete
    (partition / name).write_bytes(_batch(0, [_record(0, PERSON)]))
    erasure = _searched(tmp_path)
    assert not erasure.is_complete
    assert erasure.words().endswith("NOT SEARCHED: 1 file")
    (line,) = erasure.notes()
    assert name in line
    assert line.endswith("the bytes of an identifier are at position 66")
    (partition / name).write_bytes(b"")
    assert _searched(tmp_path).is_complete


def test_directories_far_down_are_named(tmp_path: Path) -> None:
    # F1110.
    _partition(tmp_path, _batch(0, [_record(0, b"k")]))
    _partition(tmp_path / "1/2/3/4/5/6/7/8/9", _batch(0, [_record(0, PERSON)]))
    erasure = _searched(tmp_path)
    assert not erasure.is_complete
    assert [each.endswith("give it as a PATH of its own") for each in erasure.notes()] == [True]


def test_links_to_directories_are_followed_and_broken_ones_are_named(tmp_path: Path) -> None:
    # F1110.
    elsewhere = _partition(tmp_path / "elsewhere", _batch(0, [_record(0, PERSON)]))
    log_dir = tmp_path / "kafka"
    log_dir.mkdir()
    (log_dir / "orders-0").symlink_to(elsewhere)
    assert _searched(log_dir).totals.matches == 1
    (log_dir / "orders-1").symlink_to(tmp_path / "gone")
    assert not _searched(log_dir).is_complete


def test_files_beside_logs_that_name_an_identifier_are_named(tmp_path: Path) -> None:
    # F1260: metadata has names of users and clients.
    _partition(tmp_path, _batch(0, [_record(0, b"k")]))
    (tmp_path / BOOTSTRAP).write_bytes(b"...User:" + PERSON)
    erasure = _searched(tmp_path)
    (line,) = erasure.notes()
    assert line.endswith("stays as it is, the bytes of an identifier are at position 8")
    assert erasure.is_complete


def _records(*values: bytes) -> pa.RecordBatch:
    columns = {"key": [b"k"] * len(values), "value": values, "headers": [[] for _ in values]}
    return pa.RecordBatch.from_pydict(columns, schema=record_schema(tuple(columns)))


def test_values_that_begin_like_json_by_chance_are_not_decoded() -> None:
    # F1108: a text of 34 bytes as snappy has it, whose length begins like a JSON text; JSON in
    # UTF-16; Protobuf, whose first field begins like white space.
    snappy = b'"\x84{"customer": "cust-17", "amount": 1}'
    utf16 = '{"customer": "cust-17"}'.encode("utf-16-le")
    protobuf = b"\x0a\x02ab\x10\xff\xff\x01"
    records = _records(snappy, utf16, protobuf, b'{"customer": "cust-18"}')
    matcher = RecordMatcher([Identifier(Kind.VALUE_PATH, PERSON, "$.customer")])
    assert not matcher.matches(records).any()
    assert matcher.undecoded == 3


def test_a_text_is_found_as_json_escapes_it() -> None:
    # F1261: json.dumps of Python, Jackson with ESCAPE_NON_ASCII, and PHP's json_encode.
    records = _records(
        b'{"name": "M\\u00fcller"}', b'{"name": "M\\u00FCller"}', "Müller".encode(), b"Muller"
    )
    matcher = RecordMatcher([Identifier(Kind.TEXT, "Müller".encode())])
    assert matcher.matches(records).tolist() == [True, True, True, False]
    slashed = RecordMatcher([Identifier(Kind.TEXT, b"a/b")])
    assert slashed.matches(_records(b"a\\/b", b"a/b", b"ab")).tolist() == [True, True, False]


def test_numbers_are_found_in_each_form() -> None:
    # F1107: forms that RFC 8259 allows.
    records = _records(b"[1700]", b"[1700.00]", b"[17e2]", b"[1.7E+3]", b"[-1700]", b"[170]")
    matcher = RecordMatcher([Identifier(Kind.VALUE_PATH, b"1700", "$[0]")])
    assert matcher.matches(records).tolist() == [True, True, True, True, False, False]
    half = RecordMatcher([Identifier(Kind.VALUE_PATH, b"0.50", "$[0]")])
    assert half.matches(_records(b"[0.5]", b"[5e-1]", b"[0.500]")).tolist() == [True] * 3


def test_adjacent_ranges_are_one_line_and_few_lines_are_shown(tmp_path: Path) -> None:
    # F1108, F1260: what has an identifier's bytes comes first, wherever it is.
    def damaged(offset: int, key: bytes) -> bytes:
        return _batch(offset, [_record(0, key)])[:-1] + b"\2"

    sound = _batch(2, [_record(0, b"k")])
    _partition(tmp_path / "0", damaged(0, b"a") + damaged(1, b"b") + sound)
    for number in range(1, 30):
        _partition(tmp_path / str(number), damaged(0, PERSON if number == 29 else b"a"))
    erasure = _searched(tmp_path)
    assert sum(len(each.unsearched) for each in erasure.searches) == 31
    lines = [line for line in erasure.notes() if line.startswith("not searched: ")]
    assert len(lines) == 22
    assert f"{tmp_path}/29/" in lines[0]
    assert "the bytes of an identifier are at position" in lines[0]
    size = len(damaged(0, b"a") + damaged(1, b"b"))
    assert f"/0/orders-0/{_LOG}: position 0, {size} bytes in 2 ranges, the first: " in lines[1]
    assert lines[-1].startswith("not searched: 9 more places, none with the bytes")


def test_every_place_with_the_bytes_of_an_identifier_is_named(tmp_path: Path) -> None:
    # F1260
    for number in range(30):
        _partition(tmp_path / str(number), _batch(0, [_record(0, PERSON)])[:-1] + b"\2")
    lines = [line for line in _searched(tmp_path).notes() if line.startswith("not searched: ")]
    assert len(lines) == 30
    assert all("the bytes of an identifier are at position" in line for line in lines)
