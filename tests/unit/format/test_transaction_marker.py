"""Transaction markers in every shape that a control batch can have. Rule: docs/format.md F112."""

import struct

import pytest

from kafkalog.format.batch_header import CREATE_TIME, LOG_APPEND_TIME
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record, RecordHeader
from kafkalog.format.transaction_marker import (
    ABORT,
    COMMIT,
    TransactionMarker,
    read_marker,
    write_marker,
)
from kafkalog.wire.compression import CompressionType

START_MS = 1_700_000_000_000
USUAL_BYTES = 78


def control_batch(
    kind: int, more: bytes = b"", headers: tuple[RecordHeader, ...] = (), **fields: object
) -> bytes:
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 42) + more
    record = Record(5, START_MS, CREATE_TIME, key, value, headers)
    common = {"producer_id": 7, "producer_epoch": 1, "is_transactional": True, "is_control": True}
    return write_batch([record], BatchFields(**{**common, **fields}))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [ABORT, COMMIT, 3])
def test_a_marker_is_the_same_in_the_usual_bytes_and_in_any_others(kind: int) -> None:
    # F112
    marker = TransactionMarker(kind, 42, START_MS)
    usual = control_batch(kind)
    others = [
        control_batch(kind, more=b"later"),
        control_batch(kind, headers=(("a", b""),)),
        control_batch(kind, compression=CompressionType.GZIP),
        control_batch(kind, delete_horizon_ms=START_MS + 9),
    ]
    assert len(usual) == USUAL_BYTES
    assert [read_marker(batch) for batch in (usual, *others)] == [marker] * 5


def test_a_marker_has_the_time_of_its_appending_where_that_counts() -> None:
    # F112
    batch = control_batch(ABORT, timestamp_type=LOG_APPEND_TIME, max_timestamp_ms=START_MS + 9)
    assert len(batch) == USUAL_BYTES
    assert read_marker(batch) == TransactionMarker(ABORT, 42, START_MS + 9)


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_a_written_marker_has_the_bytes_of_the_usual_one(kind: int) -> None:
    # F112
    fields = BatchFields(producer_id=7, producer_epoch=1)
    assert write_marker(TransactionMarker(kind, 42, START_MS), 5, fields) == control_batch(kind)
