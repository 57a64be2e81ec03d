"""Kernels that judge which offsets and leader epochs can be believed.

The rules are those of `kafkalog.format.segment`: docs/format.md F70 to F72. Rows of the batch table
stand for batches; what is remembered from row to row is an array of 64-bit integers.
"""

from __future__ import annotations

import numpy as np

from kafkalog.columns.batches.batch_table import (
    BASE_OFFSET,
    EXPECTED_OFFSET,
    FAULT,
    IS_BATCH,
    LAST_OFFSET,
    LEADER_EPOCH,
    LEADER_EPOCH_FAULT,
)
from kafkalog.columns.jit.compiled import LongArray, kernel
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import Bounds
from kafkalog.format.segment import PATIENCE

_TOO_LARGE = int(Fault.TOO_LARGE)
_OFFSET_RANGE = int(Fault.OFFSET_RANGE)
_OFFSET_ORDER = int(Fault.OFFSET_ORDER)

# The segment's own bounds; the least offset that can follow, by what is believed beyond doubt; the
# rows that wait and those that contradict them, for offsets and for epochs; the highest epoch that
# is believed; the first row whose EXPECTED_OFFSET is not set.
(
    FIRST,
    LIMIT,
    EXPECTED,
    WAITING,
    RIVAL,
    EPOCH_WAITING,
    EPOCH_RIVAL,
    HIGHEST_EPOCH,
    UNASSIGNED,
) = range(9)
_ROWS = (WAITING, RIVAL, EPOCH_WAITING, EPOCH_RIVAL)
NONE = -1


def new_belief(bounds: Bounds) -> LongArray:
    """What is believed at the start of a segment."""
    belief = np.full(9, NONE, dtype=np.int64)
    belief[FIRST] = belief[EXPECTED] = bounds.expected
    belief[LIMIT] = bounds.limit
    belief[UNASSIGNED] = 0
    return belief


def forget_rows(belief: LongArray, rows: int) -> None:
    """The first rows of the table are gone, the others have moved up."""
    for index in _ROWS:
        if belief[index] >= 0:
            belief[index] -= rows
    belief[UNASSIGNED] -= rows


@kernel
def _decide_epochs(table: LongArray, belief: LongArray, for_rival: bool) -> None:
    if belief[EPOCH_WAITING] < 0 or belief[EPOCH_RIVAL] < 0:
        return
    wrong = belief[EPOCH_WAITING] if for_rival else belief[EPOCH_RIVAL]
    right = belief[EPOCH_RIVAL] if for_rival else belief[EPOCH_WAITING]
    table[wrong, LEADER_EPOCH_FAULT] = 1
    belief[EPOCH_WAITING] = right
    belief[EPOCH_RIVAL] = NONE


@kernel
def _believe_epoch(table: LongArray, belief: LongArray) -> None:
    if belief[EPOCH_WAITING] >= 0:
        epoch = table[belief[EPOCH_WAITING], LEADER_EPOCH]
        belief[HIGHEST_EPOCH] = max(belief[HIGHEST_EPOCH], epoch)
    belief[EPOCH_WAITING] = NONE


@kernel
def _settle_epochs(table: LongArray, belief: LongArray) -> None:
    _decide_epochs(table, belief, True)
    _believe_epoch(table, belief)


@kernel
def _add_epoch(table: LongArray, row: int, belief: LongArray) -> None:
    epoch = table[row, LEADER_EPOCH]
    if epoch < 0:
        _settle_epochs(table, belief)
        return
    if belief[EPOCH_RIVAL] >= 0:
        _decide_epochs(table, belief, epoch < table[belief[EPOCH_WAITING], LEADER_EPOCH])
    if epoch < belief[HIGHEST_EPOCH]:
        table[row, LEADER_EPOCH_FAULT] = 1
    elif belief[EPOCH_WAITING] < 0 or epoch >= table[belief[EPOCH_WAITING], LEADER_EPOCH]:
        _believe_epoch(table, belief)
        belief[EPOCH_WAITING] = row
    else:
        belief[EPOCH_RIVAL] = row


@kernel
def _forget_epoch(row: int, belief: LongArray) -> None:
    if belief[EPOCH_RIVAL] == row:
        belief[EPOCH_RIVAL] = NONE
    elif belief[EPOCH_WAITING] == row:
        belief[EPOCH_WAITING] = belief[EPOCH_RIVAL]
        belief[EPOCH_RIVAL] = NONE


@kernel
def _assign_expected(table: LongArray, end_row: int, belief: LongArray) -> None:
    for row in range(belief[UNASSIGNED], end_row):
        table[row, EXPECTED_OFFSET] = belief[EXPECTED]
    belief[UNASSIGNED] = max(belief[UNASSIGNED], end_row)


@kernel
def _accept(table: LongArray, row: int, belief: LongArray) -> None:
    _assign_expected(table, row + 1, belief)
    belief[WAITING] = row
    _add_epoch(table, row, belief)


@kernel
def _rival_is_right(table: LongArray, belief: LongArray, following: int) -> bool:
    waiting_last = table[belief[WAITING], LAST_OFFSET]
    rival_last = table[belief[RIVAL], LAST_OFFSET]
    if following != NONE:
        if (following > waiting_last) != (following > rival_last):
            return bool(following > rival_last)
        if (following == waiting_last + 1) != (following == rival_last + 1):
            return bool(following == rival_last + 1)
    waiting_base = table[belief[WAITING], BASE_OFFSET]
    if waiting_base == belief[EXPECTED]:
        return False
    room = table[belief[RIVAL], BASE_OFFSET] - belief[EXPECTED]
    fills_the_room = room == waiting_last - waiting_base + 1
    return bool(room == 0 or fills_the_room or rival_last < waiting_base)


@kernel
def _decide(table: LongArray, belief: LongArray, following: int) -> None:
    waiting = belief[WAITING]
    rival = belief[RIVAL]
    if waiting < 0 or rival < 0:
        return
    for_rival = _rival_is_right(table, belief, following)
    belief[RIVAL] = NONE
    if for_rival:
        table[waiting, FAULT] = _OFFSET_ORDER
        _forget_epoch(waiting, belief)
        _accept(table, rival, belief)
    else:
        table[rival, FAULT] = _OFFSET_ORDER


@kernel
def _believe_waiting(table: LongArray, belief: LongArray) -> None:
    if belief[WAITING] >= 0:
        belief[EXPECTED] = table[belief[WAITING], LAST_OFFSET] + 1
    belief[WAITING] = NONE


@kernel
def settle(table: LongArray, end_row: int, belief: LongArray) -> None:
    """Judge all rows by what is known, waiting for no more."""
    _decide(table, belief, NONE)
    _believe_waiting(table, belief)
    _settle_epochs(table, belief)
    _assign_expected(table, end_row, belief)


@kernel
def _judge(table: LongArray, row: int, belief: LongArray) -> None:
    base = table[row, BASE_OFFSET]
    # A contradiction is decided at most once for each batch, then the batch is judged again.
    for _ in range(2):
        if base < belief[EXPECTED]:
            table[row, FAULT] = _OFFSET_ORDER
        elif belief[WAITING] < 0:
            _accept(table, row, belief)
        elif belief[RIVAL] >= 0:
            _decide(table, belief, base)
            continue
        elif base > table[belief[WAITING], LAST_OFFSET]:
            _believe_waiting(table, belief)
            _accept(table, row, belief)
        else:
            belief[RIVAL] = row
        return


@kernel
def judge_rows(table: LongArray, first_row: int, end_row: int, belief: LongArray) -> None:
    """Judge the offsets and leader epochs of rows that are sound otherwise."""
    for row in range(first_row, end_row):
        sound = table[row, FAULT] == 0 or table[row, FAULT] == _TOO_LARGE
        if table[row, IS_BATCH] == 1 and sound:
            base = table[row, BASE_OFFSET]
            if belief[FIRST] <= base <= table[row, LAST_OFFSET] < belief[LIMIT]:
                _judge(table, row, belief)
            else:
                table[row, FAULT] = _OFFSET_RANGE
        first_open = undecided_row(row + 1, belief)
        if row + 1 - first_open > PATIENCE:
            settle(table, row + 1, belief)
        elif belief[WAITING] < 0:
            _assign_expected(table, row + 1, belief)


@kernel
def undecided_row(end_row: int, belief: LongArray) -> int:
    """The first row on which there is no judgement yet; `end_row` if there is on all."""
    first = end_row
    if belief[WAITING] >= 0:
        first = belief[WAITING]
    if 0 <= belief[EPOCH_WAITING] < first:
        first = belief[EPOCH_WAITING]
    return first
