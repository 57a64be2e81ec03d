"""Large records as text: what is written piece by piece is what would be written at once. F57"""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.records import record_columns
from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.dump import dump_log, text_pieces
from kafkalog.inspection.dump.dump_lines import DumpedFile
from kafkalog.inspection.dump.dump_log import DumpOptions, LogDump
from kafkalog.inspection.dump.text_lines import LineFormat
from kafkalog.wire.compression import CompressionType
from tests.support.logs.both_readers import memory_window

FILE = DumpedFile("orders-0/00000000000000000000.log", "orders", 0)
# Letters, what is escaped in one format or another, and characters of two, three and four bytes.
TEXTS = st.text(st.sampled_from('ab",\\\n\x1b\x7f\x85\xe9\u20ac\U0001f600')).map(str.encode)
VALUES = st.none() | TEXTS | st.binary(max_size=30) | st.builds(bytes.__add__, TEXTS, st.binary())
HEADERS = st.lists(st.tuples(st.text("k\xe9\n", max_size=9), VALUES), max_size=7).map(tuple)


def text(data: bytes, text_format: LineFormat) -> bytes:
    options = DumpOptions(text_format, is_deep=True)
    dump = LogDump(memory_window(data), SegmentOptions(0), FILE, options)
    return b"".join(bytes(piece.text) for piece in dump.pieces())


@pytest.mark.parametrize("text_format", LineFormat)
@given(st.lists(st.tuples(VALUES, VALUES, HEADERS), min_size=1, max_size=3), st.booleans())
def test_a_line_in_pieces_is_the_line(
    text_format: LineFormat,
    given_records: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
    is_old: bool,
) -> None:
    records = [Record(i, 1000 + i, 0, *parts) for i, parts in enumerate(given_records)]
    old = write_message_set(records, 1, CompressionType.GZIP)
    data = old if is_old else write_batch(records)
    whole = text(data, text_format)
    with (
        patch.multiple(dump_log, OUTPUT_BYTES=0),
        patch.multiple(record_columns, OUTPUT_BYTES=0, _PIECE_BYTES=0),
        patch.multiple(text_pieces, PIECE_BYTES=6, _HEADERS_AT_A_TIME=2),
    ):
        assert text(data, text_format) == whole
