"""How often keys occur, and tombstones, from view `records` of ordinary topics."""

from __future__ import annotations

import codecs
import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import binaries, of_values
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.keys.key_hashes import SECRET_BYTES, hash_keys, secret_words
from kafkalog.report.contents import KeysSection, Row, as_rows
from kafkalog.report.reading.key_sketch import KeySketch, sketch_of
from kafkalog.views.engine import AskedView, Rows

_COLUMNS = ("topic", "key", "value")
_TOP_KEYS = 10
_SHOWN_CHARACTERS = 48
# Enough for the characters that are shown of a key, and for whether it has more.
_SAMPLE_BYTES = 4 * (_SHOWN_CHARACTERS + 2)
# Hashes of 2 MiB: samples of keys wait with them.
_MOST_WAITING = 256 * 1024
_NUMBERS = ("records", "keyed", "tombstones")
_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        *((name, pa.int64()) for name in _NUMBERS),
        # The bytes of numbers, and of samples one after another, with where each ends.
        *((name, pa.binary()) for name in ("hashes", "counts", "smallest")),
        *(("samples", pa.binary()), ("sample_ends", pa.binary())),
    ]
)


def asked_keys(topics: Sequence[str | None], *, are_shown: bool) -> AskedView:
    """Return the view that counts the keys of ordinary topics, those that are not among `topics` as
    one; hashed with a secret that is forgotten, and with samples if they `are_shown`."""
    secret = secrets.token_bytes(SECRET_BYTES)
    fold = partial(KeyCounting, topics, secret, has_samples=are_shown)
    options = {"subscribe": None}
    return AskedView("records", _COLUMNS, None, _SCHEMA, options, fold=fold, has_value_bytes=False)


def keys_section(counted: Rows, *, are_shown: bool) -> KeysSection:
    """Return a row per topic, None for those that are not shown: records; keyed, those with a key;
    tombstones, those of them without a value; distinct_keys, estimated; and top_keys, (item, count)
    of the most frequent ones: a hash, or with `are_shown` the key."""
    found: dict[str | None, TopicKeys] = defaultdict(TopicKeys)
    for row in as_rows(counted):
        found[row.topic].add(_of_row(row))
    shown = sorted(found, key=lambda topic: (-found[topic].records, topic or ""))
    return KeysSection([_row(topic, found[topic], are_shown) for topic in shown], are_shown)


@dataclass
class TopicKeys:
    """What is known of the keys of a topic."""

    records: int = 0
    keyed: int = 0
    tombstones: int = 0
    sketch: KeySketch = field(default_factory=KeySketch)

    def add(self, other: TopicKeys) -> None:
        """Add what is known of other records."""
        self.records += other.records
        self.keyed += other.keyed
        self.tombstones += other.tombstones
        self.sketch.merge(other.sketch)


class KeyCounting:
    """Counts the keys in a task's records."""

    def __init__(self, topics: Sequence[str | None], secret: bytes, *, has_samples: bool) -> None:
        self._topics = topics
        counting = partial(_Counting, secret_words(secret), has_samples=has_samples)
        self._found: dict[str | None, _Counting] = defaultdict(counting)

    def add(self, batch: pa.RecordBatch) -> Sequence[pa.RecordBatch]:
        """Count the keys of some records."""
        topics = batch.column("topic")
        distinct = pc.unique(topics)
        for topic in distinct:
            own = batch
            if len(distinct) > 1:
                is_of = topics.is_null() if not topic.is_valid else pc.equal(topics, topic)
                own = batch.filter(is_of)
            name = topic.as_py()
            found = self._found[name if name in self._topics else None]
            found.count(own.column("key"), own.column("value"))
        return ()

    def end(self) -> Sequence[pa.RecordBatch]:
        """Return a row per topic."""
        if not self._found:
            return ()
        rows = [_as_row(topic, counting.result()) for topic, counting in self._found.items()]
        columns = [of_values([row[each.name] for row in rows], each.type) for each in _SCHEMA]
        return [pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)]


class _Counting:
    """Counts the keys of a topic in a task. Hashes wait until they are many: each sketch that is
    merged costs as much as some ten thousand of them."""

    def __init__(self, secret: LongArray, *, has_samples: bool) -> None:
        self._secret = secret
        self._has_samples = has_samples
        self._found = TopicKeys()
        self._waiting: list[LongArray] = []
        self._samples: list[bytes] = []

    def count(self, keys: pa.Array, values: pa.Array) -> None:
        """Count the keys of some records."""
        found, keyed = self._found, keys
        if keys.null_count:
            keyed = keys.drop_null()
        found.records += len(keys)
        found.keyed += len(keyed)
        if values.null_count:
            tombstones = pc.and_(keys.is_valid(), values.is_null())
            found.tombstones += pc.sum(tombstones).as_py() or 0
        hashes = np.empty((len(keyed), 1), np.int64)
        data, ends, _ = binaries(keyed)
        hash_keys(data, ends, self._secret, hashes)
        self._waiting.append(hashes[:, 0])
        if self._has_samples:
            self._samples += pc.binary_slice(keyed, 0, _SAMPLE_BYTES).to_pylist()
        if sum(map(len, self._waiting)) >= _MOST_WAITING:
            self._merge()

    def result(self) -> TopicKeys:
        """Return what was counted."""
        self._merge()
        return self._found

    def _merge(self) -> None:
        if self._waiting:
            hashes = np.concatenate(self._waiting).view(np.uint64)
            samples = self._samples if self._has_samples else None
            self._found.sketch.merge(sketch_of(hashes, samples))
            self._waiting, self._samples = [], []


def _as_row(topic: str | None, keys: TopicKeys) -> dict[str, object]:
    sketch = keys.sketch
    samples = sketch.samples.tolist()
    return {
        "topic": topic,
        **{name: getattr(keys, name) for name in _NUMBERS},
        **{name: getattr(sketch, name).tobytes() for name in ("hashes", "counts", "smallest")},
        "samples": b"".join(samples),
        "sample_ends": np.cumsum([*map(len, samples)], dtype=np.int64).tobytes(),
    }


def _of_row(row: Row) -> TopicKeys:
    hashes, smallest = (np.frombuffer(row[name], np.uint64) for name in ("hashes", "smallest"))
    counts, ends = (np.frombuffer(row[name], np.int64) for name in ("counts", "sample_ends"))
    samples = np.empty(len(hashes), object)
    samples[:] = [row.samples[begin:end] for begin, end in pairwise([0, *ends.tolist()])]
    return TopicKeys(
        row.records, row.keyed, row.tombstones, KeySketch(hashes, counts, samples, smallest)
    )


def _row(topic: str | None, keys: TopicKeys, are_shown: bool) -> Row:
    top = [
        Row(item=_text(sample, number) if are_shown else f"{number:016x}"[:8], count=count)
        for number, count, sample in keys.sketch.most_frequent(_TOP_KEYS)
    ]
    numbers = {name: getattr(keys, name) for name in _NUMBERS}
    return Row(shown_topic=topic, distinct_keys=keys.sketch.distinct, top_keys=top, **numbers)


def _text(sample: bytes, number: int) -> str:
    """Return a key as text, or in hexadecimal where it is none; long ones by their beginning and
    hash."""
    is_whole = len(sample) < _SAMPLE_BYTES
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(sample, final=is_whole)
    except UnicodeDecodeError:
        text = f"0x{sample.hex().upper()}"
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}… {number:016x}"
