"""Reading records with certain timestamps is reading all and leaving out the others, in whatever
order the times are and whatever time indexes say; and which times are of the future. Rules:
docs/options.md F504 and F505, docs/format.md F930 and F931."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.segment_writer import write_segment
from kafkalog.inspection.logs.time_lookup import offset_for_time, time_answer
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.reading.offset_ranges import (
    DoubtfulRecord,
    TimeAnswer,
    TimeRule,
    TimestampRange,
)
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from tests.support.logs.committed_reads import Row, rows_of
from tests.support.logs.log_dirs import log_name
from tests.support.logs.samples import joined, segments
from tests.support.logs.segment_tables import records_table

COLUMNS = ("offset", "timestampMs", "key", "value", "headers")
usual = st.integers(1_600_000_000_000, 1_700_000_000_000)
# Any time a record can have, and an end behind all of them.
first_times = st.integers(-(2**63) + 1, 2**63 - 1) | usual
end_times = st.integers(-(2**63) + 1, 2**63) | usual


@given(segments(), first_times, end_times, st.booleans())
def test_records_with_asked_times_are_those_of_a_full_read(
    segment: tuple[list[bytes], list[Record]], first_ms: int, end_ms: int, only_offsets: bool
) -> None:
    # F504: all formats; a record without a timestamp has no timestamp to look for.
    data = joined(segment[0])
    columns = ("offset",) if only_offsets else COLUMNS
    found = records_table(data, columns, timestamps=TimestampRange(first_ms, end_ms))
    everything = records_table(data, COLUMNS).to_pylist()
    assert found.to_pylist() == [
        {name: row[name] for name in columns}
        for row in everything
        if row["timestampMs"] != -1 and first_ms <= row["timestampMs"] < end_ms
    ]


def log_of(times: list[list[int]], append_time: bool) -> list[bytes]:
    """Batches of records with these timestamps and consecutive offsets."""
    batches = []
    offset = 0
    for batch in times:
        records = [
            Record(offset + number, time, 0, b"key", b"v" * 40) for number, time in enumerate(batch)
        ]
        batches.append(write_batch(records, BatchFields(timestamp_type=int(append_time))))
        offset += len(batch)
    return batches


def write_log(place: Path, batches: list[bytes], half: int) -> Path:
    """A log directory with orders-0 in two segments, with indexes as brokers make them."""
    partition = place / "orders-0"
    partition.mkdir()
    base = 0
    for part in (batches[:half], batches[half:]):
        if part:
            base = int.from_bytes(part[0][:8], "big")
            for name, content in write_segment(
                part, base, index_interval_bytes=100
            ).by_name.items():
                (partition / name).write_bytes(content)
    return partition


def planned(place: Path, **given: int) -> list[Row]:
    options = read_options(
        {"path": str(place), **{name: str(value) for name, value in given.items()}}
    )
    groups = planned_groups(options)
    return rows_of(groups, options, ("offset", "timestampMs"))


times = st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=4), min_size=1, max_size=12)


def spoil_nothing(path: Path, data: st.DataObject) -> None:
    """Indexes are as they should be."""


def cut(path: Path, data: st.DataObject) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])


def pad(path: Path, data: st.DataObject) -> None:
    path.write_bytes(path.read_bytes() + bytes(120))


def remove(path: Path, data: st.DataObject) -> None:
    path.unlink()


@pytest.mark.parametrize("spoil", [spoil_nothing, cut, pad, remove])
@settings(max_examples=settings().max_examples // 4)
@given(
    times=times,
    append_time=st.booleans(),
    half=st.integers(0, 12),
    first_ms=st.integers(0, 61),
    end_ms=st.integers(0, 61),
    data=st.data(),
)
def test_time_indexes_leave_out_nothing_that_is_asked(
    spoil: Callable[[Path, st.DataObject], None],
    times: list[list[int]],
    append_time: bool,
    half: int,
    first_ms: int,
    end_ms: int,
    data: st.DataObject,
) -> None:
    # F505, F99: also the offset for a time.
    first_ms, end_ms = sorted((first_ms, end_ms))
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        partition = write_log(place, log_of(times, append_time), half)
        everything = planned(place)
        for path in sorted(partition.glob("*.*index")):
            spoil(path, data)
        found = planned(place, fromTimestamp=first_ms, untilTimestamp=end_ms)
        assert found == [row for row in everything if first_ms <= row[1] < end_ms]
        (log,) = find_partitions([str(place)])
        late = [offset for offset, time in everything if time >= first_ms]
        assert offset_for_time(log, 0, first_ms) == (late[0] if late else None)


def test_a_time_index_of_another_segment_is_not_believed(tmp_path: Path) -> None:
    # F505: its entries are about other batches.
    late = log_of([[100 + number] * 3 for number in range(40)], append_time=False)
    early = log_of([[number] * 3 for number in range(40)], append_time=False)
    partition = write_log(tmp_path, late, 40)
    other = write_segment(early, 0, index_interval_bytes=100).by_name
    name = log_name(0).replace(".log", ".timeindex")
    (partition / name).write_bytes(other[name])
    assert len(planned(tmp_path, fromTimestamp=90)) == 120


def test_segments_that_are_too_early_are_not_read(tmp_path: Path) -> None:
    # F505: of an old segment nothing is read, of a newer one what is behind an index entry.
    batches = log_of([[number] * 3 for number in range(80)], append_time=False)
    write_log(tmp_path, batches, 40)
    options = read_options({"path": str(tmp_path), "fromTimestamp": "70"})
    (group,) = planned_groups(options)
    (read,) = group
    assert isinstance(read, SegmentRead)
    assert read.base_offset == 120
    assert 200 <= read.first_offset <= 210


def answer(times: list[list[int]], first_ms: int, rule: TimeRule) -> TimeAnswer:
    """F930 and F931, as they are written."""
    offset, doubtful = 0, list[DoubtfulRecord]()
    for number, batch in enumerate(times):
        following = [max(each) for each in times[number + 1 : number + 16]]
        for time in batch:
            is_ahead = time > rule.now_ms + rule.max_future_ms
            earlier = sum(each < time - rule.max_future_ms for each in following)
            if time >= first_ms and not is_ahead and not earlier > len(following) / 2:
                return TimeAnswer(offset, tuple(doubtful))
            if time >= first_ms:
                doubtful.append(DoubtfulRecord(offset, time, is_ahead))
            offset += 1
    return TimeAnswer(None, tuple(doubtful))


@pytest.mark.parametrize("spoil", [spoil_nothing, cut, remove])
@settings(max_examples=settings().max_examples // 4)
@given(
    times=st.lists(
        st.lists(st.integers(0, 60) | st.integers(2**40, 2**40 + 5), min_size=1, max_size=4),
        min_size=1,
        max_size=40,
    ),
    half=st.integers(0, 40),
    until_ms=st.integers(0, 61),
    now_ms=st.integers(0, 70),
    max_future_ms=st.integers(0, 20),
    data=st.data(),
)
def test_times_of_the_future_are_passed_over(
    spoil: Callable[[Path, st.DataObject], None],
    times: list[list[int]],
    half: int,
    until_ms: int,
    now_ms: int,
    max_future_ms: int,
    data: st.DataObject,
) -> None:
    # F930, F931: whatever the indexes say, also where batches go on in the next segment.
    rule = TimeRule(now_ms, max_future_ms, passes_over=True)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        partition = write_log(place, log_of(times, append_time=False), half)
        for path in sorted(partition.glob("*.*index")):
            spoil(path, data)
        (log,) = find_partitions([str(place)])
        found = time_answer(log, 0, until_ms, rule)
        assert found == answer(times, until_ms, rule)
        # A later day ends where this one does, or after it.
        later = time_answer(log, 0, until_ms + 1, rule).offset
        assert later is None or (found.offset is not None and found.offset <= later)
