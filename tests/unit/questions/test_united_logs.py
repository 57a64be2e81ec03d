"""The batches of several copies of a log in one order: docs/restore.md F1041 and F1201."""

from pathlib import Path

from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.questions.restore.partitions.united_logs import UnitedSource, merged
from kafkalog.storage.partition_log import SegmentFile

TIME_MS = 1_700_000_000_000


def segment(directory: Path, *batches: tuple[int, ...]) -> SegmentFile:
    """A segment with batches of records at these offsets."""
    directory.mkdir(parents=True, exist_ok=True)
    base = batches[0][0]
    path = directory / f"{base:020d}.log"
    data = [write_batch([Record(at, TIME_MS, 0, b"k", b"v") for at in each]) for each in batches]
    path.write_bytes(b"".join(data))
    return SegmentFile(str(path), base, None, path.stat().st_size, str(directory))


def united(*segments: SegmentFile) -> list[tuple[int, int, int]]:
    """First offset, last offset and file of each batch that is taken."""
    sources = [UnitedSource(each, number, None) for number, each in enumerate(segments)]
    return [(row[0], row[1], row[-1]) for rows in merged(sources) for row in rows.tolist()]


def test_a_batch_is_taken_once_from_the_first_copy_that_has_it(tmp_path: Path) -> None:
    one = segment(tmp_path / "1", (0, 1), (4, 5))
    other = segment(tmp_path / "2", (0, 1), (2, 3), (4, 5), (6, 7))
    assert united(one, other) == [(0, 1, 0), (2, 3, 1), (4, 5, 0), (6, 7, 1)]


def test_of_a_batch_that_was_cleaned_the_one_with_more_records_is_taken(tmp_path: Path) -> None:
    cleaned = segment(tmp_path / "1", (0, 3), (4, 5))
    whole = segment(tmp_path / "2", (0, 1, 2, 3), (4, 5))
    assert united(cleaned, whole) == [(0, 3, 1), (4, 5, 0)]


def test_segments_that_begin_elsewhere_in_each_copy_come_in_one_order(tmp_path: Path) -> None:
    first, second = segment(tmp_path / "1", (0,), (1,)), segment(tmp_path / "1", (8,), (9,))
    other = segment(tmp_path / "2", (1,), (5,), (8,), (12,))
    replaced = segment(tmp_path / "3", (5, 6, 7), (8,))
    ordered = united(first, second, other, replaced)
    assert [row[1] for row in ordered] == [0, 1, 5, 7, 8, 9, 12]
    assert [row[2] for row in ordered if row[1] == 8] == [1]


def test_damage_is_left_out_although_only_headers_are_read_again(tmp_path: Path) -> None:
    damaged = segment(tmp_path / "1", (0, 1), (2, 3), (4, 5))
    data = bytearray(Path(damaged.path).read_bytes())
    data[-1] ^= 1
    Path(damaged.path).write_bytes(data)
    source = UnitedSource(damaged, 0, None)
    source.is_sound = False
    assert [row[1] for rows in merged([source]) for row in rows.tolist()] == [1, 3]
