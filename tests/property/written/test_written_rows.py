"""Any rows become the batches that the reference writer makes of the same records."""

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.writing.batch_encoder import BatchEncoder
from kafkalog.format.batch_header import LOG_APPEND_TIME, read_header
from kafkalog.format.record_batch import BatchFields, read_batch, write_batch
from kafkalog.format.records import Record
from kafkalog.wire.compression import CompressionType
from tests.support.logs.samples import fields, headers, timestamps

COLUMNS = (
    *("key", "value", "topic", "partition", "offset", "timestampType", "headers", "timestampMs"),
    *("leaderEpoch", "producerId", "producerEpoch", "sequence"),
)
_PRODUCERS = ((None, None, None), (7, 1, 0), (7, 1, 1), (8, 0, 2**31 - 1), (8, 0, None))


@st.composite
def written(draw: st.DrawFn) -> list[dict[str, object]]:
    """Rows of one partition, offsets with small and large holes, in the order of their offsets."""
    rows: list[dict[str, object]] = []
    offset = draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(0, 12))):
        producer, epoch, sequence = draw(st.sampled_from(_PRODUCERS))
        row: dict[str, object] = {
            "key": draw(fields),
            "value": draw(fields),
            "topic": "orders",
            "partition": 0,
            "offset": offset,
            "timestampType": draw(st.sampled_from((None, -1, 0, 0, 0, 1, 1))),
            "headers": [{"key": k, "value": v} for k, v in draw(headers)] or None,
            "timestampMs": draw(st.none() | timestamps | st.integers(5, 6)),
            "leaderEpoch": draw(st.sampled_from((None, 0, 0, 3))),
            "producerId": producer,
            "producerEpoch": epoch,
            "sequence": sequence,
        }
        rows.append(row)
        offset += draw(st.sampled_from((1, 1, 1, 2, 100, 2**31)))
    return rows


def as_arrow(rows: Sequence[dict[str, object]], skipped: int = 0) -> pa.RecordBatch:
    """The rows as Spark hands them over; as a part of a longer batch, if some are `skipped`."""
    schema = arrow_schema("records", COLUMNS)
    whole = [*(list(rows[:1]) * skipped), *rows]
    return pa.RecordBatch.from_pylist(whole, schema=schema).slice(min(skipped, len(whole)))


def record_of(row: dict[str, object]) -> Record:
    """What a consumer gets of the row, once written."""
    time, kind = row["timestampMs"], row["timestampType"]
    sent = tuple((item["key"], item["value"]) for item in row["headers"] or ())  # type: ignore[attr-defined]
    sequence = -1 if row["sequence"] is None else row["sequence"]
    return Record(
        row["offset"],  # type: ignore[arg-type]
        -1 if time is None else time,  # type: ignore[arg-type]
        int(kind == LOG_APPEND_TIME),
        row["key"],  # type: ignore[arg-type]
        row["value"],  # type: ignore[arg-type]
        sent,
        sequence,  # type: ignore[arg-type]
    )


@given(written(), st.sampled_from(CompressionType), st.integers(1, 400), st.integers(0, 2))
def test_batches_are_those_of_the_reference_writer(
    rows: list[dict[str, object]], compression: CompressionType, batch_bytes: int, skipped: int
) -> None:
    # F560 to F563.
    encoder = BatchEncoder(compression, batch_bytes)
    first = int(rows[0]["offset"]) if rows else 0  # type: ignore[call-overload]
    batches = list(encoder.batches(as_arrow(rows, skipped), first))
    found: list[Record] = []
    for batch in batches:
        header = read_header(batch, 0)
        records = read_batch(batch, 0)
        leaders = {
            row["leaderEpoch"] for row in rows if row["offset"] in {r.offset for r in records}
        }
        assert leaders == {None if header.leader_epoch == -1 else header.leader_epoch}
        twin = BatchFields(
            leader_epoch=header.leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            compression=compression,
            timestamp_type=header.timestamp_type,
        )
        assert batch == write_batch(records, twin)
        found += records
    assert found == [record_of(row) for row in rows]
    producers = [row["producerId"] for row in rows]
    assert producers == [
        None if header.producer_id == -1 else header.producer_id
        for batch in batches
        for header in [read_header(batch, 0)]
        for _ in range(header.records_count)
    ]


@given(written(), st.integers(70, 400))
def test_a_batch_is_larger_than_asked_only_with_a_single_record(
    rows: list[dict[str, object]], batch_bytes: int
) -> None:
    # F563.
    encoder = BatchEncoder(CompressionType.NONE, batch_bytes)
    for batch in encoder.batches(as_arrow(rows), 0):
        assert len(batch) <= batch_bytes or read_header(batch, 0).records_count == 1
