"""Kernels that decide which offsets and leader epochs are right.

Rules: docs/format.md F70 to F72. A row of the batch table is a batch; the state that goes from row
to row is an array of 64-bit integers.
"""

from __future__ import annotations

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import LongArray, kernel
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import Bounds

# Wait for at most this many ranges to show whether a batch's offsets are right.
PATIENCE = 1000
_TOO_LARGE = int(Fault.TOO_LARGE)
_OFFSET_RANGE = int(Fault.OFFSET_RANGE)
_OFFSET_ORDER = int(Fault.OFFSET_ORDER)

# The segment's own bounds; the least offset that can follow the confirmed batches; the row that is
# pending and the one in conflict with it, for offsets and for epochs; the highest confirmed epoch;
# the first row whose EXPECTED_OFFSET is not set.
(
    FIRST,
    LIMIT,
    EXPECTED,
    PENDING,
    CONFLICTING,
    PENDING_EPOCH,
    CONFLICTING_EPOCH,
    HIGHEST_EPOCH,
    UNASSIGNED,
) = range(9)
_ROWS = (PENDING, CONFLICTING, PENDING_EPOCH, CONFLICTING_EPOCH)
NONE = -1


def new_state(bounds: Bounds) -> LongArray:
    """Return the state at the start of a segment."""
    state = np.full(9, NONE, dtype=np.int64)
    state[FIRST] = state[EXPECTED] = bounds.expected
    state[LIMIT] = bounds.limit
    state[UNASSIGNED] = 0
    return state


def forget_rows(state: LongArray, rows: int) -> None:
    """Forget the first rows of the table: the others have moved up."""
    for index in _ROWS:
        if state[index] >= 0:
            state[index] -= rows
    state[UNASSIGNED] -= rows


@kernel
def _decide_epochs(table: LongArray, state: LongArray, for_conflicting: bool) -> None:
    if state[PENDING_EPOCH] < 0 or state[CONFLICTING_EPOCH] < 0:
        return
    wrong = state[PENDING_EPOCH] if for_conflicting else state[CONFLICTING_EPOCH]
    right = state[CONFLICTING_EPOCH] if for_conflicting else state[PENDING_EPOCH]
    table[wrong, column.LEADER_EPOCH_FAULT] = 1
    state[PENDING_EPOCH] = right
    state[CONFLICTING_EPOCH] = NONE


@kernel
def _confirm_epoch(table: LongArray, state: LongArray) -> None:
    if state[PENDING_EPOCH] >= 0:
        epoch = table[state[PENDING_EPOCH], column.LEADER_EPOCH]
        state[HIGHEST_EPOCH] = max(state[HIGHEST_EPOCH], epoch)
    state[PENDING_EPOCH] = NONE


@kernel
def _decide_all_epochs(table: LongArray, state: LongArray) -> None:
    _decide_epochs(table, state, True)
    _confirm_epoch(table, state)


@kernel
def _add_epoch(table: LongArray, row: int, state: LongArray) -> None:
    epoch = table[row, column.LEADER_EPOCH]
    if epoch < 0:
        _decide_all_epochs(table, state)
        return
    if state[CONFLICTING_EPOCH] >= 0:
        _decide_epochs(table, state, epoch < table[state[PENDING_EPOCH], column.LEADER_EPOCH])
    if epoch < state[HIGHEST_EPOCH]:
        table[row, column.LEADER_EPOCH_FAULT] = 1
    elif state[PENDING_EPOCH] < 0 or epoch >= table[state[PENDING_EPOCH], column.LEADER_EPOCH]:
        _confirm_epoch(table, state)
        state[PENDING_EPOCH] = row
    else:
        state[CONFLICTING_EPOCH] = row


@kernel
def _forget_epoch(row: int, state: LongArray) -> None:
    if state[CONFLICTING_EPOCH] == row:
        state[CONFLICTING_EPOCH] = NONE
    elif state[PENDING_EPOCH] == row:
        state[PENDING_EPOCH] = state[CONFLICTING_EPOCH]
        state[CONFLICTING_EPOCH] = NONE


@kernel
def _assign_expected(table: LongArray, end_row: int, state: LongArray) -> None:
    for row in range(state[UNASSIGNED], end_row):
        table[row, column.EXPECTED_OFFSET] = state[EXPECTED]
    state[UNASSIGNED] = max(state[UNASSIGNED], end_row)


@kernel
def _accept(table: LongArray, row: int, state: LongArray) -> None:
    _assign_expected(table, row + 1, state)
    state[PENDING] = row
    _add_epoch(table, row, state)


@kernel
def _conflicting_is_right(table: LongArray, state: LongArray, following: int) -> bool:
    pending_last = table[state[PENDING], column.LAST_OFFSET]
    conflicting_last = table[state[CONFLICTING], column.LAST_OFFSET]
    if following != NONE:
        if (following > pending_last) != (following > conflicting_last):
            return bool(following > conflicting_last)
        if (following == pending_last + 1) != (following == conflicting_last + 1):
            return bool(following == conflicting_last + 1)
    pending_base = table[state[PENDING], column.BASE_OFFSET]
    if pending_base == state[EXPECTED]:
        return False
    room = table[state[CONFLICTING], column.BASE_OFFSET] - state[EXPECTED]
    fills_the_room = room == pending_last - pending_base + 1
    return bool(room == 0 or fills_the_room or conflicting_last < pending_base)


@kernel
def _decide(table: LongArray, state: LongArray, following: int) -> None:
    pending = state[PENDING]
    conflicting = state[CONFLICTING]
    if pending < 0 or conflicting < 0:
        return
    for_conflicting = _conflicting_is_right(table, state, following)
    state[CONFLICTING] = NONE
    if for_conflicting:
        table[pending, column.FAULT] = _OFFSET_ORDER
        _forget_epoch(pending, state)
        _accept(table, conflicting, state)
    else:
        table[conflicting, column.FAULT] = _OFFSET_ORDER


@kernel
def _confirm_pending(table: LongArray, state: LongArray) -> None:
    if state[PENDING] >= 0:
        state[EXPECTED] = table[state[PENDING], column.LAST_OFFSET] + 1
    state[PENDING] = NONE


@kernel
def decide_all(table: LongArray, end_row: int, state: LongArray) -> None:
    """Decide about all rows now."""
    _decide(table, state, NONE)
    _confirm_pending(table, state)
    _decide_all_epochs(table, state)
    _assign_expected(table, end_row, state)


@kernel
def _check(table: LongArray, row: int, state: LongArray) -> None:
    base = table[row, column.BASE_OFFSET]
    # A contradiction is decided at most once for each batch, then the batch is checked again.
    for _ in range(2):
        if base < state[EXPECTED]:
            table[row, column.FAULT] = _OFFSET_ORDER
        elif state[PENDING] < 0:
            _accept(table, row, state)
        elif state[CONFLICTING] >= 0:
            _decide(table, state, base)
            continue
        elif base > table[state[PENDING], column.LAST_OFFSET]:
            _confirm_pending(table, state)
            _accept(table, row, state)
        else:
            state[CONFLICTING] = row
        return


@kernel
def check_rows(table: LongArray, first_row: int, end_row: int, state: LongArray) -> None:
    """Check the offsets and leader epochs of rows that are sound otherwise."""
    for row in range(first_row, end_row):
        sound = table[row, column.FAULT] == 0 or table[row, column.FAULT] == _TOO_LARGE
        if table[row, column.IS_BATCH] == 1 and sound:
            base = table[row, column.BASE_OFFSET]
            if state[FIRST] <= base <= table[row, column.LAST_OFFSET] < state[LIMIT]:
                _check(table, row, state)
            else:
                table[row, column.FAULT] = _OFFSET_RANGE
        first_open = undecided_row(row + 1, state)
        if row + 1 - first_open > PATIENCE:
            decide_all(table, row + 1, state)
        elif state[PENDING] < 0:
            _assign_expected(table, row + 1, state)


@kernel
def undecided_row(end_row: int, state: LongArray) -> int:
    """Return the first row that is not decided yet, `end_row` if all are."""
    first = end_row
    if state[PENDING] >= 0:
        first = state[PENDING]
    if 0 <= state[PENDING_EPOCH] < first:
        first = state[PENDING_EPOCH]
    return first
