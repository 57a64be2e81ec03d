"""What transaction coordinators know, by plain values: rows of view `transaction_states`. Rule:
docs/format.md F216.

`kafkalog.analysis.partitions.transactions` does the same for DataFrames; a test holds both against
each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkalog.words import counted

State = Mapping[str, Any]
OUTCOMES = ("committed", "aborted", "open", "hanging")
RECENT = "recent"
NO_TRANSACTIONAL_ID = "no_transactional_id"
_HANGING = (NO_TRANSACTIONAL_ID, "not_in_transaction")


@dataclass
class _TransactionalId:
    """The last record about an id, and all producer ids that it has had."""

    last: State
    producer_ids: set[int] = field(default_factory=set)


class TransactionalIds:
    """Takes the records of `__transaction_state` in any order."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str | None, str], _TransactionalId] = {}

    def add(self, record: State) -> None:
        """Take a row of the view."""
        transactional_id = record["transactional_id"]
        if transactional_id is None:
            return
        key = (record["cluster_id"], transactional_id)
        known = self._ids.setdefault(key, _TransactionalId(record))
        if known.last["record_offset"] < record["record_offset"]:
            known.last = record
        if record["producer_id"] is not None:
            known.producer_ids.add(record["producer_id"])

    def states(self) -> list[State]:
        """Of each id that was not removed the last record, by the ids."""
        last = [self._ids[key].last for key in sorted(self._ids, key=lambda key: key[1])]
        return [record for record in last if not record["is_tombstone"]]

    def by_producer(self) -> dict[tuple[str | None, int], State]:
        """By cluster and producer id the last record about the transactional id that has, or had,
        it: where two claim one, the later record counts."""
        found: dict[tuple[str | None, int], State] = {}
        for (cluster_id, _), known in self._ids.items():
            for producer_id in known.producer_ids:
                other = found.get((cluster_id, producer_id))
                if other is None or other["record_offset"] < known.last["record_offset"]:
                    found[cluster_id, producer_id] = known.last
        return found


def coordinator_says(
    state: State | None, producer_id: int, topic: str | None, partition: int | None
) -> str:
    """Whether the coordinator has the partition in the producer's transaction: known,
    not_in_transaction, or no_transactional_id where no id has the producer id now."""
    if state is None or state["producer_id"] != producer_id:
        return NO_TRANSACTIONAL_ID
    takes_part = any(
        each["topic"] == topic and partition in each["partitions"]
        for each in state["partitions"] or ()
    )
    return "known" if takes_part else "not_in_transaction"


def open_outcome(said: str, silent_ms: int | None, longest_ms: int) -> tuple[str, str]:
    """The outcome of a transaction that has not ended and whose producer wrote last so long ago,
    and why, given what the coordinator said, or `unknown`."""
    if silent_ms is not None and silent_ms <= longest_ms:
        return "open", RECENT
    return ("hanging" if said in _HANGING else "open"), said


def transaction_words(totals: Mapping[str, int], held_back: int) -> str:
    """How transactions ended, and how many partitions an open one keeps back."""
    ends = ", ".join(f"{totals.get(outcome, 0):,} {outcome}" for outcome in OUTCOMES)
    head = f"{counted(sum(totals.values()), 'transaction')}, counted in each partition"
    return f"{head}: {ends}; {counted(held_back, 'partition')} held back"
