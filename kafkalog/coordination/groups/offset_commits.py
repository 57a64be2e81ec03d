"""Which commits of a partition of `__consumer_offsets` took effect, and when.

As a group coordinator finds out when it loads the partition. Rules: docs/format.md F300 to F302.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple


class Effect(Enum):
    """What became of a commit, or of a tombstone, which deletes one."""

    APPLIED = "applied"
    ABORTED = "aborted"  # with its transaction
    OPEN = "open"  # its transaction has not ended
    OLDER = "older"  # when its transaction was committed, a later record had taken effect
    REPLACED = "replaced"  # by a later one in its transaction
    DELETED = "deleted"  # by a tombstone, before its transaction ended


class Decision(NamedTuple):
    """The effect of the record at `record_offset`; `effective_offset` is that of the record that
    brought it about, the transaction's marker or the record itself, None if it is applied never."""

    record_offset: int
    effect: Effect
    effective_offset: int | None


class OffsetCommitReplay:
    """Takes the records of a partition in their order and decides the effect of each. A key is the
    bytes of a record's key: one group, topic and partition has one."""

    def __init__(self) -> None:
        # Of each key the offset of the record that took effect since any commit waits: who comes
        # to wait later comes after all that took effect before.
        self._applied: dict[bytes, int] = {}
        self._pending: dict[int, dict[bytes, int]] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether any transaction is open: only then do commits outside of transactions affect
        others."""
        return bool(self._pending)

    def commit(self, key: bytes, record_offset: int) -> Decision:
        """Take a commit outside of transactions."""
        if self._pending:
            self._applied[key] = record_offset
        return Decision(record_offset, Effect.APPLIED, record_offset)

    def transactional_commit(
        self, key: bytes, record_offset: int, producer_id: int
    ) -> Decision | None:
        """Take a commit that waits for its transaction's marker, and return the decision about the
        commit that it replaces."""
        pending = self._pending.setdefault(producer_id, {})
        replaced = pending.get(key)
        pending[key] = record_offset
        return None if replaced is None else Decision(replaced, Effect.REPLACED, None)

    def tombstone(self, key: bytes, record_offset: int) -> Iterator[Decision]:
        """Take a deletion, in a transaction or not: it deletes the commit in effect and all that
        wait."""
        self._applied.pop(key, None)
        for pending in self._pending.values():
            waiting = pending.pop(key, None)
            if waiting is not None:
                yield Decision(waiting, Effect.DELETED, None)
        yield Decision(record_offset, Effect.APPLIED, record_offset)

    def marker(self, producer_id: int, offset: int, *, is_commit: bool) -> Iterator[Decision]:
        """Take the end of a producer's transaction."""
        for key, record_offset in self._pending.pop(producer_id, {}).items():
            if not is_commit:
                yield Decision(record_offset, Effect.ABORTED, None)
            elif record_offset <= self._applied.get(key, -1):
                yield Decision(record_offset, Effect.OLDER, None)
            else:
                self._applied[key] = record_offset
                yield Decision(record_offset, Effect.APPLIED, offset)
        if not self._pending:
            self._applied.clear()

    def still_open(self) -> Iterator[Decision]:
        """Yield the commits whose transactions have not ended at the end of the log."""
        for pending in self._pending.values():
            for record_offset in pending.values():
                yield Decision(record_offset, Effect.OPEN, None)
