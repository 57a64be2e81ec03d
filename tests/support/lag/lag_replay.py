"""A partition's log as a list of events, and each question about lag answered by counting.

Nothing of kafkalog is used here: what stands at an offset is known from the events alone, and each
column of an answer is one pass over all offsets. `lag_logs.py` draws events and writes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

NONE = -1
# What stands at an offset, by the column that counts it.
COUNTED = (
    "readable_records",
    "control_records",
    "aborted_records",
    "gaps",
    "beyond_last_stable",
    "below_log_start",
)
# What tells the high watermark.
CHECKPOINT, LOG_END, CREATE_TIME, LOG_APPEND_TIME, CONSUMED = range(5)


@dataclass(frozen=True, slots=True)
class Append:
    """Records with these times; `time_ms` is the broker's where the topic has LogAppendTime, which
    then is the time of all."""

    times_ms: tuple[int, ...]
    log_append_ms: int | None = None
    magic: int = 2
    codec: str = "NONE"
    producer: int = NONE
    in_transaction: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """The marker of a producer's transaction."""

    producer: int
    is_abort: bool
    time_ms: int


@dataclass(frozen=True, slots=True)
class Roll:
    """What follows is in a new segment."""


@dataclass(frozen=True, slots=True)
class Compact:
    """The cleaner takes records away below `end`: the batches `gone` with all that they had, others
    without a record left but for their header. Those `converted` are of an old format and become
    batches of format 2. Batches are identified by their first offsets."""

    end: int
    removed: frozenset[int]
    gone: frozenset[int] = frozenset()
    converted: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class DeleteSegments:
    """Retention: the log begins with the segment of this base offset."""

    base_offset: int


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """The log begins at an offset, wherever that lies."""

    offset: int


@dataclass(frozen=True, slots=True)
class Stop:
    """The broker stops cleanly and leaves its high watermark; without one it is killed."""

    high_watermark: int | None


Event = Append | End | Roll | Compact | DeleteSegments | DeleteRecords | Stop


@dataclass(slots=True)
class Transaction:
    """A transaction of one producer; `end_offset` is the marker's, None while it is open."""

    producer: int
    end_offset: int | None = None
    is_aborted: bool = False


@dataclass(slots=True)
class Batch:
    """What was appended at once, and the offsets of the records that are `left` of it."""

    first_offset: int
    append: Append
    transaction: Transaction | None = None
    is_control: bool = False
    is_abort: bool = False
    is_gone: bool = False
    left: list[int] = field(default_factory=list)
    magic: int = 2

    @property
    def last_offset(self) -> int:
        return self.first_offset + len(self.append.times_ms) - 1

    def time_of(self, offset: int) -> int:
        """The record's timestamp, as a consumer is given it."""
        if self.append.magic == 0:
            return NONE
        if self.append.log_append_ms is not None:
            return self.append.log_append_ms
        return self.append.times_ms[offset - self.first_offset]

    @property
    def timestamp_type(self) -> int:
        if self.magic == 0:
            return NONE
        return int(self.append.log_append_ms is not None)


@dataclass(slots=True)
class LagReplay:
    """The state that the events lead to. Batches of deleted segments stay in the list: that they
    were there is known, and transactions may have begun in them."""

    log_end: int = 0
    log_start: int = 0
    high_watermark: int | None = None
    batches: list[Batch] = field(default_factory=list)
    segments: list[int] = field(default_factory=lambda: [0])
    deleted_segments: list[int] = field(default_factory=list)
    is_start_inside: bool = False
    cleaned_to: int | None = None
    open: dict[int, Transaction] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """What the event changes."""
        match event:
            case Append():
                self._append(event)
            case End():
                self._end(event)
            case Roll():
                self.segments.append(self.log_end)
            case Compact():
                self._compact(event)
            case DeleteSegments():
                self.deleted_segments += [x for x in self.segments if x < event.base_offset]
                self.segments = [x for x in self.segments if x >= event.base_offset]
                self.log_start = max(self.log_start, event.base_offset)
            case DeleteRecords():
                self.log_start, self.is_start_inside = event.offset, True
            case Stop():
                self.high_watermark = event.high_watermark

    def _append(self, event: Append) -> None:
        transaction = None
        if event.in_transaction:
            transaction = self.open.setdefault(event.producer, Transaction(event.producer))
        # Without a codec each message of an old format stands alone.
        is_alone = event.magic < 2 and event.codec == "NONE"
        parts = [(time,) for time in event.times_ms] if is_alone else [event.times_ms]
        for times in parts:
            part = Append(
                times,
                event.log_append_ms,
                event.magic,
                event.codec,
                event.producer,
                event.in_transaction,
            )
            self._add(Batch(self.log_end, part, transaction, magic=event.magic))

    def _end(self, event: End) -> None:
        transaction = self.open.pop(event.producer)
        transaction.end_offset, transaction.is_aborted = self.log_end, event.is_abort
        append = Append((event.time_ms,), producer=event.producer, in_transaction=True)
        self._add(Batch(self.log_end, append, transaction, True, event.is_abort))

    def _add(self, batch: Batch) -> None:
        self.log_end = batch.last_offset + 1
        batch.left = list(range(batch.first_offset, self.log_end))
        self.batches.append(batch)

    def _compact(self, event: Compact) -> None:
        self.cleaned_to = event.end
        for batch in self.batches:
            batch.left = [offset for offset in batch.left if offset not in event.removed]
            batch.is_gone |= batch.first_offset in event.gone
            if batch.first_offset in event.converted:
                batch.magic = 2
        # Of segments none is left empty but the last.
        for base, following in list(zip(self.segments, self.segments[1:], strict=False)):
            if base in self.segments and not self._batches_in(base, following):
                self.segments.remove(following)

    def _batches_in(self, base: int, following: int) -> list[Batch]:
        there = (batch for batch in self.batches if not batch.is_gone)
        return [batch for batch in there if base <= batch.first_offset < following]

    @property
    def first_open_offset(self) -> int:
        """The first offset of the open transactions, or the log end."""
        return min(
            (batch.first_offset for batch in self.batches if self._is_open(batch.transaction)),
            default=self.log_end,
        )

    def _is_open(self, transaction: Transaction | None) -> bool:
        return transaction is not None and transaction.end_offset is None

    def at(self, at_ms: int | None, *, read_committed: bool, reached: int = 0) -> LagView:
        """The log as it was at a moment, None for now, by when somebody had committed the offset
        that it had `reached`."""
        records = {
            offset: batch
            for batch in self.batches
            for offset in batch.left
            if offset >= self.log_start
        }
        end = known = self.log_end if self.high_watermark is None else self.high_watermark
        if at_ms is not None:
            later = [x for x, batch in records.items() if x < end and batch.time_of(x) > at_ms]
            end = min(later, default=end)
        end_from = CHECKPOINT if self.high_watermark is not None else LOG_END
        if end < known:
            is_append_time = records[end].timestamp_type == 1
            end_from = LOG_APPEND_TIME if is_append_time else CREATE_TIME
        if at_ms is not None and end < reached <= known:
            end, end_from = reached, CONSUMED
        stable = max(self._stable(end), self.log_start) if read_committed else end
        what = []
        for offset in range(end):
            if offset < self.log_start:
                what.append("below_log_start")
            elif offset >= stable:
                what.append("beyond_last_stable")
            else:
                what.append(_what(records.get(offset), read_committed=read_committed))
        first = min((x for x in records if x < known), default=known)
        is_before = at_ms is not None and end == first and self.log_start > 0
        return LagView(self.log_start, end, end_from, stable, what, records, is_before)

    def _stable(self, end: int) -> int:
        """The end, or where the first transaction begins that has not ended below it. What the
        cleaner took away without a trace holds nothing back."""
        held = (
            batch.first_offset
            for batch in self.batches
            if batch.transaction is not None and not batch.is_control and not batch.is_gone
            if batch.transaction.end_offset is None or batch.transaction.end_offset >= end
        )
        return min((end, *held))


def _what(batch: Batch | None, *, read_committed: bool) -> str:
    """The column that an offset counts for whose record is of the batch."""
    if batch is None:
        return "gaps"
    if batch.is_control:
        return "control_records"
    is_aborted = batch.transaction is not None and batch.transaction.is_aborted
    return "aborted_records" if is_aborted and read_committed else "readable_records"


@dataclass(frozen=True, slots=True)
class LagView:
    """What a consumer of some isolation level sees at some moment: `what` stands at each offset
    below the high watermark, as the name of a column, and the batch of each record."""

    log_start_offset: int
    high_watermark: int
    high_watermark_from: int
    last_stable_offset: int
    what: list[str]
    records: dict[int, Batch]
    is_before_log: bool

    def answer(self, committed: int) -> dict[str, int]:
        """The counted columns of table consumer_lag."""
        left = self.what[committed:]
        return {
            "log_start_offset": self.log_start_offset,
            "high_watermark": self.high_watermark,
            "high_watermark_from": self.high_watermark_from,
            "last_stable_offset": self.last_stable_offset,
            "lag": self.high_watermark - committed,
            **{name: left.count(name) for name in COUNTED},
            "damaged": 0,
            "in_tiered_storage": 0,
            "ahead_of_log": len(range(self.high_watermark, committed)),
            **self._times(committed),
            "is_before_log": self.is_before_log,
        }

    def _times(self, committed: int) -> dict[str, int]:
        readable = [x for x, what in enumerate(self.what) if what == "readable_records"]
        times = {offset: self.records[offset].time_of(offset) for offset in readable}
        ahead = [offset for offset in readable if offset >= committed]
        behind = [offset for offset in readable if offset < committed]
        return {
            "next_offset": ahead[0] if ahead else NONE,
            "next_timestamp_ms": times[ahead[0]] if ahead else NONE,
            "newest_timestamp_ms": max((times[offset] for offset in ahead), default=NONE),
            "consumed_timestamp_ms": times[behind[-1]] if behind else NONE,
            "timestamp_type": self.records[ahead[0]].timestamp_type if ahead else NONE,
        }


def replayed(events: Iterable[Event]) -> LagReplay:
    """All events in their order."""
    replay = LagReplay()
    for event in events:
        replay.take(event)
    return replay
