"""One search through all bytes of a column finds the rows that a search per row finds."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.inspection.erasure.byte_search import ByteColumn, ByteRows

_TEXTS = st.text("ab", max_size=150).map(str.encode)


@given(st.lists(st.none() | _TEXTS), st.text("ab", min_size=1, max_size=9), st.integers(0, 3))
def test_rows_are_those_that_have_the_text(rows: list[bytes | None], text: str, first: int) -> None:
    column = pa.array(rows, pa.binary())[first:]
    expected = [row is not None and text.encode() in row for row in rows[first:]]
    assert ByteColumn(column).with_text(text.encode()).tolist() == expected


def test_rows_need_not_touch_and_bytes_between_them_are_of_none() -> None:
    data = np.frombuffer(b"ab-person-x" * 40, dtype=np.uint8)
    begins = np.arange(0, len(data), 11)
    whole = ByteRows(data, begins, begins + 11)
    assert whole.with_text(b"person").all()
    assert ByteRows(data, begins, begins + 8).with_text(b"person").sum() == 0
    assert ByteRows(data, begins + 3, begins + 9).with_text(b"person").all()


def test_an_empty_text_is_in_every_row_that_is_there() -> None:
    column = pa.array([b"xa", None, b""], pa.binary())
    assert ByteColumn(column).with_text(b"").tolist() == [True, False, True]
