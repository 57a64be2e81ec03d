"""From when on a compacted log tells every state: random logs, cleaned, against the whole ones.

Rule: docs/format.md F328. The cleaning is that of kafkalog.storage.cleaning.compaction, which is
compared with a real broker's in tests/broker.
"""

import os
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.batch_header import read_header
from kafkalog.format.record_batch import BatchFields, read_batch, write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.groups.commit_reach import LogReach
from kafkalog.inspection.groups.commits_in_effect import COMMIT_COLUMNS
from kafkalog.inspection.groups.complete_from import complete_from
from kafkalog.questions.groups.group_parts import PartReaches, group_parts
from kafkalog.storage.cleaning.compaction import (
    CleaningRound,
    SourceBatch,
    cleaned_batches,
    last_offsets,
)
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import LocalViews
from kafkalog.views.options.options import view_options
from kafkalog.views.reading.commit_reading import all_rows
from kafkalog.views.reading.group_reading import read_group_records
from tests.support.logs.log_dirs import checkpoint_text
from tests.support.spark.kafka_logs import write_log

LONG_AGO_MS, LAST_WRITTEN_MS = 1_000, 7777
# Cleaned again after this, tombstones go.
DELETE_RETENTION_MS = 100

State = dict[bytes, bytes]


def drawn_batches(source: random.Random, count: int) -> list[bytes]:
    """Batches of one to three records of few keys; times do not fall."""
    batches, offset, now = [], 0, LONG_AGO_MS
    for _ in range(count):
        records = []
        for _ in range(source.choice((1, 1, 2, 3))):
            now += source.choice((0, 1, 50))
            value = None if source.random() < 0.3 else b"%d" % offset
            records.append(Record(offset, now, 0, source.choice((b"a", b"b", b"c")), value))
            offset += 1
        batches.append(write_batch(records, BatchFields(leader_epoch=0)))
    return batches


def cleaned(batches: Sequence[bytes], end_offset: int, now_ms: int) -> list[bytes]:
    """What a cleaning of the offsets below `end_offset` leaves."""
    sources = [SourceBatch(batch) for batch in batches]
    next_offset = read_batch(batches[-1], 0)[-1].offset + 1
    cleaning = CleaningRound(0, end_offset, next_offset, now_ms, DELETE_RETENTION_MS, {}, [])
    found = cleaned_batches(sources, last_offsets(sources, cleaning), cleaning)
    return [batch.cleaned for batch in found if batch.cleaned is not None]


def state_at(batches: Iterable[bytes], at_ms: int) -> State:
    state: State = {}
    for batch in batches:
        for record in read_batch(batch, 0):
            if record.key is not None and record.timestamp_ms <= at_ms:
                state.pop(record.key, None)
                if record.value is not None:
                    state[record.key] = record.value
    return state


def log_of(
    folder: Path, batches: Sequence[bytes], cleaned_to: int | None, active: Sequence[bytes] = ()
) -> PartitionLog:
    """A log whose files were last written at LAST_WRITTEN_MS, with an active segment."""
    bases = [read_header(batch, 0).base_offset for batch in active[:1]]
    directory = write_log(folder, "t-0", {0: batches, **dict.fromkeys(bases, active)})
    for path in directory.glob("*.log"):
        os.utime(path, (0, LAST_WRITTEN_MS / 1000))
    if cleaned_to is not None:
        checkpoint = checkpoint_text({("t", 0): cleaned_to})
        (folder / "cleaner-offset-checkpoint").write_text(checkpoint)
    (log,) = find_partitions([str(directory)])
    return log


@given(seed=st.integers(0, 2**32 - 1))
def test_states_from_that_time_on_are_those_of_the_whole_log(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = random.Random(seed)
    whole = drawn_batches(source, source.randint(2, 9))
    # The cleaner leaves the active segment alone.
    active = source.randint(1, len(whole) - 1)
    end = read_header(whole[active], 0).base_offset
    times = sorted({record.timestamp_ms for batch in whole for record in read_batch(batch, 0)})
    once = cleaned(whole, end, now_ms=times[-1])
    left = cleaned(once, end, now_ms=times[-1] + DELETE_RETENTION_MS + 1)
    count = len(whole) - active
    folder = tmp_path_factory.mktemp("logs")
    checkpoint = source.choice((end, end, None))
    since = complete_from(log_of(folder, left[:-count], checkpoint, left[-count:])).time_ms
    assert complete_from(log_of(folder / "whole", whole, end))[:3] == (0, None, 0)
    told = [time for time in times if since is None or time >= since]
    assert [state_at(left, time) for time in told] == [state_at(whole, time) for time in told]
    assert since is None or since <= times[-1]
    assert times[-1] in told


@given(seed=st.integers(0, 2**32 - 1))
def test_a_read_of_groups_finds_the_same_on_its_way(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # F1385: for any bytes, whether the cleaner or damage has taken the records.
    source = random.Random(seed)
    whole = drawn_batches(source, source.randint(2, 9))
    left = source.sample(whole, source.randint(1, len(whole)))
    left.sort(key=lambda each: read_header(each, 0).base_offset)
    active = source.randint(0, len(left) - 1)
    base = read_header(left[active], 0).base_offset
    folder = tmp_path_factory.mktemp("logs")
    bases = {0: left[:active], base: left[active:]}
    directory = write_log(folder, "__consumer_offsets-0", bases)
    if source.random() < 0.7:
        # After the indexes were written, as on a disk.
        number = source.randrange(len(left))
        damaged = bytearray(left[number])
        for _ in range(source.choice((1, 1, 4))):
            damaged[source.randrange(len(damaged))] ^= 1 << source.randrange(8)
        left[number] = bytes(damaged[: source.choice((len(damaged), len(damaged) - 3))])
        file_base, batches = (0, left[:active]) if number < active else (base, left[active:])
        (directory / f"{file_base:020d}.log").write_bytes(b"".join(batches))
    if source.random() < 0.5:
        text = checkpoint_text({("__consumer_offsets", 0): source.randint(0, 20)})
        (folder / "cleaner-offset-checkpoint").write_text(text)
    for path in directory.glob("*.log"):
        os.utime(path, (0, LAST_WRITTEN_MS / 1000))
    (log,) = find_partitions([str(directory)])
    options = view_options([str(directory)], "offset_commits")
    (part,) = group_parts(options, LocalViews([str(directory)], [log], 1), None)
    assert part.read is not None
    on_the_way = PartReaches(part, options)
    (copy,) = part.read.copies
    walk = on_the_way.walk_of(copy)
    assert walk is not None
    rows = all_rows(copy, COMMIT_COLUMNS)
    for _ in read_group_records(copy, options, rows, lambda row: None, tables=walk):
        pass
    assert walk.is_at_end
    assert on_the_way.found() == (LogReach(0, *complete_from(log)[1:]),)


def batch(*records: tuple[int, int]) -> bytes:
    """Records of these offsets and times."""
    values = [Record(offset, time_ms, 0, b"k", b"v") for offset, time_ms in records]
    return write_batch(values, BatchFields(leader_epoch=0))


@pytest.mark.parametrize(
    ("batches", "cleaned_to", "expected"),
    [
        # Nothing is missing, whatever the checkpoint says.
        ([batch((0, 10), (1, 20)), batch((2, 30))], 2, (0, None)),
        # Offset 0 is missing; the last one that was cleaned is there, and later than it.
        ([batch((1, 20)), batch((2, 30)), batch((3, 40))], 3, (3, 30)),
        # Offset 2, the last one that was cleaned, is missing: it was not later than what follows.
        ([batch((0, 10), (1, 20)), batch((3, 40))], 3, (3, 40)),
        # Of a batch that lost a record headers do not tell which one.
        ([batch((0, 10), (2, 30)), batch((3, 40))], 3, (3, 40)),
        # A checkpoint that gaps contradict, none, or one behind the log's end: only the active
        # segment is surely not cleaned, and this is the only one.
        ([batch((0, 10)), batch((2, 30)), batch((4, 40))], 3, (4, 7777)),
        ([batch((0, 10)), batch((2, 30))], None, (2, 7777)),
        ([batch((0, 10)), batch((2, 30))], 9, (2, 7777)),
        # Cleaned up to the end, where one may be gone.
        ([batch((0, 10)), batch((2, 30), (4, 50))], 5, (5, 7777)),
    ],
)
def test_the_offset_and_the_time(
    tmp_path: Path,
    batches: Sequence[bytes],
    cleaned_to: int | None,
    expected: tuple[int, int | None],
) -> None:
    # F328
    assert complete_from(log_of(tmp_path, batches, cleaned_to))[:2] == expected


def test_without_a_checkpoint_all_but_the_active_segment_may_have_been_cleaned(
    tmp_path: Path,
) -> None:
    # F328
    closed, active = [batch((1, 20)), batch((2, 30))], [batch((3, 40)), batch((4, 50))]
    # The newest is of the active segment.
    assert complete_from(log_of(tmp_path, closed, None, active)) == (3, 30, 0, 50)


def test_what_damage_hides_is_missing(tmp_path: Path) -> None:
    # F328: only the checksum tells that the second commit is not what it was.
    batches = [batch((0, 10)), batch((1, 20)), batch((2, 30))]
    batches[1] = batches[1][:-1] + bytes([batches[1][-1] ^ 1])
    assert complete_from(log_of(tmp_path, batches, 1)) == (2, 7777, 1, 30)
