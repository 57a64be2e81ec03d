"""Batches and records for tests, as simple as they can be; and strategies for all of them."""

from collections.abc import Sequence

from hypothesis import strategies as st

from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.wire.compression import CompressionType

LEGACY_CODECS = (
    CompressionType.NONE,
    CompressionType.GZIP,
    CompressionType.SNAPPY,
    CompressionType.LZ4,
)


def record(offset: int, value: bytes | None = b"value", key: bytes | None = b"key") -> Record:
    """A record with the timestamp 1000 + offset."""
    return Record(offset, 1000 + offset, 0, key, value)


def batch(first: int, count: int = 3, *, epoch: int = 0, value: bytes = b"value" * 8) -> bytes:
    """A batch v2 of records with consecutive offsets."""
    return write_batch(
        [record(first + i, value) for i in range(count)], BatchFields(leader_epoch=epoch)
    )


def consecutive(batches: int, start: int = 0, count: int = 3) -> list[bytes]:
    """Batches v2 that follow each other without a gap."""
    return [batch(start + i * count, count) for i in range(batches)]


fields = st.none() | st.binary(max_size=40)
timestamps = st.integers(-(2**63), 2**63 - 1) | st.integers(1_600_000_000_000, 1_700_000_000_000)
headers = st.lists(st.tuples(st.text(max_size=8), fields), max_size=4).map(tuple)


@st.composite
def records_v2(draw: st.DrawFn, first: int) -> list[Record]:
    """Records of one batch v2: offsets with holes, any times, keys, values, headers."""
    gaps = draw(st.lists(st.integers(1, 4), min_size=0, max_size=6))
    offsets = [first]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    return [
        Record(offset, draw(timestamps), 0, draw(fields), draw(fields), draw(headers))
        for offset in offsets
    ]


@st.composite
def batches_v2(draw: st.DrawFn, first: int) -> tuple[bytes, list[Record], int]:
    """A batch v2, its records, and the offset after it."""
    records = draw(records_v2(first))
    last = records[-1].offset + draw(st.integers(0, 2))
    has_producer = draw(st.booleans())
    sequence = draw(st.integers(0, 2**31 - 1)) if has_producer else -1
    log_append = draw(st.booleans())
    written = BatchFields(
        leader_epoch=draw(st.integers(0, 3)) if draw(st.booleans()) else 0,
        producer_id=draw(st.integers(0, 2**40)) if has_producer else -1,
        producer_epoch=draw(st.integers(0, 100)) if has_producer else -1,
        base_sequence=sequence,
        is_transactional=has_producer and draw(st.booleans()),
        delete_horizon_ms=draw(st.none() | st.integers(0, 2**40)),
        compression=draw(st.sampled_from(CompressionType)),
        timestamp_type=int(log_append),
        last_offset=last,
    )
    encoded = write_batch(records, written)
    latest = max(item.timestamp_ms for item in records)
    base = records[0].offset
    expected = [
        Record(
            item.offset,
            latest if log_append else item.timestamp_ms,
            int(log_append),
            item.key,
            item.value,
            item.headers,
            (sequence + item.offset - base) % 2**31 if has_producer else -1,
        )
        for item in records
    ]
    return encoded, expected, last + 1


@st.composite
def message_sets(draw: st.DrawFn, first: int, magic: int) -> tuple[bytes, list[Record], int]:
    """A message set of format 0 or 1, plain or compressed."""
    count = draw(st.integers(1, 4))
    offsets = [first]
    for _ in range(count - 1):
        offsets.append(offsets[-1] + draw(st.integers(1, 3)))
    log_append = magic == 1 and draw(st.booleans())
    kind = -1 if magic == 0 else int(log_append)
    codec = draw(st.sampled_from(LEGACY_CODECS))
    times = [-1 if magic == 0 else draw(st.integers(0, 2**40)) for _ in offsets]
    records = [
        Record(offset, time, kind, draw(fields), draw(fields))
        for offset, time in zip(offsets, times, strict=True)
    ]
    encoded = write_message_set(records, magic, codec)
    if log_append and codec:
        records = [Record(item.offset, max(times), kind, item.key, item.value) for item in records]
    return encoded, records, offsets[-1] + 1


@st.composite
def segments(draw: st.DrawFn, base: int = 0) -> tuple[list[bytes], list[Record]]:
    """Batches of all formats, one after another, and their records."""
    batches: list[bytes] = []
    expected: list[Record] = []
    following = base + draw(st.integers(0, 3))
    for magic in draw(st.lists(st.sampled_from((0, 1, 2, 2, 2)), max_size=6)):
        strategy = batches_v2(following) if magic == 2 else message_sets(following, magic)
        encoded, records, following = draw(strategy)
        following += draw(st.integers(0, 2))
        batches.append(encoded)
        expected += records
    return batches, expected


def joined(parts: Sequence[bytes]) -> bytes:
    return b"".join(parts)
