"""Log files that a restore has written are read once: docs/restore.md F1279."""

import gc
import shutil
from collections.abc import Callable
from pathlib import Path

import crc32c
import pytest

from kafkalog.columns.records.record_columns import RecordColumns
from kafkalog.questions.restore.partitions.read_back import ReadBack, read_back

Unpacked = Callable[[str], Path]


@pytest.fixture
def directory(unpacked: Unpacked, tmp_path: Path) -> Path:
    """A log of several segments that a broker has written."""
    source = unpacked("restore44.logs") / "snapshots" / "node1" / "data" / "events-0"
    for path in source.glob("*.log"):
        shutil.copy(path, tmp_path)
    assert len([*tmp_path.iterdir()]) > 2
    return tmp_path


def found(directory: Path, next_base_offset: int | None = None) -> dict[str, ReadBack]:
    return dict(read_back(str(directory), next_base_offset, is_compacted=False))


def test_checksums_are_those_of_the_bytes(directory: Path) -> None:
    files = found(directory)
    assert files.keys() == {path.name for path in directory.iterdir()}
    for name, file in files.items():
        data = (directory / name).read_bytes()
        assert file.facts == (len(data), f"{crc32c.crc32c(data):08x}")
        assert file.sound is not None
        assert file.sound.base_offset == int(name.removesuffix(".log"))


@pytest.mark.parametrize("place", [0, 40, 70, -1])
def test_a_damaged_file_is_not_sound_and_its_checksum_is_its_own(
    directory: Path, place: int
) -> None:
    path = min(directory.iterdir())
    data = bytearray(path.read_bytes())
    data[place] ^= 0x55
    path.write_bytes(data)
    file = found(directory)[path.name]
    assert file.sound is None
    assert file.checksum == crc32c.crc32c(bytes(data))


def test_a_file_that_ends_before_the_next_one_begins_is_not_sound(directory: Path) -> None:
    *_, before, missing, last = sorted(path.name for path in directory.iterdir())
    (directory / missing).unlink()
    files = found(directory)
    assert files[before].sound is None
    ended = files[last].sound
    assert ended is not None
    assert found(directory, ended.last_offset + 1)[last].sound == ended
    assert found(directory, ended.last_offset + 2)[last].sound is None


def test_a_file_without_timestamps_is_sound(unpacked: Unpacked, tmp_path: Path) -> None:
    """Messages of format 0, as a broker of 0.8 wrote them, have no timestamps."""
    written = [path for path in unpacked("kafka08.logs").rglob("*.log") if path.stat().st_size]
    shutil.copy(written[0], tmp_path)
    (file,) = found(tmp_path).values()
    assert file.sound is not None
    assert file.sound.max_timestamp_ms is None


def test_what_a_file_needed_is_free_when_it_has_been_read(directory: Path) -> None:
    """Without waiting for Python's collector of cycles, which commands seldom run: each of ten
    thousand partitions would keep 250 KiB."""

    def alive() -> int:
        return sum(type(each) is RecordColumns for each in gc.get_objects())

    gc.collect()
    before = alive()
    gc.disable()
    try:
        found(directory)
        assert alive() == before
    finally:
        gc.enable()
