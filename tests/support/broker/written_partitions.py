"""Partitions as kafkalog's writer makes them, and what a consumer must receive of each.

`V2_PARTITIONS` and `LEGACY_PARTITIONS` hold them in the order of their partition numbers.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafkalog.format.batch_header import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE
from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record, RecordHeader
from kafkalog.format.segment_writer import SegmentFiles, write_segment
from kafkalog.format.transaction_marker import ABORT, COMMIT, TransactionMarker, write_marker
from kafkalog.wire.compression import CompressionType

_FIRST_MS = 1_600_000_000_123
_APPENDED_MS = 1_650_000_000_456
_PER_BATCH = 15
_PER_SEGMENT = 150
_LEGACY_CODECS = tuple(CompressionType)[:4]
# The offset that a segment beginning with this batch is named by, and the batch.
_Batch = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class WrittenPartition:
    """Segments to be given to a broker.

    `records` are those that a consumer must receive, control records left out; `committed` those
    of them that one with isolation read_committed must receive.
    """

    name: str
    segments: tuple[SegmentFiles, ...]
    records: tuple[Record, ...]
    end_offset: int
    committed: tuple[Record, ...]


_KEYS = (None, b"", b"\x00\xff\x80", b"plain", "schlüssel-鍵".encode(), b"a\\x41\tb\nc", b"\\F\\H")
_HEADERS: tuple[tuple[RecordHeader, ...], ...] = (
    (),
    (("null", None), ("empty", b"")),
    (("twice", b"1"), ("twice", b"2"), ("twice", b"1")),
    (("größe-Ω-名-🜚", bytes(range(256))),),
    (("", b"of an empty name"),),
)


def _values(seed: int, count: int) -> list[bytes | None]:
    """Null, empty, every byte, text that compresses well, and much that does not compress."""
    source = random.Random(seed)
    values: list[bytes | None] = []
    for index in range(count):
        choices = (None, b"", bytes(range(256)), b"again and again " * index)
        values.append(source.choice((*choices, *(source.randbytes(900),) * 3)))
    # Larger than any block of a codec's framing.
    values[count // 2] = b"much the same " * 20_000
    values[count // 3] = source.randbytes(150_000)
    return values


def varied_records(first_offset: int, count: int) -> list[Record]:
    """Records with consecutive offsets and every sort of key, value, headers and timestamp."""
    return [
        Record(
            offset=first_offset + index,
            timestamp_ms=_FIRST_MS + index * 1000 - index % 7 * 5000,
            timestamp_type=CREATE_TIME,
            key=_KEYS[index % len(_KEYS)],
            value=value,
            headers=_HEADERS[index % len(_HEADERS)],
        )
        for index, value in enumerate(_values(first_offset, count))
    ]


def _in_format(records: Sequence[Record], magic: int) -> list[Record]:
    """The records as format 0 or 1 can hold them."""
    changed = [replace(record, headers=()) for record in records]
    if magic == 1:
        return changed
    return [
        replace(record, timestamp_ms=-1, timestamp_type=NO_TIMESTAMP_TYPE) for record in changed
    ]


def _chunks(records: Sequence[Record]) -> list[Sequence[Record]]:
    """The records of each batch."""
    return [records[start : start + _PER_BATCH] for start in range(0, len(records), _PER_BATCH)]


def _flat(chunks: Sequence[Sequence[Record]]) -> list[Record]:
    return [record for chunk in chunks for record in chunk]


def _partition(
    name: str, batches: Sequence[_Batch], records: Sequence[Record], end_offset: int
) -> WrittenPartition:
    """A partition in segments of about `_PER_SEGMENT` offsets."""
    groups: list[list[_Batch]] = []
    for batch in batches:
        if not groups or batch[0] - groups[-1][0][0] >= _PER_SEGMENT:
            groups.append([])
        groups[-1].append(batch)
    segments = [write_segment([data for _, data in group], group[0][0]) for group in groups]
    return WrittenPartition(name, tuple(segments), tuple(records), end_offset, tuple(records))


def _batches_v2(chunks: Sequence[Sequence[Record]], fields: BatchFields) -> list[_Batch]:
    return [(chunk[0].offset, write_batch(chunk, fields)) for chunk in chunks]


def _codec_partition(codec: CompressionType) -> WrittenPartition:
    records = varied_records(0, 500)
    batches = _batches_v2(_chunks(records), BatchFields(compression=codec))
    return _partition(f"v2-{codec.name.lower()}", batches, records, 500)


def _append_time_partition() -> WrittenPartition:
    """Every other batch was stamped by the broker, whatever its records say."""
    chunks = _chunks(varied_records(0, 150))
    stamp = BatchFields(timestamp_type=LOG_APPEND_TIME, max_timestamp_ms=_APPENDED_MS)
    stamped = [[_stamped(record, _APPENDED_MS) for record in chunk] for chunk in chunks[::2]]
    batches = _batches_v2(chunks[::2], stamp) + _batches_v2(chunks[1::2], BatchFields())
    received = sorted(_flat([*stamped, *chunks[1::2]]), key=lambda record: record.offset)
    return _partition("v2-log-append-time", sorted(batches), received, 150)


def _stamped(record: Record, timestamp_ms: int) -> Record:
    return replace(record, timestamp_ms=timestamp_ms, timestamp_type=LOG_APPEND_TIME)


def _odd_times_partition() -> WrittenPartition:
    """Timestamps of -1 and 0, before the first of their batch, and far in the future."""
    times = (5, -1, 0, _FIRST_MS, 3, 4_000_000_000_000, 2)
    records = [
        replace(record, timestamp_ms=times[index % len(times)])
        for index, record in enumerate(varied_records(0, 70))
    ]
    return _partition(
        "v2-odd-timestamps", _batches_v2(_chunks(records), BatchFields()), records, 70
    )


def _compacted_partition() -> WrittenPartition:
    """Gaps inside batches, at both their ends, between them and between segments.

    The segments' names are lower than their first batch's offset, as a cleaner leaves them.
    """
    records = [record for record in varied_records(7_000_000_000, 800) if record.offset % 7 > 3]
    chunks = _chunks(records)[::2]
    batches: list[_Batch] = []
    for chunk in chunks:
        fields = BatchFields(
            base_offset=chunk[0].offset - 2,
            last_offset=chunk[-1].offset + 3,
            compression=CompressionType.ZSTD,
        )
        batches.append((chunk[0].offset - 4, write_batch(chunk, fields)))
    return _partition("v2-compacted", batches, _flat(chunks), chunks[-1][-1].offset + 4)


def _horizon_partition() -> WrittenPartition:
    """Batches in which a cleaner has noted when their tombstones may go."""
    records = varied_records(0, 60)
    fields = BatchFields(delete_horizon_ms=_FIRST_MS + 86_400_000)
    return _partition("v2-delete-horizon", _batches_v2(_chunks(records), fields), records, 60)


def _idempotent_partition() -> WrittenPartition:
    """A producer whose sequence numbers wrap, and whose last batch was compacted to nothing."""
    records = varied_records(0, 60)
    producer = BatchFields(producer_id=4711, producer_epoch=3)
    batches: list[_Batch] = []
    for chunk in _chunks(records):
        fields = replace(producer, base_sequence=(2**31 - 20 + chunk[0].offset) % 2**31)
        batches.append((chunk[0].offset, write_batch(chunk, fields)))
    empty = replace(producer, base_sequence=40, base_offset=60, last_offset=69)
    batches.append((60, write_batch([], empty)))
    return _partition("v2-idempotent", batches, records, 70)


def _transactional_partition() -> WrittenPartition:
    """A committed transaction, an aborted one, and records outside of both."""
    loose, kept, lost = varied_records(0, 10), varied_records(10, 10), varied_records(21, 10)
    sent = BatchFields(producer_id=815, producer_epoch=0, base_sequence=0, is_transactional=True)
    batches = [
        (0, write_batch(loose)),
        (10, write_batch(kept, sent)),
        (20, _marker(20, COMMIT)),
        (21, write_batch(lost, replace(sent, base_sequence=10))),
        (31, _marker(31, ABORT)),
    ]
    made = _partition("v2-transactional", batches, (*loose, *kept, *lost), 32)
    return replace(made, committed=(*loose, *kept))


def _marker(offset: int, kind: int) -> bytes:
    """The control batch that ends producer 815's transaction."""
    fields = BatchFields(producer_id=815, producer_epoch=0)
    return write_marker(TransactionMarker(kind, 6, _FIRST_MS), offset, fields)


def _batches_legacy(chunk: Sequence[Record], magic: int, codec: CompressionType) -> list[_Batch]:
    """One wrapper of the records, or, uncompressed, each as a batch of its own."""
    sets = [chunk] if codec else [[record] for record in chunk]
    return [(records[0].offset, write_message_set(records, magic, codec)) for records in sets]


def _legacy_codec_partition(magic: int, codec: CompressionType) -> WrittenPartition:
    records = _in_format(varied_records(0, 500), magic)
    batches = [
        batch for chunk in _chunks(records) for batch in _batches_legacy(chunk, magic, codec)
    ]
    return _partition(f"v{magic}-{codec.name.lower()}", batches, records, 500)


def _legacy_append_time_partition() -> WrittenPartition:
    """Wrappers stamped by the broker, and plain messages each with a stamp of its own."""
    records = _in_format(varied_records(0, 60), 1)
    batches: list[_Batch] = []
    received: list[Record] = []
    for index, chunk in enumerate(_chunks(records)):
        codec = _LEGACY_CODECS[index % 2]
        sent = [_stamped(record, record.timestamp_ms) for record in chunk]
        latest = max(record.timestamp_ms for record in chunk)
        batches += _batches_legacy(sent, 1, codec)
        received += [_stamped(record, latest) for record in sent] if codec else sent
    return _partition("v1-log-append-time", batches, received, 60)


def _legacy_compacted_partition(magic: int) -> WrittenPartition:
    """Gaps inside wrappers and between them."""
    kept = [record for record in varied_records(5000, 600) if record.offset % 7 > 3]
    chunks = _chunks(_in_format(kept, magic))[::2]
    batches: list[_Batch] = []
    for index, chunk in enumerate(chunks):
        batches += _batches_legacy(chunk, magic, _LEGACY_CODECS[index % 4])
    records = _flat(chunks)
    return _partition(f"v{magic}-compacted", batches, records, records[-1].offset + 1)


def _mixed_formats_partition() -> WrittenPartition:
    """The formats of three generations of clients in the same segments."""
    batches: list[_Batch] = []
    received: list[Record] = []
    for index, chunk in enumerate(_chunks(varied_records(0, 360))):
        magic, codec = index % 3, _LEGACY_CODECS[index % 4]
        held = chunk if magic == 2 else _in_format(chunk, magic)
        received += held
        if magic == 2:
            batches.append((held[0].offset, write_batch(held, BatchFields(compression=codec))))
        else:
            batches += _batches_legacy(held, magic, codec)
    return _partition("v0-v1-v2-mixed", batches, received, 360)


V2_PARTITIONS = (
    *(_codec_partition(codec) for codec in CompressionType),
    _append_time_partition(),
    _odd_times_partition(),
    _compacted_partition(),
    _horizon_partition(),
    _idempotent_partition(),
    _transactional_partition(),
)
LEGACY_PARTITIONS = (
    *(_legacy_codec_partition(magic, codec) for magic in (0, 1) for codec in _LEGACY_CODECS),
    _legacy_append_time_partition(),
    _legacy_compacted_partition(0),
    _legacy_compacted_partition(1),
    _mixed_formats_partition(),
)
