"""Logs for the cleaner, drawn by a seed: keys written again and again, tombstones, transactions,
idempotent producers, old formats, and what earlier rounds of cleaning leave.
"""

import random
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kafkalog.format.batch_header import CREATE_TIME, LOG_APPEND_TIME, NO_VALUE, read_header
from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, read_batch, write_batch
from kafkalog.format.records import Record
from kafkalog.format.transaction_marker import ABORT, COMMIT, TransactionMarker, write_marker
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.log_writer import LogWriter
from kafkalog.wire.compression import CompressionType

HOUR_MS = 60 * 60 * 1000
_KEYS = [b"", *(f"key-{number}".encode() for number in range(12))]
_IDEMPOTENT, _TRANSACTIONAL = range(1, 4), range(10, 13)
# Of which nothing is left but the marker that ended its last transaction.
_ENDED = 13
_LEGACY_CODECS = (CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY)
_SEGMENT_BYTES = 1500


@dataclass(slots=True)
class CompactableLog:
    """Grows by what its `source` of chance draws. Times lie around `now_ms`."""

    source: random.Random
    now_ms: int
    batches: list[bytes] = field(default_factory=list)
    next_offset: int = 0
    _sequences: dict[int, int] = field(default_factory=dict)
    _epochs: dict[int, int] = field(default_factory=dict)
    # First offsets of open transactions by producer.
    open_transactions: dict[int, int] = field(default_factory=dict)

    def add_batches(self, count: int) -> None:
        """Batches of all kinds there are in format 2."""
        for _ in range(count):
            kind = self.source.choices(("plain", "idempotent", "transactional"), (3, 3, 5))[0]
            if kind == "plain":
                self.add_records(NO_VALUE)
            elif kind == "idempotent":
                self.add_records(self.source.choice(_IDEMPOTENT))
            else:
                self._go_on(self.source.choice(_TRANSACTIONAL))

    def end_transactions(self) -> None:
        """Markers for all that are open."""
        for producer in sorted(self.open_transactions):
            self.add_marker(producer, self.source.choice((ABORT, COMMIT)))

    def _go_on(self, producer: int) -> None:
        if self.source.random() < (0.4 if producer in self.open_transactions else 0.1):
            self.add_marker(producer, self.source.choice((ABORT, COMMIT)))
        else:
            self.add_records(producer)

    def add_records(self, producer: int) -> None:
        """A batch of records, or one that the cleaner has emptied."""
        source = self.source
        is_transactional = producer in _TRANSACTIONAL
        records = self._records(source.choice((CREATE_TIME, LOG_APPEND_TIME)))
        fields = BatchFields(
            producer_id=producer,
            producer_epoch=self._epochs.get(producer, 0) if producer >= 0 else NO_VALUE,
            base_sequence=self._sequences.get(producer, 0) if producer >= 0 else NO_VALUE,
            is_transactional=is_transactional,
            delete_horizon_ms=self._horizon(),
            compression=source.choice(list(CompressionType)),
            timestamp_type=records[0].timestamp_type,
            base_offset=self.next_offset,
            last_offset=records[-1].offset + source.choice((0, 0, 1)),
            max_timestamp_ms=max(each.timestamp_ms for each in records),
        )
        is_emptied = producer >= 0 and source.random() < 0.1
        batch = write_batch(() if is_emptied else records, fields)
        if producer >= 0:
            self._sequences[producer] = (read_header(batch, 0).last_sequence + 1) % 2**31
        if is_transactional:
            self.open_transactions.setdefault(producer, self.next_offset)
        self._append(batch)

    def add_marker(self, producer: int, kind: int) -> None:
        """The end of a transaction, by the second protocol in a new epoch."""
        epoch = self._epochs.get(producer, 0)
        if self.source.random() < 0.3:
            epoch = self._epochs[producer] = epoch + 1
            self._sequences[producer] = 0
        marker = TransactionMarker(kind, 0, self._time())
        fields = BatchFields(
            producer_id=producer, producer_epoch=epoch, delete_horizon_ms=self._horizon()
        )
        self.open_transactions.pop(producer, None)
        self._append(write_marker(marker, self.next_offset, fields))

    def add_legacy(self, count: int) -> None:
        """Messages of formats 0 and 1."""
        for _ in range(count):
            magic = self.source.choice((0, 1))
            records = self._records(CREATE_TIME)
            if magic == 0:
                records = [Record(r.offset, NO_VALUE, NO_VALUE, r.key, r.value) for r in records]
            codec = self.source.choice(_LEGACY_CODECS)
            # Without a codec every message is a batch of its own.
            groups = [[each] for each in records] if codec is CompressionType.NONE else [records]
            for group in groups:
                self.batches.append(write_message_set(group, magic, codec))
                self.next_offset = group[-1].offset + 1

    def _append(self, batch: bytes) -> None:
        self.batches.append(batch)
        self.next_offset = read_header(batch, 0).last_offset + 1 + self.source.choice((0, 0, 0, 2))

    def _records(self, timestamp_type: int) -> list[Record]:
        source, offset = self.source, self.next_offset
        records: list[Record] = []
        time_ms = self._time()
        for _ in range(source.randint(1, 4)):
            key = None if source.random() < 0.03 else source.choice(_KEYS)
            value = source.choice((None, b"", source.randbytes(60), source.randbytes(60)))
            headers = (("name", None), ("name", b"")) if source.random() < 0.1 else ()
            if timestamp_type == CREATE_TIME:
                time_ms = self._time()
            records.append(Record(offset, time_ms, timestamp_type, key, value, headers))
            offset += source.choice((1, 1, 1, 2))
        return records

    def _time(self) -> int:
        return self.now_ms - self.source.randint(0, HOUR_MS)

    def _horizon(self) -> int | None:
        """The offsets of a batch that was cleaned before: some are missing."""
        if self.source.random() > 0.2:
            return None
        return self.now_ms + self.source.choice((-HOUR_MS, HOUR_MS))


def compactable_log(seed: int, now_ms: int) -> CompactableLog:
    """A log of some sixty batches; of every third seed the oldest are of formats 0 and 1, and of
    every fourth a transaction may be open at the end."""
    log = CompactableLog(random.Random(seed), now_ms)
    if seed % 3 == 0:
        log.add_legacy(12)
    log.add_marker(_ENDED, COMMIT)
    log.add_batches(60)
    if seed % 4:
        log.end_transactions()
    return log


def write_compactable(
    directory: Path, batches: Iterable[bytes], now_ms: int, *, ends_rolled: bool = False
) -> None:
    """The batches in several segments, as a broker that was stopped leaves them; `ends_rolled`
    with nothing yet in the last one."""
    settings = LogSettings(segment_bytes=_SEGMENT_BYTES, index_interval_bytes=400)
    with LogWriter(str(directory), settings, now_ms=lambda: now_ms) as writer:
        for batch in batches:
            writer.append(batch)
        if ends_rolled:
            writer.roll(writer.next_offset)


def committed_state(batches: Iterable[bytes]) -> dict[bytes, tuple[int, bytes]]:
    """What replaying a log comes to: offset and value of each key's last committed
    record, keys with a tombstone left out. Plain, in one walk, records of open transactions not
    counted; nothing of the cleaner's rules is in it."""
    waiting: dict[int, list[Record]] = {}
    last: dict[bytes, Record] = {}

    def apply(records: Iterable[Record]) -> None:
        for record in records:
            if record.key is not None:
                known = last.get(record.key)
                if known is None or known.offset < record.offset:
                    last[record.key] = record

    for batch in batches:
        header = read_header(batch, 0)
        records = read_batch(batch, 0)
        if header.is_control:
            ended = waiting.pop(header.producer_id, [])
            if records and (records[0].key or b"")[2:] == struct.pack(">h", COMMIT):
                apply(ended)
        elif header.is_transactional:
            waiting.setdefault(header.producer_id, []).extend(records)
        else:
            apply(records)
    return {
        key: (record.offset, record.value)
        for key, record in last.items()
        if record.value is not None
    }
