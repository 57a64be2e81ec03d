"""What transaction coordinators know of open transactions, from rows of view
`transaction_states`. Rule: docs/format.md F216.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
        """Return the last record of each id that was not removed, sorted by id."""
        last = [self._ids[key].last for key in sorted(self._ids, key=lambda key: key[1])]
        return [record for record in last if not record["is_tombstone"]]

    def by_producer(self) -> dict[tuple[str | None, int], State]:
        """Return, by cluster and producer id, the last record about the transactional id that has
        or had it; if two ids claim one, the later record."""
        found: dict[tuple[str | None, int], State] = {}
        for (cluster_id, _), known in self._ids.items():
            for producer_id in known.producer_ids:
                other = found.get((cluster_id, producer_id))
                if other is None or other["record_offset"] < known.last["record_offset"]:
                    found[cluster_id, producer_id] = known.last
        return found


class OpenTransaction(NamedTuple):
    """What a report says of a transaction that has not ended."""

    outcome: str
    reason: str
    started_ms: int | None
    duration_ms: int | None
    is_stable_offset_holder: bool


@dataclass(frozen=True)
class OpenTransactionRule:
    """Decides at a time which transactions hang, from what coordinators know. `incomplete` are the
    clusters without all partitions of `__transaction_state`: there a missing transactional id
    proves nothing. `cut` are those where a partition lacks its last records: there an older record
    about an id proves nothing either."""

    at_ms: int
    longest_ms: int
    incomplete: Collection[str | None]
    cut: Collection[str | None] = ()

    def judge(
        self, row: State, state: State | None, holder: int | None, *, is_known_later: bool = False
    ) -> OpenTransaction:
        """Judge an open transaction, a row of view `transactions`, by the last record about its
        producer's transactional id. `holder` is the producer that holds the last stable offset.
        Where the producer has records of a later time only, or the transaction has ended since, the
        cleaner may have removed what its coordinator knew at this time."""
        says = _coordinator_says(state, row)
        ended_since = row["marker_offset"] is not None
        is_incomplete = row["cluster_id"] in self.incomplete or is_known_later or ended_since
        is_cut = says in _HANGING and row["cluster_id"] in self.cut
        if is_cut or (says == NO_TRANSACTIONAL_ID and is_incomplete):
            says = "unknown"
        started_ms = state["started_ms"] if state and says == "known" else None
        # The coordinator's time comes before that of the first record.
        begun_ms = row["first_timestamp_ms"] if started_ms is None else started_ms
        duration_ms = None if begun_ms is None else self.at_ms - begun_ms
        last_ms = row["last_timestamp_ms"]
        if last_ms is not None and self.at_ms - last_ms <= self.longest_ms:
            outcome, reason = "open", RECENT
        else:
            outcome, reason = "hanging" if says in _HANGING else "open", says
        is_holder = holder == row["producer_id"]
        return OpenTransaction(outcome, reason, started_ms, duration_ms, is_holder)


def _coordinator_says(state: State | None, row: State) -> str:
    """Return whether the coordinator has the partition in the producer's transaction: known,
    not_in_transaction, or no_transactional_id where no id has the producer id now."""
    if state is None or state["producer_id"] != row["producer_id"]:
        return NO_TRANSACTIONAL_ID
    takes_part = any(
        each["topic"] == row["topic"] and row["partition"] in each["partitions"]
        for each in state["partitions"] or ()
    )
    return "known" if takes_part else "not_in_transaction"


def transaction_words(totals: Mapping[str, int], held_back: int) -> str:
    """Return how transactions ended, and how many partitions an open one keeps back."""
    ends = ", ".join(f"{totals.get(outcome, 0):,} {outcome}" for outcome in OUTCOMES)
    head = f"{counted(sum(totals.values()), 'transaction')}, counted in each partition"
    return f"{head}: {ends}; {counted(held_back, 'partition')} held back"
