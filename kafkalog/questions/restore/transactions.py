"""What the transaction coordinators had decided by the moment, and how every open transaction ends.
Rules: docs/restore.md F1048, F1049 and F1050.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kafkalog.messages.internal_records import read_internal_record
from kafkalog.messages.record_writer import write_record_value
from kafkalog.messages.schema import Values
from kafkalog.questions.restore.coordinator_records import CoordinatorRecord, complete_from
from kafkalog.questions.restore.partitions.partition_files import Ending
from kafkalog.questions.restore.partitions.partition_plans import OpenTransaction, PartitionPlan
from kafkalog.storage.names import TRANSACTION_STATE

(
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
    PREPARE_ABORT,
    COMPLETE_COMMIT,
    COMPLETE_ABORT,
    DEAD,
    PREPARE_EPOCH_FENCE,
) = range(8)
_COMMITS = (PREPARE_COMMIT, COMPLETE_COMMIT)
_PREPARED = (PREPARE_COMMIT, PREPARE_ABORT)
# From this version on of the protocol, each transaction of a producer has an epoch of its own.
_EPOCH_PER_TRANSACTION = 2
_LARGEST_EPOCH = 2**15 - 2
_NO_EPOCH = -1


@dataclass
class TransactionalId:
    """What the records of an id say: `state` as of the moment, None where no record is from before;
    the highest epoch in any record, by producer id; `later` is the first record after the moment,
    `later_ms` its time. With `is_doubtful` the cleaner can have removed a later state than `state`
    from before the moment."""

    transactional_id: str
    partition: int
    key: bytes
    state: Values | None = None
    state_ms: int = -1
    version: int = 0
    is_removed: bool = False
    epochs: dict[int, int] = field(default_factory=dict)
    later: Values | None = None
    later_ms: int | None = None
    state_offset: int = -1
    is_doubtful: bool = False

    @property
    def status(self) -> int:
        """The status as of the moment."""
        return EMPTY if self.state is None else int(self.state["transactionStatus"])

    @property
    def producer_id(self) -> int:
        """The producer id as of the moment."""
        return -1 if self.state is None else int(self.state["producerId"])

    @property
    def is_ongoing_after(self) -> bool:
        """Whether the first record after the moment is of the transaction that `state` has begun,
        and is not later than its decision: so it was ongoing at the moment."""
        state, later = self.state, self.later
        if state is None or later is None or self.status != ONGOING:
            return False
        same = ("producerId", "transactionStartTimestampMs")
        is_same = all(state[name] == later[name] for name in same)
        return is_same and int(later["transactionStatus"]) in (ONGOING, *_PREPARED)

    @property
    def kept_state(self) -> Values | None:
        """The state that is restored: as of the moment or, where that was compacted away, the first
        one after it, unless that made the id; None where the id was not there."""
        if self.state is not None or self.is_removed or self.later is None:
            return self.state
        return None if self.later["transactionStatus"] == EMPTY else self.later

    @property
    def raised_epoch(self) -> int:
        """An epoch above every one that the producer id has had."""
        return min(self.epochs.get(self.producer_id, 0) + 1, _LARGEST_EPOCH)

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """The partitions of the transaction, as of the moment."""
        listed = (self.state or {}).get("transactionPartitions") or []
        return [(each["topic"], number) for each in listed for number in each["partitionIds"]]


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """A transaction that the restore ends in a partition, and why so."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    transactional_id: str | None
    is_commit: bool
    reason: str
    is_guess: bool = False


@dataclass
class Transactions:
    """The ids, by the producer ids that they have or had; `coordinator_epoch` is the highest that
    any coordinator can have had; `committed` and `aborted` are the markers below the cuts, by
    producer id and epoch."""

    ids: Mapping[str, TransactionalId]
    coordinator_epoch: int
    markers: Mapping[tuple[int, int], bool]
    by_producer: Mapping[int, TransactionalId] = field(init=False)

    def __post_init__(self) -> None:
        self.by_producer = {
            producer_id: each for each in self.ids.values() for producer_id in each.epochs
        }

    def ending(
        self, plan: PartitionPlan, found: OpenTransaction, *, is_covered: bool
    ) -> tuple[Ending, EndedTransaction]:
        """Return the marker that ends a transaction which is open at the cut of a partition, and
        what is said of it. `is_covered` says that the copy goes beyond the moment."""
        known = self.by_producer.get(found.producer_id)
        is_commit, reason, is_guess = self._decision(known, found, is_covered=is_covered)
        epoch = min(found.producer_epoch + 1, _LARGEST_EPOCH)
        if known is not None and known.producer_id == found.producer_id:
            epoch = max(known.raised_epoch, found.producer_epoch)
        ending = Ending(found.producer_id, epoch, self.coordinator_epoch, is_commit)
        return ending, EndedTransaction(
            plan.topic,
            plan.partition,
            found.producer_id,
            found.producer_epoch,
            found.first_offset,
            None if known is None else known.transactional_id,
            is_commit,
            reason,
            is_guess,
        )

    def is_committed(self, producer_id: int, epoch: int, first_ms: int) -> bool:
        """Return the decision about a transaction, wherever it wrote."""
        found = OpenTransaction(producer_id, epoch, 0, first_ms)
        known = self.by_producer.get(producer_id)
        return self._decision(known, found, is_covered=True)[0]

    def _decision(
        self, known: TransactionalId | None, found: OpenTransaction, *, is_covered: bool
    ) -> tuple[bool, str, bool]:
        for epoch in (found.producer_epoch + 1, found.producer_epoch):
            marker = self.markers.get((found.producer_id, epoch))
            is_own = epoch > found.producer_epoch or not is_covered
            if marker is not None and is_own:
                return marker, "a marker in another partition says so", False
        if known is None:
            return False, "hanging: no coordinator knows it", False
        if known.state is None or known.producer_id != found.producer_id:
            if known.later_ms is None:
                return False, "its coordinator had no record of it", False
            return False, "its state at the moment was compacted away", True
        state, epoch = known.state, int(known.state["producerEpoch"])
        status, is_guess = known.status, known.is_doubtful
        per_transaction = state.get("clientTransactionVersion", 0) >= _EPOCH_PER_TRANSACTION
        if status == ONGOING:
            return False, "ongoing at the moment", is_guess
        # What comes after a decision is of the next transaction.
        is_before = found.first_ms <= known.state_ms
        is_own = found.producer_epoch < epoch if per_transaction else found.producer_epoch <= epoch
        if status in _PREPARED and is_own and is_before:
            what = "commit" if status == PREPARE_COMMIT else "abort"
            words = f"its {what} was decided, and its marker is missing"
            return status in _COMMITS, words, is_guess
        is_complete = status in (COMPLETE_COMMIT, COMPLETE_ABORT)
        # Where copies go beyond the moment, markers come before a state says so.
        can_lack_marker = per_transaction or not is_covered
        if is_complete and is_own and is_before and can_lack_marker:
            return status in _COMMITS, "its coordinator had completed it", is_guess
        return False, "its coordinator had no record of it at the moment", is_guess


def transactional_ids(
    records: Mapping[int, Sequence[CoordinatorRecord]], cuts: Mapping[int, int]
) -> dict[str, TransactionalId]:
    """Return what the partitions of `__transaction_state` say; `cuts` are their ends as of the
    moment."""
    found: dict[str, TransactionalId] = {}
    for partition, listed in records.items():
        _add_states(found, partition, listed, cuts[partition])
        complete = complete_from(listed, cuts[partition])
        for known in found.values():
            if known.partition == partition and known.later_ms is not None:
                is_old = known.state_offset < complete
                known.is_doubtful = is_old and not known.is_ongoing_after
    return found


def _add_states(
    found: dict[str, TransactionalId], partition: int, listed: Iterable[CoordinatorRecord], cut: int
) -> None:
    for record in listed:
        read = read_internal_record(TRANSACTION_STATE, record.key, record.value)
        if read.key is None:
            continue
        name = read.key["transactionalId"]
        known = found.setdefault(name, TransactionalId(name, partition, record.key))
        if read.value is not None:
            _note_epochs(known, read.value)
        if record.offset >= cut:
            if known.later_ms is None:
                known.later, known.later_ms = read.value, record.time_ms
                known.version = read.value_version or 0
        elif read.value is None:
            known.is_removed = read.is_tombstone
            known.state = None
        else:
            known.is_removed, known.state_ms = False, record.time_ms
            known.state_offset = record.offset
            known.state, known.version = read.value, read.value_version or 0


def _note_epochs(known: TransactionalId, value: Values) -> None:
    producer_id, epoch = value["producerId"], value["producerEpoch"]
    known.epochs[producer_id] = max(known.epochs.get(producer_id, _NO_EPOCH), epoch)
    for name in ("previousProducerId", "nextProducerId"):
        other = value.get(name, -1)
        if other >= 0:
            known.epochs.setdefault(other, _NO_EPOCH)


def highest_producer_id(ids: Iterable[TransactionalId]) -> int:
    """Return the highest producer id that any record names."""
    return max((producer for each in ids for producer in each.epochs), default=-1)


def decided_after(
    ids: Iterable[TransactionalId], plans: Sequence[PartitionPlan]
) -> dict[tuple[str, int], int]:
    """Return, by topic and partition, the offset of the first marker below its cut that ends a
    transaction which was ongoing at the moment: the decision came after it. Where the cleaner can
    have removed a later state from before the moment, the markers say what was decided by then."""
    ongoing = {
        each.producer_id: each for each in ids if each.status == ONGOING and not each.is_doubtful
    }
    limits: dict[tuple[str, int], int] = {}
    for plan in plans:
        for marker in plan.markers:
            known = ongoing.get(marker.producer_id)
            if known is None or known.state is None:
                continue
            epoch = int(known.state["producerEpoch"])
            start_ms = int(known.state["transactionStartTimestampMs"])
            is_of_it = marker.producer_epoch > epoch or (
                marker.producer_epoch == epoch and marker.time_ms >= start_ms
            )
            if is_of_it:
                limits[plan.key] = min(limits.get(plan.key, marker.offset), marker.offset)
    return limits


def known_markers(plans: Iterable[PartitionPlan]) -> dict[tuple[int, int], bool]:
    """Return the last decision by producer id and epoch that markers below the cuts tell."""
    found: dict[tuple[int, int], tuple[int, bool]] = {}
    for plan in plans:
        for marker in plan.markers:
            key = marker.producer_id, marker.producer_epoch
            if key not in found or found[key][0] < marker.time_ms:
                found[key] = marker.time_ms, marker.is_commit
    return {key: is_commit for key, (_, is_commit) in found.items()}


def incomplete_commits(
    ids: Iterable[TransactionalId], plans: Mapping[tuple[str, int], PartitionPlan], as_of_ms: int
) -> list[tuple[str, str, int]]:
    """Return ids and partitions of transactions whose commit was decided, and of which a partition
    may lack records: no copy of it goes beyond the decision."""
    found = []
    for each in ids:
        if each.status != PREPARE_COMMIT:
            continue
        for key in each.partitions:
            plan = plans.get(key)
            if plan is None or (plan.covered_ms is not None and plan.covered_ms < each.state_ms):
                found.append((each.transactional_id, *key))
    return found


def state_values(
    ids: Iterable[TransactionalId], now_ms: int
) -> dict[int, list[tuple[bytes, bytes]]]:
    """Return the keys and values of the new `__transaction_state`, by partition: every transaction
    has ended, every epoch is raised."""
    found: dict[int, list[tuple[bytes, bytes]]] = defaultdict(list)
    for each in ids:
        state = each.kept_state
        if state is None or int(state["transactionStatus"]) == DEAD:
            continue
        status = {
            EMPTY: EMPTY,
            PREPARE_COMMIT: COMPLETE_COMMIT,
            COMPLETE_COMMIT: COMPLETE_COMMIT,
        }.get(each.status if each.state is not None else ONGOING, COMPLETE_ABORT)
        producer_id = int(state["producerId"])
        values = {
            "producerId": producer_id,
            "producerEpoch": min(each.epochs.get(producer_id, 0) + 1, _LARGEST_EPOCH),
            "transactionTimeoutMs": state["transactionTimeoutMs"],
            "transactionStatus": status,
            "transactionPartitions": None if status == EMPTY else [],
            "transactionLastUpdateTimestampMs": now_ms,
            "transactionStartTimestampMs": state["transactionStartTimestampMs"],
        }
        if each.version > 0:
            values["clientTransactionVersion"] = state["clientTransactionVersion"]
        value = write_record_value(TRANSACTION_STATE, 0, each.version, values)
        found[each.partition].append((each.key, value))
    return found
