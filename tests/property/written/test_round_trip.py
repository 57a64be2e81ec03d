"""What is written is read, by both readers, in every format and codec."""

from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.records import Record
from tests.support.logs.both_readers import COLUMNS, by_kernels, by_reference
from tests.support.logs.samples import joined, segments


@given(segments(), st.booleans())
def test_both_readers_give_back_what_was_written(
    segment: tuple[list[bytes], list[Record]], in_pieces: bool
) -> None:
    # F1 to F3, F17, F21 to F24, F44 to F48, F102
    batches, expected = segment
    data = joined(batches)
    account, rows = by_reference(data, 0)
    assert [row[2] for row in account] == ["none"] * len(account)
    assert [_as_record(row) for row in rows] == expected
    assert by_kernels(data, 0, in_pieces=in_pieces) == (account, rows)


def _as_record(values: tuple[object, ...]) -> Record:
    row = dict(zip(COLUMNS, values, strict=True))
    headers = tuple((item["key"], item["value"]) for item in row["headers"] or ())  # type: ignore[attr-defined]
    sequence = -1 if row["sequence"] is None else row["sequence"]
    return Record(
        row["offset"],  # type: ignore[arg-type]
        row["timestampMs"],  # type: ignore[arg-type]
        row["timestampType"],  # type: ignore[arg-type]
        row["key"],  # type: ignore[arg-type]
        row["value"],  # type: ignore[arg-type]
        headers,
        sequence,  # type: ignore[arg-type]
    )
