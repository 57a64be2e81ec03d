"""Many records over few keys, as a partition's segments and the same as Parquet."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from crc32c import crc32c

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record

_BATCH_RECORDS = 500
_SEGMENT_BATCHES = 2000  # a million records
_KEY = b"key%09d"
VALUE_BYTES = 100
_TIMESTAMP_MS = 1_700_000_000_000
_CHECKSUM = slice(17, 21)
_SEED = 7
_WITH_PARQUET = " parquet"
# A prime that divides no number of keys below it: a multiple of it for each key gives each once.
_STRIDE = 2_147_483_647


def write_inputs(
    directory: Path,
    records: int,
    keys: int,
    *,
    value_bytes: int = VALUE_BYTES,
    has_every_key: bool = False,
    with_parquet: bool = True,
) -> tuple[Path, Path]:
    """A log directory and a directory of Parquet files with the same records, made once; without
    `with_parquet` the latter can have none. Keys are random; with `has_every_key` the first
    records have each key once, in an order of their own.

    Raises ValueError where the directory has others.
    """
    logs, parquet = directory / "logs", directory / "parquet"
    done, wanted = directory / "done", f"{records} {keys} {value_bytes} {has_every_key}"
    found = done.read_text() if done.exists() else ""
    if found.removesuffix(_WITH_PARQUET) not in ("", wanted):
        raise ValueError(f"{directory} has other records: remove it, or give another --inputs")
    if found and found.endswith(_WITH_PARQUET) >= with_parquet:
        return logs, parquet
    partition = logs / "orders-0"
    partition.mkdir(parents=True, exist_ok=True)
    parquet.mkdir(exist_ok=True)
    random = np.random.default_rng(_SEED)
    step = _BATCH_RECORDS * _SEGMENT_BATCHES
    for first in range(0, records, step):
        count = min(step, records - first) // _BATCH_RECORDS * _BATCH_RECORDS
        numbers = random.integers(0, keys, count)
        if has_every_key:
            offsets = np.arange(first, first + count)
            numbers = np.where(offsets < keys, offsets * _STRIDE % keys, numbers)
        values = random.integers(97, 123, (count, value_bytes), dtype=np.uint8)
        (partition / f"{first:020d}.log").write_bytes(_segment(first, numbers, values))
        if with_parquet:
            pq.write_table(_table(first, numbers, values), parquet / f"{first:020d}.parquet")
    done.write_text(wanted + _WITH_PARQUET * with_parquet)
    return logs, parquet


def _segment(first: int, numbers: np.ndarray, values: np.ndarray) -> bytes:
    """Batches that are all of one layout: one is written, the others are its copies with other
    keys, values, offsets and checksums."""
    key, value = _KEY % 0, bytes(values.shape[1])
    pattern = [Record(each, _TIMESTAMP_MS, 0, key, value) for each in range(_BATCH_RECORDS)]
    template = write_batch(pattern, BatchFields())
    keys_at, position = [], 0
    for _ in range(_BATCH_RECORDS):
        position = template.index(key, position)
        keys_at.append(position)
        position += len(key)
    # After the key comes the length of the value: a varint, of one byte up to 63.
    length_bytes = 1 if len(value) < 64 else 2
    values_at = [place + len(key) + length_bytes for place in keys_at]
    batches = np.tile(np.frombuffer(template, dtype=np.uint8), (len(numbers) // _BATCH_RECORDS, 1))
    _put(batches, keys_at, _key_bytes(numbers))
    _put(batches, values_at, values)
    written = bytearray()
    for number, batch in enumerate(batches):
        data = bytearray(batch)
        struct.pack_into(">q", data, 0, first + number * _BATCH_RECORDS)
        data[_CHECKSUM] = crc32c(memoryview(data)[21:]).to_bytes(4, "big")
        written += data
    return bytes(written)


def _put(batches: np.ndarray, places: list[int], parts: np.ndarray) -> None:
    by_batch = parts.reshape(len(batches), len(places), parts.shape[1])
    for number, place in enumerate(places):
        batches[:, place : place + parts.shape[1]] = by_batch[:, number]


def _key_bytes(numbers: np.ndarray) -> np.ndarray:
    digits = numbers[:, None] // 10 ** np.arange(8, -1, -1) % 10 + ord("0")
    prefix = np.broadcast_to(np.frombuffer(b"key", dtype=np.uint8), (len(numbers), 3))
    return np.concatenate([prefix, digits.astype(np.uint8)], axis=1)


def _table(first: int, numbers: np.ndarray, values: np.ndarray) -> pa.Table:
    count = len(numbers)
    return pa.table(
        {
            "topic": pa.array(["orders"] * count),
            "partition": pa.array(np.zeros(count, dtype=np.int32)),
            "key": _binary(_key_bytes(numbers)),
            "value": _binary(values),
            "offset": pa.array(np.arange(first, first + count)),
            "timestampMs": pa.array(np.full(count, _TIMESTAMP_MS)),
        }
    )


def _binary(rows: np.ndarray) -> pa.Array:
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(rows.shape[1]), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows))]
    )
    return fixed.cast(pa.binary())
