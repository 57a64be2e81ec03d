"""The line of one record that is too large to be text all at once: escapes take up to six times
what they stand for. Rule: docs/format.md F57."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kafkalog.inspection.dump.text_kernels import IS_TEXT, ByteColumn
from kafkalog.inspection.dump.text_lines import (
    LineFormat,
    Template,
    byte_column,
    escaped,
    of_texts,
    text_states,
)

# Whole groups of base64.
PIECE_BYTES = 3 * 256 * 1024
_HEADERS_AT_A_TIME = 16 * 1024
_FOLLOWERS = range(0x80, 0xC0)
_MOST_FOLLOWERS = 3


@dataclass(frozen=True)
class LongText:
    """A value of one row that is escaped piece by piece; `state` says what becomes of it."""

    column: ByteColumn
    text_format: LineFormat
    state: int

    def pieces(self) -> Iterator[bytes]:
        """Yield the text."""
        begin, end = self.column.borders.tolist()
        states = np.array([self.state])
        while begin < end:
            stop = self._cut(begin + PIECE_BYTES, end)
            part = ByteColumn(self.column.data, np.array([begin, stop]), states)
            yield bytes_of(escaped(part, self.text_format))
            begin = stop

    def _cut(self, place: int, end: int) -> int:
        """Return a place at or before this one that is not within a character."""
        if place >= end or self.state != IS_TEXT:
            return min(place, end)
        for cut in range(place, place - _MOST_FOLLOWERS - 1, -1):
            if self.column.data[cut] not in _FOLLOWERS:
                return cut
        return place  # not UTF-8


def long_text(column: ByteColumn, text_format: LineFormat) -> LongText:
    """Return the text of a column's only row."""
    return LongText(column, text_format, int(text_states(column, text_format)[0]))


@dataclass(frozen=True)
class LongHeaders:
    """The headers of one record, escaped some at a time; `keys` and `entries` are how the key and
    the whole of each are written."""

    headers: pa.Array
    keys: Template
    entries: Template
    text_format: LineFormat

    def key_pieces(self) -> Iterator[bytes]:
        """Return the keys alone."""
        return self._pieces(self.keys)

    def pieces(self) -> Iterator[bytes]:
        """Return keys and values."""
        pieces = self._pieces(self.entries)
        if self.text_format is not LineFormat.CSV:
            return pieces
        # What is JSON is quoted once more; no piece ends within a character.
        return (bytes_of(escaped(of_texts([piece]), LineFormat.CSV)) for piece in pieces)

    def _pieces(self, template: Template) -> Iterator[bytes]:
        inner = inner_format(self.text_format)
        for start, end in self._groups():
            some = self.headers.slice(start, end - start)
            columns = {name: byte_column(some.field(name)) for name in ("key", "value")}
            is_first = (np.arange(start, end) == 0).astype(np.int64)
            if end - start == 1:
                texts = {name: long_text(column, inner) for name, column in columns.items()}
                numbers: dict[str, Any] = {"isFirst": is_first, "is": texts["value"].state}
                sources = {name: text.pieces for name, text in texts.items()}
                yield from line_pieces(template, numbers, {}, sources)
            else:
                columns = {name: escaped(column, inner) for name, column in columns.items()}
                numbers = {"isFirst": is_first, "is": columns["value"].states}
                yield bytes_of(template.lines(end - start, numbers, columns))

    def _groups(self) -> Iterator[tuple[int, int]]:
        """Yield spans of headers with a bounded number of headers and bytes, or of a single one."""
        keys, values = (byte_column(self.headers.field(name)) for name in ("key", "value"))
        sizes = np.cumsum(np.diff(keys.borders) + np.diff(values.borders))
        start, before = 0, 0
        while start < len(self.headers):
            fitting = int(np.searchsorted(sizes, before + PIECE_BYTES, side="right"))
            end = max(min(fitting, start + _HEADERS_AT_A_TIME), start + 1)
            yield start, end
            start, before = end, int(sizes[end - 1])


def inner_format(text_format: LineFormat) -> LineFormat:
    """Return the format of headers in a format: JSON within CSV."""
    return LineFormat.JSON if text_format is LineFormat.CSV else text_format


def line_pieces(
    template: Template,
    numbers: Mapping[str, Any],
    columns: Mapping[str, ByteColumn],
    sources: Mapping[str, Callable[[], Iterator[bytes]]],
) -> Iterator[bytes]:
    """Yield the line of one row as `Template.lines` makes it; `sources` yield the large values."""
    for part in template.parts_of_one(numbers, columns):
        if isinstance(part, bytes):
            yield part
        elif part in sources:
            yield from sources[part]()
        else:
            yield bytes_of(columns[part])


def bytes_of(column: ByteColumn) -> bytes:
    """Return all bytes of a column."""
    return column.data[column.borders[0] : column.borders[-1]].tobytes()
