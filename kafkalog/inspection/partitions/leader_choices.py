"""What a partition loses with each replica that could become its leader.

Rules: docs/format.md F790 to F794.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets, is_control, record_counts
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.columns.transactions.transaction_markers import is_transactional
from kafkalog.columns.transactions.transaction_walk import TransactionWalk
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.leader_epochs import (
    EpochStart,
    by_batches,
    carried_below,
    epochs_text,
    first_contradiction,
    rising,
    without_end,
)
from kafkalog.inspection.logs.carried_epochs import carried_epochs
from kafkalog.inspection.logs.replica_facts import batch_facts, replica_facts, sound_rows
from kafkalog.storage.partition_log import LEADER_EPOCHS, PartitionLog
from kafkalog.storage.reading.log_snapshots import newest_snapshot
from kafkalog.storage.reading.relisted_logs import read_relisted
from kafkalog.storage.reading.replica_reads import overlaps
from kafkalog.storage.reading.replicas import compare
from kafkalog.storage.reading.transactions import PartitionTransaction
from kafkalog.storage.recovery.recovery import RecoveryPlan, RecoverySettings, plan_recovery
from kafkalog.storage.recovery.truncation import ReplicaLog, truncated_end
from kafkalog.words import counted

# A batch in any replica: its last offset, checksum and size.
BatchKey = tuple[int, int, int]
# How much of a replica was read, where all of it was.
ALL = "all"
_KEY = [column.LAST_OFFSET, column.CRC, column.SIZE]


class LostRange(NamedTuple):
    """Batches that follow each other in one or more replicas, both offsets inclusive. `records` of
    control batches are not counted. `is_recovered_away` is True where the broker itself drops them
    when it starts."""

    brokers: tuple[int | None, ...]
    leader_epoch: int
    first_offset: int
    last_offset: int
    records: int
    bytes: int
    first_timestamp_ms: int
    last_timestamp_ms: int
    is_recovered_away: bool


class LostTransaction(NamedTuple):
    """A transaction that loses batches. `what` is `lost` if it loses all its records, `partly_lost`
    if it loses some, `left_open` if it loses only its marker and so stays open."""

    brokers: tuple[int | None, ...]
    transaction: PartitionTransaction
    records: int
    what: str


@dataclass
class Loss:
    """What no replica has any more once a choice leads. `batches` are the lost batches, each with
    the numbers of the replicas that have it. `deleted_records` lie below its log start: other
    replicas delete them then, as retention has done in this one."""

    batches: dict[BatchKey, list[int]] = field(default_factory=dict)
    ranges: list[LostRange] = field(default_factory=list)
    transactions: list[LostTransaction] = field(default_factory=list)
    deleted_records: int = 0

    @property
    def records(self) -> int:
        return sum(each.records for each in self.ranges)


class Replica:
    """A replica, and what its broker makes of it at the next start. Where that would not start,
    `state` is what its files say."""

    def __init__(self, log: PartitionLog, now_ms: int) -> None:
        self.log = log
        settings = RecoverySettings.of(log, now_ms)
        self.plan: RecoveryPlan = read_relisted(
            log, lambda now: plan_recovery(now.path, settings)
        ) or RecoveryPlan(start_error=f"{log.path} was deleted while it was read")
        self.damaged_ranges = 0
        self._unread = len(log.segments)
        self.batches: LongArray = column.new_table(0)
        self.is_kept: BoolArray = np.zeros(0, dtype=np.bool_)
        high_watermark = log.log_dir.high_watermarks.get(log.topic_partition or ("", 0), 0)
        start, end = self.plan.log_start_offset, self.plan.log_end_offset
        epochs = self.plan.leader_epochs
        if end is None:
            facts = replica_facts(log)
            start, end, epochs = facts.log_start, facts.log_end, list(facts.epochs)
        epochs, carried = rising(epochs), carried_epochs(log)
        # The epochs by the file, which a broker goes by, where the batches have others.
        self.other_epochs: Sequence[EpochStart] | None = None
        if first_contradiction(epochs, carried_below(carried, end), start) is not None:
            self.other_epochs, epochs = epochs, without_end(by_batches(epochs, carried), end)
        self.state = ReplicaLog(start, end, tuple(epochs), min(high_watermark, end))

    @property
    def broker_id(self) -> int | None:
        return self.log.log_dir.broker_id

    @property
    def starts(self) -> bool:
        """Whether the broker starts with it."""
        return self.plan.start_error is None

    @property
    def last_epoch(self) -> int | None:
        return self.state.epochs[-1].epoch if self.state.epochs else None

    @property
    def damage(self) -> str | None:
        """What keeps the broker from starting, or makes it truncate the log, or else how much of
        what was read is damaged; None for nothing."""
        if self.plan.start_error is not None:
            return self.plan.start_error
        if self.plan.cuts:
            cut = self.plan.cuts[-1]
            return f"{cut.file} is truncated at {cut.position}: {cut.reason}"
        damaged = counted(self.damaged_ranges, "damaged range") if self.damaged_ranges else None
        return "; ".join(filter(None, (damaged, self._epochs_note))) or None

    @property
    def _epochs_note(self) -> str | None:
        """What the broker does with leader epochs that are not those of the batches (F929)."""
        if self.other_epochs is None:
            return None
        deed = "a broker goes by the file, and truncates replicas where that has an epoch end"
        if not self.other_epochs:
            deed = (
                "a broker takes it for a log without epochs: it truncates the log at the high "
                f"watermark {self.state.high_watermark} when it follows, and when it leads, "
                "followers keep what it does not have"
            )
        return (
            f"{LEADER_EPOCHS} has {epochs_text(self.other_epochs)}, the batches have "
            f"{epochs_text(self.state.epochs)}, which count here; {deed}"
        )

    @property
    def batches_read(self) -> str:
        """Whether all segments of the log were read, only some, or none, so that nothing is known
        of its batches."""
        if not self._unread:
            return ALL
        return "none" if self._unread == len(self.log.segments) else "in part"

    def read(self, windows: Sequence[tuple[int, int]]) -> None:
        """Read the sound batches that end in these ranges of offsets."""
        tables, kept = [self.batches], [self.is_kept]
        cuts = {cut.file: cut.position for cut in self.plan.cuts}
        for segment in self.log.segments:
            if not any(overlaps(segment, *window) for window in windows):
                continue
            self._unread -= 1
            cut = cuts.get(os.path.basename(segment.path), segment.size)
            end = 0 if segment.base_offset in self.plan.deleted_segments else cut
            for table in sound_rows(segment):
                faults, last = table[:, column.FAULT], table[:, column.LAST_OFFSET]
                is_damaged = (faults != 0) & (faults != Fault.ZEROS)
                self.damaged_ranges += int(is_damaged.sum())
                inside = np.logical_or.reduce([(a <= last) & (last < b) for a, b in windows])
                rows = table[(faults == 0) & inside]
                tables.append(rows)
                kept.append(rows[:, column.POSITION] < end)
        self.batches, self.is_kept = np.concatenate(tables), np.concatenate(kept)

    def transactions(self, offset: int) -> list[PartitionTransaction]:
        """Return the transactions that have batches from an offset on."""
        base = self.log.segments[0].base_offset or 0
        start, entries = newest_snapshot(self.log, base, offset) or (base, [])
        walk = TransactionWalk(self.log, start, entries)
        return [*walk.ended(), *walk.still_open.by_producer.values()]


class LeaderChoices:
    """The replicas of one partition, and what is lost with each as its leader.

    Brokers in `without` neither lead nor follow: what only they have is lost. Batches are read
    where replicas differ, no others, but with `is_deep` all.
    """

    def __init__(
        self,
        logs: Sequence[PartitionLog],
        *,
        without: Collection[int] = (),
        now_ms: int = 0,
        is_deep: bool = False,
    ) -> None:
        self.replicas = [Replica(log, now_ms) for log in logs]
        self._runs = [
            replica.starts and replica.broker_id not in without for replica in self.replicas
        ]
        wanted = [(0, LARGEST_OFFSET)] if is_deep else [self._starts, (self._low, LARGEST_OFFSET)]
        windows = [window for window in wanted if window[0] < window[1]]
        for replica in self.replicas if windows else ():
            replica.read(windows)

    @cached_property
    def latest(self) -> Replica:
        """The replica of the latest leader epoch, of those the one that ends last, of those that
        can lead, if any can."""
        among = [self.replicas[each] for each in self.choices] or self.replicas
        return max(among, key=lambda each: (each.last_epoch or 0, each.state.log_end))

    def first_difference(self, number: int) -> int | None:
        """Return the first offset at which a replica has another batch than the latest one, of
        those that were read, where no cleaner has been over the log; None without any."""
        pair = self.replicas[number], self.latest
        if any(each.log.is_compacted for each in pair):
            return None
        found = compare(*(list(batch_facts(each.batches)) for each in pair))
        return found.different[0].start if found.different else None

    def can_lead(self, number: int) -> bool:
        """Return whether a replica's broker starts and is not left out."""
        return self._runs[number]

    @property
    def choices(self) -> list[int]:
        """The numbers of the replicas that can lead."""
        return [number for number, runs in enumerate(self._runs) if runs]

    @cached_property
    def _ends(self) -> dict[tuple[int, int], int | None]:
        """Where the log of the second replica ends once it has followed the first."""
        return {
            (leader, number): replica.state.log_end
            if number == leader
            else truncated_end(replica.state, self.replicas[leader].state)
            for leader in self.choices
            for number, replica in enumerate(self.replicas)
        }

    def truncations(self, leader: int) -> Iterator[tuple[int | None, int | None]]:
        """Yield the followers that truncate their logs, each with the offset at which it does; None
        where it drops all of it."""
        for number in self.choices:
            end = self._ends[leader, number]
            if end != self.replicas[number].state.log_end:
                yield self.replicas[number].broker_id, end

    @cached_property
    def _low(self) -> int:
        """The offset from which on replicas may have what others lack."""
        if not self.choices:
            return 0
        low = LARGEST_OFFSET
        for (_, number), end in self._ends.items():
            replica = self.replicas[number]
            if end is not None and end < replica.state.log_end:
                low = min(low, end)
        ends = [each.state.log_end for each in self.replicas if each.plan.cuts or not each.starts]
        return min([low, *ends])

    @cached_property
    def _starts(self) -> tuple[int, int]:
        """The offsets that some choice does not have any more, and another replica has."""
        starts = [each.state.log_start for each in self.replicas]
        latest = [self.replicas[number].state.log_start for number in self.choices]
        return min(starts, default=0), max(latest, default=0)

    def loss(self, leader: int | None) -> Loss:
        """Return what is lost if this replica leads; with None, where none can lead, all that there
        is. Rule: docs/format.md F928."""
        start = 0 if leader is None else self.replicas[leader].state.log_start
        left: set[BatchKey] = set()
        is_lost: list[BoolArray] = []
        for number, replica in enumerate(self.replicas):
            end = None if leader is None else self._ends[leader, number]
            last = replica.batches[:, column.LAST_OFFSET]
            stays = replica.is_kept & (last < (-1 if end is None else end))
            is_lost.append(~stays)
            if self._runs[number]:
                left.update(batch_keys(replica.batches[stays & (last >= start)]))
        found = Loss()
        lost = found.batches
        deleted: dict[BatchKey, int] = {}
        for number, replica in enumerate(self.replicas):
            rows = replica.batches
            is_below = (rows[:, column.LAST_OFFSET] < start) & replica.is_kept
            is_below &= rows[:, column.LAST_OFFSET] >= replica.state.log_start
            for key, count in zip(
                batch_keys(rows[is_below]), _records(rows[is_below]), strict=True
            ):
                if key not in left:
                    deleted[key] = count
            is_lost[number] &= ~is_below & (rows[:, column.LAST_OFFSET] >= replica.state.log_start)
            for place, key in zip(
                np.flatnonzero(is_lost[number]), batch_keys(rows[is_lost[number]]), strict=True
            ):
                if key in left:
                    is_lost[number][place] = False
                else:
                    lost.setdefault(key, []).append(number)
        found.deleted_records = sum(deleted.values())
        found.ranges = list(self._ranges(lost, is_lost))
        found.transactions = list(self._transactions(is_lost))
        return found

    def _ranges(
        self, lost: dict[BatchKey, list[int]], is_lost: Sequence[BoolArray]
    ) -> Iterator[LostRange]:
        """Yield the lost batches by the first replica that has them, those that follow each other
        together."""
        for number, replica in enumerate(self.replicas):
            rows, kept = replica.batches[is_lost[number]], replica.is_kept[is_lost[number]]
            latest: LostRange | None = None
            for row, first, count, is_kept, key in zip(
                rows.tolist(), first_offsets(rows).tolist(), _records(rows), kept.tolist(),
                batch_keys(rows), strict=True,
            ):  # fmt: skip
                if lost[key][0] != number:
                    continue
                each = LostRange(
                    tuple(self.replicas[other].broker_id for other in lost[key]),
                    row[column.LEADER_EPOCH],
                    first,
                    row[column.LAST_OFFSET],
                    count,
                    row[column.SIZE],
                    row[column.MAX_TIMESTAMP],
                    row[column.MAX_TIMESTAMP],
                    not is_kept,
                )
                if latest is not None and _continues(latest, each):
                    latest = _joined(latest, each)
                    continue
                if latest is not None:
                    yield latest
                latest = each
            if latest is not None:
                yield latest

    @cached_property
    def _all_transactions(self) -> list[list[PartitionTransaction]]:
        return [
            replica.transactions(self._low)
            if is_transactional(replica.batches, control=False).any()
            or is_transactional(replica.batches, control=True).any()
            else []
            for replica in self.replicas
        ]

    def _transactions(self, is_lost: Sequence[BoolArray]) -> Iterator[LostTransaction]:
        found: dict[tuple[BatchKey, ...], LostTransaction] = {}
        for number, replica in enumerate(self.replicas):
            lost = replica.batches[is_lost[number]]
            for each in self._all_transactions[number]:
                judged = _judged(each, lost)
                if judged is None:
                    continue
                what, records, batches = judged
                earlier = found.get(batches)
                brokers = (*(earlier.brokers if earlier else ()), replica.broker_id)
                # A replica may end before the marker that another one has.
                known = earlier.transaction if earlier and earlier.transaction.marker else each
                found[batches] = LostTransaction(brokers, known, records, what)
        yield from found.values()


def _judged(
    found: PartitionTransaction, lost: LongArray
) -> tuple[str, int, tuple[BatchKey, ...]] | None:
    """Return what becomes of a transaction without the lost batches, how many of its records are
    among them, and which of them are its own; None if nothing becomes of it."""
    end = LARGEST_OFFSET if found.marker_offset is None else found.marker_offset
    base = lost[:, column.BASE_OFFSET]
    own = lost[
        (lost[:, column.PRODUCER_ID] == found.producer_id)
        & (base >= (end if found.first_offset is None else found.first_offset))
        & (base <= end)
    ]
    data, markers = (own[is_transactional(own, control=control)] for control in (False, True))
    if not len(data):
        # A marker without any batch before it ends nothing.
        is_left = len(markers) and found.first_offset is not None
        return ("left_open", 0, tuple(batch_keys(markers))) if is_left else None
    records = sum(_records(data))
    is_whole = records == found.records and not found.began_earlier
    return ("lost" if is_whole else "partly_lost", records, tuple(batch_keys(data)))


def batch_keys(rows: LongArray) -> list[BatchKey]:
    """Return the key of each batch of a batch table."""
    return list(map(tuple, rows[:, _KEY].tolist()))


def _records(rows: LongArray) -> list[int]:
    """Return how many records each batch has; control batches have none."""
    found: list[int] = np.where(is_control(rows), 0, record_counts(rows)).tolist()
    return found


def _continues(one: LostRange, other: LostRange) -> bool:
    return (one.brokers, one.leader_epoch, one.is_recovered_away) == (
        *(other.brokers, other.leader_epoch, other.is_recovered_away),
    )


def _joined(one: LostRange, other: LostRange) -> LostRange:
    return one._replace(
        last_offset=other.last_offset,
        records=one.records + other.records,
        bytes=one.bytes + other.bytes,
        first_timestamp_ms=min(one.first_timestamp_ms, other.first_timestamp_ms),
        last_timestamp_ms=max(one.last_timestamp_ms, other.last_timestamp_ms),
    )
