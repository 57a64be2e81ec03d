"""Records as tests write them down, and the clock that gives them times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafkalog.errors import RowError
from kafkalog.format.batch_header import CREATE_TIME
from kafkalog.format.records import Record

# 2026-01-01T00:00:00Z
START_MS = 1_767_225_600_000
_TICK_MS = 1000

# Text is UTF-8; None is null, which is not the same as empty.
Field = str | bytes | None
Header = tuple[str, Field]


class ProducerRecord(NamedTuple):
    """A record to send. A value of None is a tombstone; without a time the record gets that of the
    log directory's clock."""

    key: Field
    value: Field
    headers: Sequence[Header] = ()
    timestamp_ms: int | None = None


@dataclass(slots=True)
class Clock:
    """The time of a log directory: a second passes with each record, commit or marker."""

    now_ms: int = START_MS

    def tick(self) -> int:
        """Return the current time and advance the clock."""
        now_ms = self.now_ms
        self.now_ms += _TICK_MS
        return now_ms


def sent_record(given: ProducerRecord | tuple[Field, Field]) -> ProducerRecord:
    """Return the record with all its fields. Raises RowError if it is not a record."""
    if not isinstance(given, tuple) or not 2 <= len(given) <= len(ProducerRecord._fields):
        raise RowError(f"{given!r}: a record is a ProducerRecord, or a tuple of key and value")
    return ProducerRecord(*given)


def field_bytes(field: Field) -> bytes | None:
    """Return a key or a value as bytes. Raises RowError if it is neither text nor bytes nor
    None."""
    if field is None or isinstance(field, bytes):
        return field
    if not isinstance(field, str):
        raise RowError(f"{field!r}: keys, values and headers are text, bytes or None")
    return field.encode()


def record_at(sent: ProducerRecord, offset: int, clock: Clock) -> Record:
    """Return a sent record as the record at an offset."""
    return Record(
        offset,
        clock.tick() if sent.timestamp_ms is None else sent.timestamp_ms,
        CREATE_TIME,
        field_bytes(sent.key),
        field_bytes(sent.value),
        tuple((name, field_bytes(value)) for name, value in sent.headers),
    )
