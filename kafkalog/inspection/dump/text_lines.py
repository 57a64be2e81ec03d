"""Columns as lines of text, without a Python object for each row: templates and escapes.

Text is for people: terminal commands and bytes that are not UTF-8 are escaped. JSON and CSV are
for programs and lose nothing: a value that is not UTF-8 is in base64. Rules:
docs/command-line.md F580 to F582.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import binaries
from kafkalog.columns.jit.compiled import ByteArray, LongArray
from kafkalog.inspection.dump.text_kernels import (
    BYTE_COLUMNS,
    BYTES,
    ESCAPE_BYTES,
    IS_BASE64,
    IS_NULL,
    IS_TEXT,
    LITERAL,
    NUMBER,
    NUMBER_CHARACTERS,
    SKIP,
    WORD,
    ByteColumn,
    Escaping,
    fill_escaped,
    fill_lines,
    measure_escaped,
)

_ASCII_END = 0x80
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _read_only(array: Any) -> Any:
    """Return a read-only view: the one type that kernels are compiled for."""
    view = array.view()
    view.flags.writeable = False
    return view


_ONE_ZERO = np.zeros(1, dtype=np.int64)
_NOTHING = ByteColumn(_read_only(np.zeros(1, dtype=np.uint8)), _ONE_ZERO, _ONE_ZERO)
_SOMETHING = _NOTHING._replace(borders=np.array([0, 1], dtype=np.int64))


def byte_column(array: pa.Array) -> ByteColumn:
    """Return an Arrow array of strings or bytes as a byte column, without copying the bytes."""
    data, borders, is_there = binaries(array)
    states = np.where(is_there, IS_TEXT, IS_NULL).astype(np.int64)
    return ByteColumn(data, borders.astype(np.int64), states)


def of_pieces(pieces: Sequence[tuple[bytes | None, int]]) -> ByteColumn:
    """Return a byte column of Python values and their states; None is null in any state."""
    borders = np.zeros(len(pieces) + 1, dtype=np.int64)
    np.cumsum([len(piece or b"") for piece, _ in pieces], out=borders[1:])
    data = np.frombuffer(b"".join(piece or b"" for piece, _ in pieces) or b"\0", dtype=np.uint8)
    states = [IS_NULL if piece is None else state for piece, state in pieces]
    return ByteColumn(_read_only(data), borders, np.array(states, dtype=np.int64))


def of_texts(texts: Sequence[bytes]) -> ByteColumn:
    """Return a byte column of texts."""
    return of_pieces([(text, IS_TEXT) for text in texts])


def spread(pieces: Mapping[int, bytes], rows: int) -> ByteColumn:
    """Return a byte column of `rows` rows that has bytes in those of `pieces`."""
    lengths = np.zeros(rows + 1, dtype=np.int64)
    for row, piece in pieces.items():
        lengths[row + 1] = len(piece)
    joined = of_texts([pieces[row] for row in sorted(pieces)])
    return ByteColumn(joined.data, np.cumsum(lengths), np.zeros(rows, dtype=np.int64))


def regrouped(column: ByteColumn, first: LongArray) -> ByteColumn:
    """Join rows of a column: row i of the result has rows first[i] to first[i + 1]."""
    return ByteColumn(column.data, column.borders[first], np.zeros(len(first) - 1, dtype=np.int64))


class LineFormat(Enum):
    """A form of text."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


def _escaping(
    escapes: Mapping[int, str], *, is_strict: bool, has_code_points: bool = False
) -> Escaping:
    costs = np.ones(256, dtype=np.int64)
    table = np.zeros((256, ESCAPE_BYTES), dtype=np.uint8)
    for byte, text in escapes.items():
        costs[byte] = len(text)
        table[byte, : len(text)] = np.frombuffer(text.encode(), dtype=np.uint8)
    alphabet = np.frombuffer(_ALPHABET, dtype=np.uint8)
    return Escaping(costs, table, is_strict, has_code_points, alphabet)


_CONTROLS = [byte for byte in range(0x20) if byte != ord("\t")]
_SHORT = {ord("\n"): "\\n", ord("\r"): "\\r"}
_ESCAPINGS = {
    LineFormat.TEXT: _escaping(
        {byte: f"\\x{byte:02x}" for byte in (*_CONTROLS, *range(0x7F, 0x100))} | _SHORT,
        is_strict=False,
    ),
    LineFormat.JSON: _escaping(
        {byte: json.dumps(chr(byte))[1:-1] for byte in (*range(0x20), ord('"'), ord("\\"))},
        is_strict=True,
        has_code_points=True,
    ),
    LineFormat.CSV: _escaping({ord('"'): '""'}, is_strict=True),
}


def escaped(column: ByteColumn, text_format: LineFormat) -> ByteColumn:
    """Return the values as a format escapes them, without quotes around them. A column without
    anything to escape is not copied."""
    escaping = _ESCAPINGS[text_format]
    if _is_plain(column, escaping):
        return column
    states, ends = column.states.copy(), np.zeros_like(column.borders)
    measured = column._replace(states=states)
    total = int(measure_escaped(measured, escaping, ends))
    if total == column.size and np.array_equal(states, column.states):
        return column
    target = np.empty(max(total, 1), dtype=np.uint8)
    fill_escaped(measured, escaping, ends, target)
    return ByteColumn(_read_only(target), ends, states)


def text_states(column: ByteColumn, text_format: LineFormat) -> LongArray:
    """Return the state of each value in text of a format."""
    escaping = _ESCAPINGS[text_format]
    states, ends = column.states.copy(), np.zeros_like(column.borders)
    if not _is_plain(column, escaping):
        measure_escaped(column._replace(states=states), escaping, ends)
    return states


def _is_plain(column: ByteColumn, escaping: Escaping) -> bool:
    """Return whether no byte needs an escape, by the smallest and the largest byte: most texts of a
    log are ASCII, and this is ten times as fast as checking each character."""
    content = column.data[column.borders[0] : column.borders[-1]]
    if not len(content):
        return True
    if (column.states == IS_BASE64).any():
        return False
    least, most = int(content.min()), int(content.max())
    return most < _ASCII_END and not (escaping.costs[least : most + 1] > 1).any()


def escaped_text(text: str, text_format: LineFormat) -> str:
    """Return one text as a format escapes it."""
    column = escaped(of_texts([text.encode("utf-8", "surrogateescape")]), text_format)
    return column.data[: column.size].tobytes().decode()


class Template:
    """The steps that write a line, added in order; numbers and byte columns have names."""

    def __init__(self) -> None:
        self._steps: list[tuple[int, int, int]] = []
        self._literals: list[bytes] = []
        self.numbers: list[str] = []
        self.byte_columns: list[str] = []
        self._room: ByteArray = np.empty(1, dtype=np.uint8)

    def text(self, literal: str) -> Template:
        """Write a text that is the same in every line."""
        self._steps.append((LITERAL, self._literal(literal), 0))
        return self

    def number(self, name: str, before: str = "") -> Template:
        """Write a number, with text before it."""
        if before:
            self.text(before)
        self._steps.append((NUMBER, self._number(name), 0))
        return self

    def word(self, name: str, words: Sequence[str], before: str = "") -> Template:
        """Write the word whose index a number is, with text before it."""
        if before:
            self.text(before)
        first = len(self._literals)
        self._literals += [word.encode() for word in words]
        self._steps.append((WORD, self._number(name), first))
        return self

    def bytes_of(self, name: str) -> Template:
        """Write the bytes of a column."""
        self._steps.append((BYTES, self._column(name), 0))
        return self

    def only_if(self, name: str, part: Template) -> Template:
        """Write what another template writes if a number is not 0."""
        self._steps.append((SKIP, self._number(name), len(part._steps)))
        shift = len(self._literals)
        self._literals += part._literals
        for what, argument, other in part._steps:
            if what == LITERAL:
                self._steps.append((what, argument + shift, other))
            elif what == BYTES:
                self._steps.append((what, self._column(part.byte_columns[argument]), other))
            else:
                moved = other + shift if what == WORD else other
                self._steps.append((what, self._number(part.numbers[argument]), moved))
        return self

    def _literal(self, text: str) -> int:
        self._literals.append(text.encode("utf-8", "surrogateescape"))
        return len(self._literals) - 1

    def _number(self, name: str) -> int:
        if name not in self.numbers:
            self.numbers.append(name)
        return self.numbers.index(name)

    def _column(self, name: str) -> int:
        if name not in self.byte_columns:
            self.byte_columns.append(name)
        return self.byte_columns.index(name)

    def lines(
        self, rows: int, numbers: Mapping[str, Any], columns: Mapping[str, ByteColumn]
    ) -> ByteColumn:
        """Return the lines of `rows` rows, from numbers (an array, or one for all rows) and byte
        columns by name; valid until the next call."""
        given = [columns[name] for name in self.byte_columns]
        program = _Program(self._literals, rows, [numbers[name] for name in self.numbers], given)
        program.add(self._steps)
        steps = np.array(program.steps, dtype=np.int64).reshape(-1, 3)
        literals = of_texts([*program.literals, b""])
        varying = np.empty((max(len(program.varying), 1), rows), dtype=np.int64)
        for row, index in zip(varying, program.varying, strict=False):
            row[:] = program.numbers[index]
        most = rows * program.most_characters() + sum(column.size for column in given)
        if len(self._room) < most:
            self._room = np.empty(2 * most, dtype=np.uint8)
        target, ends = self._room, np.zeros(rows + 1, dtype=np.int64)
        six = (*given, *[_NOTHING] * (BYTE_COLUMNS - len(given)))
        fill_lines(steps, literals, varying, six, target, ends)
        return ByteColumn(_read_only(target), ends, np.zeros(rows, dtype=np.int64))

    def parts_of_one(
        self, numbers: Mapping[str, Any], columns: Mapping[str, ByteColumn]
    ) -> Iterator[bytes | str]:
        """Yield the parts of the line of one row: texts, and the names of byte columns, including
        those that `columns` lacks."""
        given = [columns.get(name, _SOMETHING) for name in self.byte_columns]
        program = _Program(self._literals, 1, [numbers[name] for name in self.numbers], given)
        program.add(self._steps)
        # In a single row all numbers are the same.
        for what, argument, _ in program.steps:
            yield program.literals[argument] if what == LITERAL else self.byte_columns[argument]


class _Program:
    """The steps that are left of a template where numbers are the same in all rows and columns are
    empty: mostly what a topic's records have in common is one literal then."""

    def __init__(
        self,
        literals: Sequence[bytes],
        rows: int,
        numbers: Sequence[Any],
        columns: Sequence[ByteColumn],
    ) -> None:
        self.literals = list(literals)
        self.steps: list[tuple[int, int, int]] = []
        self.numbers = numbers
        self.varying: list[int] = []  # the numbers that differ
        self._same = [_same(number, rows) for number in numbers]
        self._columns = columns
        self._literal = b""  # what comes next, before any other step

    def add(self, steps: Sequence[tuple[int, int, int]]) -> None:
        """Append what is left of the steps."""
        self._add(steps)
        self._end_literal()

    def _add(self, steps: Sequence[tuple[int, int, int]]) -> None:
        index = 0
        while index < len(steps):
            what, argument, other = steps[index]
            index += 1
            if what == SKIP:
                self._add_part(argument, steps[index : index + other])
                index += other
            elif what == LITERAL:
                self._literal += self.literals[argument]
            elif what == BYTES:
                if self._columns[argument].size:
                    self._step(what, argument)
            elif (same := self._same[argument]) is None:
                self._step(what, self._varying(argument), other)
            else:
                self._literal += b"%d" % same if what == NUMBER else self.literals[other + same]

    def most_characters(self) -> int:
        """Return the most characters that a line has besides the bytes of columns."""
        longest = max(map(len, self.literals), default=0)
        most = {LITERAL: longest, WORD: longest, NUMBER: NUMBER_CHARACTERS}
        return sum(most.get(what, 0) for what, _, _ in self.steps)

    def _add_part(self, argument: int, part: Sequence[tuple[int, int, int]]) -> None:
        """Append steps for the rows whose number is not 0."""
        same = self._same[argument]
        if same is not None:
            if same:
                self._add(part)
            return
        self._end_literal()
        place = len(self.steps)
        self.steps.append((SKIP, 0, 0))
        varying = self._varying(argument)
        self.add(part)
        self.steps[place] = SKIP, varying, len(self.steps) - place - 1

    def _varying(self, argument: int) -> int:
        if argument not in self.varying:
            self.varying.append(argument)
        return self.varying.index(argument)

    def _step(self, what: int, argument: int, other: int = 0) -> None:
        self._end_literal()
        self.steps.append((what, argument, other))

    def _end_literal(self) -> None:
        if self._literal:
            self.steps.append((LITERAL, len(self.literals), 0))
            self.literals.append(self._literal)
            self._literal = b""


def _same(number: Any, rows: int) -> int | None:
    """Return the value that a number has in all rows, None if it differs."""
    if not isinstance(number, np.ndarray):
        return int(number)
    if not rows or number[0] != number[-1] or (number != number[0]).any():
        return None
    return int(number[0])
