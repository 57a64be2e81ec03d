"""Kernels that write columns as lines of text. Rules: docs/command-line.md F580 to F582.

A line is written by steps: an int64 array of shape (steps, 3) with the columns OPERATION, ARGUMENT
and SECOND_ARGUMENT.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kafkalog.columns.jit.compiled import (
    ByteArray,
    LongArray,
    copy_bytes,
    inlined_kernel,
    kernel,
    long,
)

OPERATION, ARGUMENT, SECOND_ARGUMENT = range(3)
# The operations. LITERAL a: write literal a. NUMBER a: write number a. WORD a, b: write literal
# b + number a. BYTES a: write the value of byte column a. SKIP a, b: skip the next b steps if
# number a is 0.
LITERAL, NUMBER, WORD, BYTES, SKIP = range(5)
BYTE_COLUMNS = 6
NUMBER_CHARACTERS = 20
# The states of a value: text, base64, null, or JSON already.
IS_TEXT, IS_BASE64, IS_NULL, IS_JSON = range(4)
ESCAPE_BYTES = 6

_MOST_DIGITS = 19
_MINUS, _ZERO, _PADDING = ord("-"), ord("0"), ord("=")
_BACKSLASH, _LETTER_U, _LETTER_A = ord("\\"), ord("u"), ord("a")
# The characters of a code point as JSON escapes it: a backslash, u and four digits.
_CODE_POINT_BYTES = 6


class ByteColumn(NamedTuple):
    """The values of a column: row i has data[borders[i]:borders[i + 1]], states[i] is IS_TEXT,
    IS_BASE64, IS_NULL or IS_JSON."""

    data: ByteArray
    borders: LongArray
    states: LongArray

    @property
    def size(self) -> int:
        """Return the bytes of all rows."""
        return int(self.borders[-1] - self.borders[0])

    @property
    def lengths(self) -> LongArray:
        """Return the bytes of each row, -1 for null."""
        return np.where(self.states == IS_NULL, -1, np.diff(self.borders))


class Escaping(NamedTuple):
    """How a format escapes bytes. `costs` (int64, 256) are the characters that each byte takes: 1
    if it needs no escape. `escapes` (256 rows of ESCAPE_BYTES) are those of the others.

    In a strict format, bytes that are not UTF-8 turn the whole value into base64. Characters of
    several bytes that a terminal acts on are escaped byte by byte in a format that is not strict,
    as code points in one that `has_code_points`, and not in others.
    """

    costs: LongArray
    escapes: ByteArray
    is_strict: bool
    has_code_points: bool
    alphabet: ByteArray


@inlined_kernel
def _put_number(value: int, target: ByteArray, at: int) -> int:
    """Write a number in decimal. Return the position after it."""
    rest, last = value // 10, value % 10
    if value < 0:
        target[at] = _MINUS
        at += 1
        # The smallest number has no positive counterpart.
        rest, last = (-rest, last) if last == 0 else (-(rest + 1), 10 - last)
    digits, bound = 1, 1
    while digits < _MOST_DIGITS and rest >= bound:
        bound *= 10
        digits += 1
    index = at + digits - 1
    target[index] = _ZERO + last
    while rest >= 10:
        pair, rest = rest % 100, rest // 100
        tens = pair // 10
        target[index - 1] = _ZERO + pair - 10 * tens
        target[index - 2] = _ZERO + tens
        index -= 2
    if rest > 0:
        target[index - 1] = _ZERO + rest
    return at + digits


@inlined_kernel
def _put_bytes(column: ByteColumn, row: int, target: ByteArray, at: int) -> int:
    begin, end = column.borders[row], column.borders[row + 1]
    copy_bytes(target, at, column.data, begin, end - begin)
    return at + long(end - begin)


@kernel
def fill_lines(
    steps: LongArray,
    literals: ByteColumn,
    numbers: LongArray,
    columns: tuple[ByteColumn, ...],
    target: ByteArray,
    ends: LongArray,
) -> int:
    """Write a line for every row into `target`, which has room for the longest possible ones.

    `numbers` has shape (numbers, rows); there are BYTE_COLUMNS columns; ends[1:] become the ends of
    the lines. Returns the number of bytes.
    """
    at = long(0)
    for row in range(len(ends) - 1):
        step = 0
        while step < len(steps):
            operation, argument = steps[step, OPERATION], steps[step, ARGUMENT]
            if operation == LITERAL:
                at = _put_bytes(literals, argument, target, at)
            elif operation == NUMBER:
                at = _put_number(numbers[argument, row], target, at)
            elif operation == WORD:
                word = steps[step, SECOND_ARGUMENT] + numbers[argument, row]
                at = _put_bytes(literals, word, target, at)
            elif operation == BYTES:
                at = _put_bytes(columns[argument], row, target, at)
            elif numbers[argument, row] == 0:
                step += steps[step, SECOND_ARGUMENT]
            step += 1
        ends[row + 1] = at
    return at


@inlined_kernel
def _utf8_size(data: ByteArray, index: int, end: int) -> int:
    """Return the size of the UTF-8 character of several bytes at `index`, 0 if it is none."""
    first = long(data[index])
    size = 2 if first < 0xE0 else (3 if first < 0xF0 else 4)
    if first < 0xC2 or first > 0xF4 or index + size > end:
        return 0
    second = long(data[index + 1])
    least, most = 0x80, 0xBF
    if first == 0xE0:
        least = 0xA0
    elif first == 0xED:
        most = 0x9F
    elif first == 0xF0:
        least = 0x90
    elif first == 0xF4:
        most = 0x8F
    if second < least or second > most:
        return 0
    for position in range(index + 2, index + size):
        if data[position] & 0xC0 != 0x80:
            return 0
    return size


@inlined_kernel
def _code_point(data: ByteArray, index: int, size: int) -> int:
    """Return the character of `size` bytes at `index`, 0 if it has four."""
    if size == 2:
        return ((long(data[index]) & 0x1F) << 6) | (long(data[index + 1]) & 0x3F)
    if size == 3:
        low = ((long(data[index + 1]) & 0x3F) << 6) | (long(data[index + 2]) & 0x3F)
        return ((long(data[index]) & 0x0F) << 12) | low
    return long(0)


@inlined_kernel
def _is_command(code: int) -> bool:
    """Return whether a terminal acts on a character: it is a control, ends a line, or turns the
    direction in which what follows is shown (Unicode's UAX 9)."""
    return (
        0x80 <= code < 0xA0
        or code == 0x061C
        or 0x200E <= code <= 0x200F
        or 0x2028 <= code <= 0x202E
        or 0x2066 <= code <= 0x2069
    )


@inlined_kernel
def _put_code_point(code: int, target: ByteArray, at: int) -> None:
    target[at], target[at + 1] = _BACKSLASH, _LETTER_U
    for place in range(4):
        digit = (code >> (12 - 4 * place)) & 15
        target[at + 2 + place] = _ZERO + digit if digit < 10 else _LETTER_A + digit - 10


@kernel
def measure_escaped(column: ByteColumn, escaping: Escaping, ends: LongArray) -> int:
    """Set ends[1:] to where the escaped values end, and `states` of values that become base64.
    Return the number of bytes."""
    data, borders, states = column
    costs, is_strict, has_code_points = (
        escaping.costs,
        escaping.is_strict,
        escaping.has_code_points,
    )
    at = long(0)
    for row in range(len(ends) - 1):
        begin, end = borders[row], borders[row + 1]
        # JSON is copied, and null is nothing.
        size, index = long(0), end if states[row] != IS_TEXT else begin
        if states[row] == IS_JSON:
            size = end - begin
        elif states[row] == IS_BASE64:
            size = (end - begin + 2) // 3 * 4
        while index < end:
            byte = long(data[index])
            length = _utf8_size(data, index, end) if byte >= 0x80 else 1
            is_command = length > 1 and _is_command(_code_point(data, index, length))
            if length > 1 and not is_command:
                size += length
                index += length
            elif is_command and has_code_points:
                size += _CODE_POINT_BYTES
                index += length
            elif length == 0 and is_strict:
                states[row] = IS_BASE64
                size = (end - begin + 2) // 3 * 4
                index = end
            elif length > 1 and is_strict:
                size += length
                index += length
            else:
                size += costs[byte]
                index += 1
        at += size
        ends[row + 1] = at
    return at


@inlined_kernel
def _put_base64(
    data: ByteArray, begin: int, end: int, alphabet: ByteArray, target: ByteArray, at: int
) -> None:
    index = begin
    while index < end:
        group = long(data[index]) << 16
        if index + 1 < end:
            group |= long(data[index + 1]) << 8
        if index + 2 < end:
            group |= long(data[index + 2])
        for place in range(4):
            is_padding = index + place > end
            target[at + place] = (
                _PADDING if is_padding else alphabet[(group >> (18 - 6 * place)) & 63]
            )
        at += 4
        index += 3


@kernel
def fill_escaped(
    column: ByteColumn, escaping: Escaping, ends: LongArray, target: ByteArray
) -> None:
    """Write what `measure_escaped` measured into `target`."""
    data, borders, states = column
    costs, escapes, is_strict = escaping.costs, escaping.escapes, escaping.is_strict
    has_code_points = escaping.has_code_points
    for row in range(len(ends) - 1):
        begin, end, at = borders[row], borders[row + 1], ends[row]
        if states[row] == IS_BASE64:
            _put_base64(data, begin, end, escaping.alphabet, target, at)
        elif ends[row + 1] - at == end - begin:
            copy_bytes(target, at, data, begin, end - begin)
        elif states[row] == IS_TEXT:
            index = begin
            while index < end:
                byte = long(data[index])
                length = _utf8_size(data, index, end) if byte >= 0x80 else 1
                code = _code_point(data, index, length) if length > 1 else long(0)
                is_command = _is_command(code)
                if is_command and not is_strict:
                    length = 0
                if is_command and has_code_points:
                    _put_code_point(code, target, at)
                    at += _CODE_POINT_BYTES
                    index += length
                elif length <= 1 and costs[byte] > 1:
                    for place in range(costs[byte]):
                        target[at + place] = escapes[byte, place]
                    at += costs[byte]
                    index += 1
                else:
                    for _ in range(length):
                        target[at] = data[index]
                        at += 1
                        index += 1
