"""Events of a partition's log drawn by a seed, and the log directory that they lead to.

The larger the seed, the longer the log: what fails first is short.
"""

import random
import struct
from collections.abc import Iterator
from pathlib import Path

from kafkalog.format.batch_header import CREATE_TIME, LOG_APPEND_TIME, NO_VALUE
from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.checkpoints import write_offset_checkpoint
from kafkalog.format.transaction_marker import ABORT, COMMIT
from kafkalog.storage.log_dir.log_dir import CLEAN_SHUTDOWN
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.log_writer import LogWriter
from kafkalog.wire.compression import CompressionType
from tests.support.lag.lag_replay import (
    Append,
    Batch,
    Compact,
    DeleteRecords,
    DeleteSegments,
    End,
    Event,
    LagReplay,
    Roll,
    Stop,
)

TOPIC = "orders"
START_MS = 1_700_000_000_000
_IDEMPOTENT, _TRANSACTIONAL = (1, 2), (10, 11, 12)
_CODECS = [each.name for each in CompressionType]
_LEGACY_CODECS = ("NONE", "NONE", "GZIP", "SNAPPY", "LZ4")
_MOST_EVENTS = 40


class _Draw:
    """Draws events one after another; what is possible depends on those before."""

    def __init__(self, seed: int) -> None:
        self._source = source = random.Random(seed)
        self._left = source.randint(0, min(4 + seed // 4, _MOST_EVENTS))
        self._has_log_append_time = source.random() < 0.3
        self._jitter_ms = source.choice((0, 0, 5, 60))
        # Logs begin with old formats, and some have nothing else.
        self._legacy = self._left if seed % 11 == 0 else source.choice((0, 0, 0, 3, 8))
        self._now_ms = START_MS
        self.replay = LagReplay()

    def events(self) -> Iterator[Event]:
        """All of a log."""
        kinds = (self._data, self._marker, self._roll, self._compact, self._deletion)
        for number in range(self._left):
            is_legacy = number < self._legacy
            drawn = kinds[:1] if is_legacy else self._source.choices(kinds, (20, 14, 5, 4, 1))
            event = drawn[0](is_legacy)
            if event is not None:
                self.replay.take(event)
                yield event
        yield self._stop()

    def _data(self, is_legacy: bool) -> Event:
        source = self._source
        self._now_ms += source.choice((0, 1, 20, 1000))
        times = tuple(self._time() for _ in range(source.choice((1, 1, 2, 3, 4))))
        append_ms = self._now_ms if self._has_log_append_time else None
        if append_ms is not None:
            # The producer's times come before the broker's, which one of them has.
            times = (append_ms, *(append_ms - source.randint(0, 50) for _ in times[1:]))
        if is_legacy:
            magic = source.choice((0, 1))
            append_ms = append_ms if magic else None
            return Append(times, append_ms, magic, source.choice(_LEGACY_CODECS))
        producer = source.choice((NO_VALUE, *_IDEMPOTENT, *_TRANSACTIONAL, *_TRANSACTIONAL))
        is_transactional = producer in _TRANSACTIONAL
        return Append(times, append_ms, 2, source.choice(_CODECS), producer, is_transactional)

    def _time(self) -> int:
        return self._now_ms + self._source.randint(-self._jitter_ms, self._jitter_ms)

    def _marker(self, _: bool) -> Event | None:
        if not self.replay.open:
            return None
        producer = self._source.choice(sorted(self.replay.open))
        return End(producer, self._source.random() < 0.4, self._time())

    def _roll(self, _: bool) -> Event | None:
        is_empty = self.replay.segments[-1] == self.replay.log_end
        return None if is_empty else Roll()

    def _deletion(self, _: bool) -> Event | None:
        replay, source = self.replay, self._source
        if len(replay.segments) > 1 and source.random() < 0.5:
            return DeleteSegments(source.choice(replay.segments[1:]))
        if replay.log_start == replay.log_end:
            return None
        highest = source.choice((replay.log_end, min(replay.log_start + 4, replay.log_end)))
        return DeleteRecords(source.randint(replay.log_start + 1, highest))

    def _compact(self, _: bool) -> Event | None:
        """Up to where a transaction is open; the batch at the log's end stays at least empty."""
        replay, source = self.replay, self._source
        live = (batch for batch in replay.batches if batch.first_offset >= replay.segments[0])
        there = [batch for batch in live if not batch.is_gone]
        if not there or there[-1].magic < 2:
            return None
        share = source.choice((0.2, 0.5, 1.0))
        removed: set[int] = set()
        gone: set[int] = set()
        converted: set[int] = set()
        for batch in there:
            if batch.last_offset >= replay.first_open_offset or batch.is_control:
                continue
            lost = {offset for offset in batch.left if source.random() < share}
            if batch.magic < 2 and source.random() < 0.5:
                converted.add(batch.first_offset)
            removed |= lost
            is_empty = lost == set(batch.left)
            keeps_header = batch.append.magic == 2 and source.random() < 0.3
            if is_empty and not keeps_header and batch is not there[-1]:
                gone.add(batch.first_offset)
        self._remove_markers(there, removed, gone)
        end = min(replay.first_open_offset, replay.log_end)
        return Compact(end, frozenset(removed), frozenset(gone), frozenset(converted - gone))

    def _remove_markers(self, there: list[Batch], removed: set[int], gone: set[int]) -> None:
        """Those whose transactions have no batch left, nor had one in a deleted segment: snapshots
        are written as if the log had never been more than what the cleaner left."""
        held = [
            batch.transaction
            for batch in self.replay.batches
            if not batch.is_control and not batch.is_gone and batch.first_offset not in gone
        ]
        for batch in there:
            is_over = batch.is_control and all(batch.transaction is not each for each in held)
            if is_over and self._source.random() < 0.6:
                removed.add(batch.first_offset)
                if batch is not there[-1] and self._source.random() < 0.7:
                    gone.add(batch.first_offset)

    def _stop(self) -> Event:
        replay, source = self.replay, self._source
        if source.random() < 0.3:
            return Stop(None)
        ends = [batch.last_offset + 1 for batch in replay.batches]
        reached = [end for end in ends if end >= replay.log_start]
        return Stop(source.choice((replay.log_end, *reached)))


def drawn_events(seed: int) -> list[Event]:
    """The events of one log: always the same for a seed."""
    return list(_Draw(seed).events())


def drawn_moments(seed: int, replay: LagReplay) -> list[int]:
    """Before all records, after all, and some between, just before or at a timestamp."""
    source = random.Random(seed)
    times = {batch.time_of(offset) for batch in replay.batches for offset in batch.left}
    known = sorted(times - {NO_VALUE}) or [START_MS]
    some = [source.choice(known) + source.choice((-1, 0, 0, 1)) for _ in range(4)]
    return [known[0] - 1, *some, known[-1]]


def write_log_dir(log_dir: Path, replay: LagReplay) -> Path:
    """The directory of a broker that stopped, or was killed, with this one partition; its path."""
    log_dir.mkdir()
    partition = log_dir / f"{TOPIC}-0"
    _write_partition(partition, replay)
    for base_offset in replay.deleted_segments:
        for path in partition.glob(f"{base_offset:020d}.*"):
            path.unlink()
    key = (TOPIC, 0)
    high_watermark = replay.high_watermark
    # What a killed broker wrote last can be anything.
    checkpoints = {"replication-offset-checkpoint": {key: high_watermark or 0}}
    if replay.is_start_inside:
        checkpoints["log-start-offset-checkpoint"] = {key: replay.log_start}
    if replay.cleaned_to is not None:
        checkpoints["cleaner-offset-checkpoint"] = {key: replay.cleaned_to}
    for name, offsets in checkpoints.items():
        (log_dir / name).write_text(write_offset_checkpoint(offsets))
    if high_watermark is not None:
        (log_dir / CLEAN_SHUTDOWN).touch()
    return partition


def _write_partition(partition: Path, replay: LagReplay) -> None:
    settings = LogSettings(index_interval_bytes=200)
    bases = sorted((*replay.deleted_segments, *replay.segments))[1:]
    with LogWriter(
        str(partition), settings, now_ms=lambda: START_MS, flush=lambda _: None
    ) as writer:
        for batch in replay.batches:
            if batch.is_gone:
                continue
            while bases and bases[0] <= batch.first_offset:
                writer.roll(bases.pop(0))
            writer.append(batch_bytes(batch))
        if bases:
            writer.roll(bases.pop(0))


def batch_bytes(batch: Batch) -> bytes:
    """As the broker wrote it, or as the cleaner left it."""
    append = batch.append
    records = [_record(batch, offset) for offset in batch.left]
    if batch.magic < 2:
        return write_message_set(records, batch.magic, CompressionType[append.codec])
    is_whole = len(records) == len(append.times_ms)
    is_converted = append.magic < 2
    codec = CompressionType[append.codec]
    fields = BatchFields(
        producer_id=append.producer,
        producer_epoch=0 if append.producer >= 0 else NO_VALUE,
        base_sequence=NO_VALUE if batch.is_control or append.producer < 0 else batch.first_offset,
        is_transactional=append.in_transaction,
        is_control=batch.is_control,
        # Some of those that were cleaned have one.
        delete_horizon_ms=START_MS * 2 if records and not is_whole and len(records) % 2 else None,
        compression=codec,
        timestamp_type=CREATE_TIME if append.log_append_ms is None else LOG_APPEND_TIME,
        base_offset=None if is_converted else batch.first_offset,
        last_offset=None if is_converted else batch.last_offset,
        max_timestamp_ms=append.log_append_ms,
    )
    return write_batch(records, fields)


def _record(batch: Batch, offset: int) -> Record:
    """With the timestamp that the producer wrote."""
    append = batch.append
    time_ms = NO_VALUE if append.magic == 0 else append.times_ms[offset - batch.first_offset]
    if batch.is_control:
        kind = ABORT if batch.is_abort else COMMIT
        return Record(
            offset, time_ms, CREATE_TIME, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 1)
        )
    timestamp_type = CREATE_TIME if append.log_append_ms is None else LOG_APPEND_TIME
    if append.log_append_ms is not None and offset == batch.left[0]:
        time_ms = append.log_append_ms  # the writer of format 1 takes the wrapper's from these
    value = b"value of " + str(offset).encode()
    return Record(offset, time_ms, timestamp_type, str(offset % 7).encode(), value)
