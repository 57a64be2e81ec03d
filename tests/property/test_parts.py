"""A segment read in parts has the rows and the faults of a segment read whole, wherever it is cut,
whatever its index says, and also where it is damaged. Rules: docs/options.md F500 to F503."""

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.batches.batch_table import FAULT, POSITION
from kafkalog.columns.batches.segment_batches import SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.segment_parts import parts_by_bytes, parts_by_offsets
from kafkalog.columns.batches.segment_walk import may_begin_at
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.format.batch_header import read_header
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.indexes import OffsetEntry, write_offset_index
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.reading.index_lookup import start_position
from kafkalog.storage.reading.read_plan import SegmentRead
from tests.support.logs.samples import joined, segments
from tests.support.logs.seeded_segments import sound_segment

NAME = "00000000000000000000"
COLUMNS = ("offset", "key", "value", "position")


class Told(NamedTuple):
    """The rows of a read, and position and kind of the faults that it tells."""

    rows: list[tuple[int, bytes | None, bytes | None, int]]
    faults: list[tuple[int, str]]


def read_of(path: Path, first: int = 0, end: int = LARGEST_OFFSET) -> SegmentRead:
    return SegmentRead(
        str(path), "orders", 0, 0, None, path.stat().st_size, first_offset=first, end_offset=end
    )


def options_of(read: SegmentRead) -> SegmentOptions:
    return SegmentOptions(
        read.base_offset,
        read.next_base_offset,
        first_offset=read.first_offset,
        end_offset=read.end_offset,
        start_position=read.start_position or start_position(read.path, read.first_offset),
        requested_offset=read.requested_offset,
        next_position=read.next_position,
    )


def told(read: SegmentRead, options: SegmentOptions | None = None) -> Told:
    rows = []
    faults = []
    with InputFile(read.path) as file:
        batches = SegmentRecords(
            FileWindow(file),
            options_of(read) if options is None else options,
            COLUMNS,
            {},
            lambda fault: faults.append((fault.position, fault.fault.label)),
        ).rows()
        for batch in batches:
            rows += [tuple(row.values()) for row in batch.to_pylist()]
    return Told(rows, faults)


def told_whole(path: Path, first: int, end: int) -> Told:
    """What a read from the start of the file says, without an index's help."""
    return told(read_of(path), SegmentOptions(0, None, first_offset=first, end_offset=end))


def told_in_parts(parts: Sequence[SegmentRead]) -> Told:
    all_told = [told(part) for part in parts]
    return Told(
        [row for one in all_told for row in one.rows],
        [fault for one in all_told for fault in one.faults],
    )


def index_entries(parts: Sequence[bytes], every: int) -> list[OffsetEntry]:
    """An entry for some of the appends, as brokers write them."""
    entries = []
    position = 0
    for number, part in enumerate(parts):
        if number and number % every == 0:
            entries.append(OffsetEntry(read_header(part, 0).last_offset, position))
        position += len(part)
    return entries


@contextmanager
def segment_files(log: bytes, index: bytes | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, f"{NAME}.log")
        path.write_bytes(log)
        if index is not None:
            path.with_suffix(".index").write_bytes(index)
        yield path


def agrees(path: Path, parts: Sequence[SegmentRead]) -> bool:
    """Whether a walk from the start of the file finds a sound batch wherever a part begins."""
    with InputFile(str(path)) as file:
        sound = {
            row[POSITION]
            for chunk in SegmentBatches(FileWindow(file), SegmentOptions(0)).chunks()
            for row in chunk.table.tolist()
            if not row[FAULT]
        }
        starts = [
            part.start_position
            for part in parts
            if may_begin_at(FileWindow(file), options_of(part)) is not None
        ]
    return sound.issuperset(starts)


sizes = st.integers(1, 2000)
bounds = st.integers(0, 60)


@st.composite
def indexes(draw: st.DrawFn, parts: Sequence[bytes]) -> bytes | None:
    """The index of these batches, right or wrong in one of many ways, or none."""
    entries = index_entries(parts, draw(st.integers(1, 4)))
    right = write_offset_index(entries, 0)
    kind = draw(st.sampled_from(["right", "right", "padded", "cut", "shifted", "other", "none"]))
    if kind == "padded":
        return right + bytes(8 * draw(st.integers(1, 50)))
    if kind == "cut":
        return right[: draw(st.integers(0, len(right)))]
    if kind == "shifted":
        by, places = draw(st.integers(-20, 20)), draw(st.integers(-200, 200))
        moved = [OffsetEntry(max(o + by, 0), max(p + places, 0)) for o, p in entries]
        return write_offset_index(moved, 0)
    if kind == "other":
        numbers = st.integers(-(2**31), 2**31 - 1) | st.integers(0, 500)
        return write_offset_index(
            [OffsetEntry(draw(numbers), draw(numbers)) for _ in range(draw(st.integers(0, 9)))], 0
        )
    return None if kind == "none" else right


@given(segments(), st.data(), sizes, bounds, bounds)
def test_parts_of_a_sound_segment_have_its_rows(
    segment: tuple[list[bytes], list[object]], data: st.DataObject, size: int, first: int, end: int
) -> None:
    # F500, F501: all formats, compressed message sets, gaps, and bounds anywhere.
    batches = segment[0]
    with segment_files(joined(batches), data.draw(indexes(batches))) as path:
        whole = told_whole(path, first, end)
        parts = parts_by_bytes(read_of(path, first, end), size)
        assert told_in_parts(parts) == whole
        by_offsets = [one for part in parts for one, _ in parts_by_offsets(part, 1 + size % 7)]
        assert told_in_parts(by_offsets) == whole


def damaged(log: bytes, randomness: random.Random) -> bytes:
    """A log with a few places overwritten, bits flipped, stretches moved, doubled or taken out."""
    data = bytearray(log)
    for _ in range(randomness.randint(1, 3)):
        start = randomness.randrange(len(data))
        end = min(start + randomness.choice((1, 8, 40, 300)), len(data))
        kind = randomness.randrange(5)
        if kind == 0:
            data[start:end] = randomness.randbytes(end - start)
        elif kind == 1:
            data[start:end] = bytes(end - start)
        elif kind == 2:
            data[start] ^= 1 << randomness.randrange(8)
        elif kind == 3:
            del data[start:end]
        else:
            data[start:start] = data[:end]
    return bytes(data)


@given(st.integers(0, 2**32), st.data(), sizes, bounds, bounds)
def test_parts_of_a_damaged_segment_have_its_rows_and_tell_its_faults(
    seed: int, data: st.DataObject, size: int, first: int, end: int
) -> None:
    # F501, F502
    log = sound_segment(seed)
    batches = []
    rest = log
    while rest:
        batches.append(rest[: read_header(rest, 0).size])
        rest = rest[len(batches[-1]) :]
    hurt = damaged(log, random.Random(seed))
    with segment_files(hurt, data.draw(indexes(batches))) as path:
        whole = told_whole(path, first, end)
        parts = parts_by_bytes(read_of(path, first, end), size)
        found = told_in_parts(parts)
        offsets = [row[0] for row in found.rows]
        assert offsets == sorted(set(offsets))
        # Nothing is lost in silence, whatever was believed.
        assert bool(found.faults) >= bool(whole.faults)
        if agrees(path, parts):
            assert found.rows == whole.rows
            assert sorted(found.faults) == sorted(whole.faults)
