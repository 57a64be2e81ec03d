"""One search through all bytes of a column finds the rows that a search per row finds."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.inspection.erasure import byte_search
from kafkalog.inspection.erasure.byte_search import ByteColumn

_TEXTS = st.text("ab", max_size=5).map(str.encode)


@given(st.lists(st.none() | _TEXTS), st.text("ab", min_size=1, max_size=3), st.integers(0, 3))
def test_rows_are_those_that_have_the_text(rows: list[bytes | None], text: str, first: int) -> None:
    column = pa.array(rows, pa.binary())[first:]
    expected = [row is not None and text.encode() in row for row in rows[first:]]
    assert ByteColumn(column).with_text(text.encode()).tolist() == expected


def test_many_matches_are_found_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_search, "_MOST_MATCHES", 3)
    column = pa.array([b"xa", b"", b"ax", None, b"a", b"a", b"x", b"a"], pa.binary())
    found = ByteColumn(column).with_text(b"a").tolist()
    assert found == [True, False, True, False, True, True, False, True]


def test_an_empty_text_is_in_every_row_that_is_there() -> None:
    column = pa.array([b"xa", None, b""], pa.binary())
    assert ByteColumn(column).with_text(b"").tolist() == [True, False, True]
