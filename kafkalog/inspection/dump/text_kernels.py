"""Kernels that write columns as lines of text. Rules: docs/command-line.md F580 to F582.

A line is written by steps, a row of `steps` each: what it does, and two arguments.
"""

from __future__ import annotations

from kafkalog.columns.jit.compiled import (
    ByteArray,
    LongArray,
    copy_bytes,
    inlined_kernel,
    kernel,
    long,
)

# The steps of a line. LITERAL a: a literal. NUMBER a: a number. WORD a, b: of the literals from b
# on the one that number a says. BYTES a: of a byte column. SKIP a, b: the next b steps are for
# lines only whose number a is not 0.
LITERAL, NUMBER, WORD, BYTES, SKIP = range(5)
BYTE_COLUMNS = 6
NUMBER_CHARACTERS = 20
# What became of a value: it is text, in base64, null, or JSON of itself.
IS_TEXT, IS_BASE64, IS_NULL, IS_JSON = range(4)
ESCAPE_BYTES = 6

_MOST_DIGITS = 19
_MINUS, _ZERO, _PADDING = ord("-"), ord("0"), ord("=")


@inlined_kernel
def _put_number(value: int, target: ByteArray, at: int) -> int:
    """Write a number in decimal; where it ends."""
    rest, last = value // 10, value % 10
    if value < 0:
        target[at] = _MINUS
        at += 1
        # The least number has no positive twin: digits are taken from the negative one.
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
def _put_bytes(source: ByteArray, borders: LongArray, row: int, target: ByteArray, at: int) -> int:
    begin, end = borders[row], borders[row + 1]
    copy_bytes(target, at, source, begin, end - begin)
    return at + long(end - begin)


@kernel
def fill_lines(
    steps: LongArray,
    literals: ByteArray,
    literal_borders: LongArray,
    numbers: LongArray,
    bytes_0: ByteArray,
    borders_0: LongArray,
    bytes_1: ByteArray,
    borders_1: LongArray,
    bytes_2: ByteArray,
    borders_2: LongArray,
    bytes_3: ByteArray,
    borders_3: LongArray,
    bytes_4: ByteArray,
    borders_4: LongArray,
    bytes_5: ByteArray,
    borders_5: LongArray,
    target: ByteArray,
    ends: LongArray,
) -> int:
    """Write a line for every row; `ends` is where each ends, with a leading zero. How much was
    written. `target` has room for the longest line that the steps allow, for every row."""
    at = long(0)
    for row in range(len(ends) - 1):
        step = 0
        while step < len(steps):
            what, argument = steps[step, 0], steps[step, 1]
            if what == LITERAL:
                at = _put_bytes(literals, literal_borders, argument, target, at)
            elif what == NUMBER:
                at = _put_number(numbers[argument, row], target, at)
            elif what == WORD:
                word = steps[step, 2] + numbers[argument, row]
                at = _put_bytes(literals, literal_borders, word, target, at)
            elif what == SKIP:
                if numbers[argument, row] == 0:
                    step += steps[step, 2]
            elif argument == 0:
                at = _put_bytes(bytes_0, borders_0, row, target, at)
            elif argument == 1:
                at = _put_bytes(bytes_1, borders_1, row, target, at)
            elif argument == 2:
                at = _put_bytes(bytes_2, borders_2, row, target, at)
            elif argument == 3:
                at = _put_bytes(bytes_3, borders_3, row, target, at)
            elif argument == 4:
                at = _put_bytes(bytes_4, borders_4, row, target, at)
            else:
                at = _put_bytes(bytes_5, borders_5, row, target, at)
            step += 1
        ends[row + 1] = at
    return at


@inlined_kernel
def _utf8_size(data: ByteArray, index: int, end: int) -> int:
    """How many bytes the character of several bytes at `index` has; 0 if that is not UTF-8."""
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
    for follower in range(index + 2, index + size):
        if data[follower] & 0xC0 != 0x80:
            return 0
    return size


@kernel
def measure_escaped(
    data: ByteArray,
    borders: LongArray,
    costs: LongArray,
    is_strict: bool,
    states: LongArray,
    ends: LongArray,
) -> int:
    """Where the text of each value ends, with a leading zero; how much it is in all.

    `costs` are the characters of every byte: 1 if it stands for itself. Bytes that are no UTF-8
    have a cost like others or, with `is_strict`, turn the whole value to base64 and set its state.
    """
    at = long(0)
    for row in range(len(ends) - 1):
        begin, end = borders[row], borders[row + 1]
        # What is JSON already is taken as it is, and nothing of what is null.
        size, index = long(0), end if states[row] != IS_TEXT else begin
        if states[row] == IS_JSON:
            size = end - begin
        elif states[row] == IS_BASE64:
            size = (end - begin + 2) // 3 * 4
        while index < end:
            byte = long(data[index])
            length = _utf8_size(data, index, end) if byte >= 0x80 else 1
            if length > 1 and not (byte == 0xC2 and data[index + 1] < 0xA0):
                size += length
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
    data: ByteArray,
    borders: LongArray,
    costs: LongArray,
    escapes: ByteArray,
    is_strict: bool,
    alphabet: ByteArray,
    states: LongArray,
    ends: LongArray,
    target: ByteArray,
) -> None:
    """Write what was measured. `escapes` has a row for every byte whose cost is not 1."""
    for row in range(len(ends) - 1):
        begin, end, at = borders[row], borders[row + 1], ends[row]
        if states[row] == IS_BASE64:
            _put_base64(data, begin, end, alphabet, target, at)
        elif ends[row + 1] - at == end - begin:
            copy_bytes(target, at, data, begin, end - begin)
        elif states[row] == IS_TEXT:
            index = begin
            while index < end:
                byte = long(data[index])
                length = _utf8_size(data, index, end) if byte >= 0x80 else 1
                if length > 1 and byte == 0xC2 and data[index + 1] < 0xA0 and not is_strict:
                    length = 0
                if length <= 1 and costs[byte] > 1:
                    for place in range(costs[byte]):
                        target[at + place] = escapes[byte, place]
                    at += costs[byte]
                    index += 1
                else:
                    for _ in range(length):
                        target[at] = data[index]
                        at += 1
                        index += 1
