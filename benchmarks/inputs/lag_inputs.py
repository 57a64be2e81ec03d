"""A log directory for the lag of very many groups: `__consumer_offsets` full of commits, and the
topics that were read.

Made from templates, in which numpy sets offsets and times: ten million commits in a minute or two.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from crc32c import crc32c

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.checkpoints import write_offset_checkpoint
from kafkalog.format.transaction_marker import COMMIT
from kafkalog.messages.record_writer import write_record_key, write_record_value
from kafkalog.storage.log_dir.log_dir import CLEAN_SHUTDOWN, META_PROPERTIES
from kafkalog.storage.names import CONSUMER_OFFSETS

OFFSETS_PARTITIONS = 50
TOPICS = 10
START_MS = 1_700_000_000_000
SPAN_MS = 24 * 60 * 60 * 1000
_BATCH_RECORDS = 50
_VALUE_BYTES = 100
# Of each round of commits, the groups' members commit for so many partitions at once.
_MEMBER_PARTITIONS = (10, 5, 4, 2)
# Every so manieth group commits in transactions; every second commits with topic ids (version 4).
_TRANSACTIONAL_EVERY = 50
_SEED = 11


@dataclass(frozen=True, slots=True)
class LagInput:
    """How much of everything; all groups have as many partitions, of one topic each."""

    groups: int = 5_000
    partitions: int = 20
    commits: int = 10_000_000
    records: int = 3_000_000

    @property
    def rounds(self) -> int:
        return self.commits // (self.groups * self.partitions)

    @property
    def log_end(self) -> int:
        """Records of each data partition, full batches."""
        each = self.records // (TOPICS * self.partitions)
        return each // _BATCH_RECORDS * _BATCH_RECORDS


@dataclass(slots=True)
class _Template:
    """Batches one after another, and where in them numbers stand that change: of int64s their
    positions, of committed offsets also whose they are."""

    data: np.ndarray
    starts: list[int]
    offsets: int
    base_offsets: np.ndarray
    times: np.ndarray
    committed: np.ndarray
    owners: np.ndarray


def write_lag_inputs(directory: Path, size: LagInput) -> Path:
    """The log directory, made once."""
    log_dir, done = directory / "log-dir", directory / "done"
    if not done.exists():
        log_dir.mkdir(parents=True)
        ends = {}
        for number in range(OFFSETS_PARTITIONS):
            ends[CONSUMER_OFFSETS, number] = _write_commits(log_dir, number, size)
        for topic in range(TOPICS):
            for partition in range(size.partitions):
                ends[topic_name(topic), partition] = _write_topic(log_dir, topic, partition, size)
        (log_dir / "replication-offset-checkpoint").write_text(write_offset_checkpoint(ends))
        (log_dir / META_PROPERTIES).write_text("cluster.id=kafkalog-benchmark\nnode.id=1\n")
        (log_dir / CLEAN_SHUTDOWN).touch()
        done.touch()
    return log_dir


def group_name(group: int) -> str:
    return f"group-{group:05d}"


def topic_name(topic: int) -> str:
    return f"topic-{topic % TOPICS:02d}"


def offsets_partition(group_id: str) -> int:
    """Where the coordinator keeps a group: by the absolute value of Java's hash of its id, 0 for
    the one hash that has none."""
    code = 0
    for character in group_id:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return min(code, 2**32 - code) % 2**31 % OFFSETS_PARTITIONS


def _write_commits(log_dir: Path, number: int, size: LagInput) -> int:
    """A partition of `__consumer_offsets`, round after round; the log's end."""
    names = (group_name(group) for group in range(size.groups))
    groups = [group for group, name in enumerate(names) if offsets_partition(name) == number]
    path = log_dir / f"{CONSUMER_OFFSETS}-{number}"
    path.mkdir()
    if not groups:
        (path / f"{0:020d}.log").touch()
        return 0
    random = np.random.default_rng((_SEED, number))
    members = _members_batches(groups, size.partitions)
    first_offset = len(groups)
    template = _commits_template(groups, size.partitions)
    step = SPAN_MS // size.rounds
    with (path / f"{0:020d}.log").open("wb") as file:
        file.write(members)
        for turn in range(size.rounds):
            now_ms = START_MS + turn * step
            # Every group is somewhere behind, and at the end some have not caught up.
            reached = size.log_end * (turn + 1) // size.rounds
            lags = random.integers(0, max(reached // 20, 1), len(groups) * size.partitions)
            times = np.sort(random.integers(now_ms, now_ms + step, len(template.starts)))
            file.write(
                _filled(template, first_offset + turn * template.offsets, reached - lags, times)
            )
    return first_offset + template.offsets * size.rounds


def _members_batches(groups: list[int], partitions: int) -> bytes:
    """What the coordinator wrote when the groups came together: a record each."""
    batches = []
    for offset, group in enumerate(groups):
        key = write_record_key(CONSUMER_OFFSETS, 2, {"group": group_name(group)})
        count = min(_MEMBER_PARTITIONS[group % len(_MEMBER_PARTITIONS)], partitions)
        members = [
            _member(group, number, range(first, min(first + count, partitions)))
            for number, first in enumerate(range(0, partitions, count))
        ]
        value = {
            "protocolType": "consumer",
            "generation": 1,
            "protocol": "range",
            "leader": members[0]["memberId"],
            "currentStateTimestamp": START_MS,
            "members": members,
        }
        data = write_record_value(CONSUMER_OFFSETS, 2, 3, value)
        batches.append(write_batch([Record(offset, START_MS, 0, key, data)]))
    return b"".join(batches)


def _member(group: int, number: int, assigned: range) -> dict[str, Any]:
    topic = topic_name(group)
    length = struct.pack(">h", len(topic)) + topic.encode()
    numbers = struct.pack(f">i{len(assigned)}i", len(assigned), *assigned)
    no_user_data = struct.pack(">i", -1)
    return {
        "memberId": f"{group_name(group)}-{number}-5a63f2b0",
        "groupInstanceId": None,
        "clientId": f"client-{number}",
        "clientHost": f"/10.0.{group % 256}.{number}",
        "rebalanceTimeout": 300_000,
        "sessionTimeout": 45_000,
        "subscription": struct.pack(">hi", 0, 1) + length + no_user_data,
        "assignment": struct.pack(">hi", 0, 1) + length + numbers + no_user_data,
    }


def _commits_template(groups: list[int], partitions: int) -> _Template:
    """One commit of each partition of each group."""
    batches: list[bytes] = []
    committed: list[int] = []
    owners: list[int] = []
    offset = position = 0
    for place, group in enumerate(groups):
        count = min(_MEMBER_PARTITIONS[group % len(_MEMBER_PARTITIONS)], partitions)
        for first in range(0, partitions, count):
            numbers = range(first, min(first + count, partitions))
            batch = _commit_batch(group, numbers, offset)
            batches.append(batch)
            for partition, found in zip(numbers, _values_in(batch, group, numbers), strict=True):
                committed.append(position + found + 2)
                owners.append(place * partitions + partition)
            offset, position = offset + len(numbers), position + len(batch)
        if group % _TRANSACTIONAL_EVERY == 0:
            marker = _marker(offset, 1000 + group)
            batches.append(marker)
            offset, position = offset + 1, position + len(marker)
    starts = np.cumsum([0, *(len(batch) for batch in batches)])
    bases = starts[:-1]
    return _Template(
        np.frombuffer(b"".join(batches), dtype=np.uint8),
        starts.tolist(),
        offset,
        bases,
        np.stack([bases + 27, bases + 35], axis=1),
        np.array(committed),
        np.array(owners),
    )


def _commit_batch(group: int, partitions: range, offset: int) -> bytes:
    is_transactional = group % _TRANSACTIONAL_EVERY == 0
    records = [
        Record(offset + number, START_MS, 0, _key(group, partition), _value(group))
        for number, partition in enumerate(partitions)
    ]
    fields = BatchFields(
        producer_id=1000 + group if is_transactional else -1,
        producer_epoch=0 if is_transactional else -1,
        is_transactional=is_transactional,
    )
    return write_batch(records, fields)


def _marker(offset: int, producer_id: int) -> bytes:
    key, value = struct.pack(">hh", 0, COMMIT), struct.pack(">hi", 0, 0)
    fields = BatchFields(
        producer_id=producer_id, producer_epoch=0, is_transactional=True, is_control=True
    )
    return write_batch([Record(offset, START_MS, 0, key, value)], fields)


def _key(group: int, partition: int) -> bytes:
    group_id, topic = group_name(group).encode(), topic_name(group).encode()
    parts = struct.pack(">h", len(group_id)), group_id, struct.pack(">h", len(topic)), topic
    return struct.pack(">h", 1) + b"".join(parts) + struct.pack(">i", partition)


def _value(group: int) -> bytes:
    """Version 3 or, with the topic's id, 4."""
    if group % 2:
        return struct.pack(">hqihq", 3, 0, 5, 0, START_MS)
    topic_id = bytes(15) + bytes((1 + group % TOPICS,))
    return struct.pack(">hqibqbbb", 4, 0, 5, 1, START_MS, 1, 0, 16) + topic_id


def _values_in(batch: bytes, group: int, partitions: range) -> Iterator[int]:
    """Where the records' values begin: behind the key and the value's length, of one byte."""
    position = 0
    for partition in partitions:
        key = _key(group, partition)
        position = batch.index(key, position) + len(key) + 1
        yield position


def _filled(
    template: _Template, first_offset: int, committed: np.ndarray, times: np.ndarray
) -> bytes:
    """The template's batches for one round, with their checksums."""
    data = template.data.copy()
    bases = _int64s(data, template.base_offsets)
    _put(data, template.base_offsets, bases + first_offset)
    for column in range(2):
        _put(data, template.times[:, column], times[: len(template.base_offsets)])
    _put(data, template.committed, committed[template.owners])
    of_batch = np.searchsorted(template.base_offsets, template.committed, side="right") - 1
    behind = np.where(data[template.committed - 1] == 3, 14, 13)
    _put(data, template.committed + behind, times[of_batch])
    written = bytearray(data)
    view = memoryview(written)
    for start, end in zip(template.starts, template.starts[1:], strict=False):
        written[start + 17 : start + 21] = crc32c(view[start + 21 : end]).to_bytes(4, "big")
    return bytes(written)


def _int64s(data: np.ndarray, positions: np.ndarray) -> np.ndarray:
    found = data[positions[:, None] + np.arange(8)]
    return np.ascontiguousarray(found).view(">i8")[:, 0].astype(np.int64)


def _put(data: np.ndarray, positions: np.ndarray, numbers: np.ndarray) -> None:
    as_bytes = numbers.astype(">i8").view(np.uint8).reshape(-1, 8)
    data[positions[:, None] + np.arange(8)] = as_bytes


def _write_topic(log_dir: Path, topic: int, partition: int, size: LagInput) -> int:
    """A partition that was read. In the first topic a marker follows every tenth batch, and the
    last."""
    path = log_dir / f"{topic_name(topic)}-{partition}"
    path.mkdir()
    count = size.log_end // _BATCH_RECORDS
    random = np.random.default_rng((_SEED, topic, partition))
    values = random.integers(97, 123, (_BATCH_RECORDS, _VALUE_BYTES), dtype=np.uint8)
    written = bytearray()
    offset = 0
    for number in range(count):
        time_ms = START_MS + SPAN_MS * number // count
        batches = [(bytearray(_data_template(topic == 0, values.tobytes())), _BATCH_RECORDS)]
        if topic == 0 and (number % 10 == 9 or number == count - 1):
            batches.append((bytearray(_marker(0, 7)), 1))
        for batch, offsets in batches:
            struct.pack_into(">q", batch, 0, offset)
            struct.pack_into(">qq", batch, 27, time_ms, time_ms + offsets - 1)
            batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
            written += batch
            offset += offsets
    (path / f"{0:020d}.log").write_bytes(written)
    return offset


_TEMPLATES: dict[tuple[bool, bytes], bytes] = {}


def _data_template(is_transactional: bool, values: bytes) -> bytes:
    """Fifty records, one in each millisecond."""
    known = _TEMPLATES.get((is_transactional, values))
    if known is None:
        records = [
            Record(number, START_MS + number, 0, None, values[number * 100 : number * 100 + 100])
            for number in range(_BATCH_RECORDS)
        ]
        fields = BatchFields(
            producer_id=7 if is_transactional else -1,
            producer_epoch=0 if is_transactional else -1,
            is_transactional=is_transactional,
        )
        known = _TEMPLATES[is_transactional, values] = write_batch(records, fields)
    return known
