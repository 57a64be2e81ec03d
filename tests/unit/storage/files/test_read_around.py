"""Files are read around the pages that a disk does not give. Rule: docs/format.md F77."""

import errno
import gc
import os
import weakref
from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.format.unreadable import UnreadableRange
from kafkalog.storage.files.files import InputFile, read_bytes
from kafkalog.storage.files.local_files import LocalFile
from kafkalog.storage.files.read_around import ReadAround
from kafkalog.storage.files.unreadable_input import noted_unreadable
from tests.support.disks.hidden_pages import REASON, FailingFile, spans

DATA = bytes(range(1, 251)) * 100  # 25,000 bytes: seven pages, the last one short


def test_what_cannot_be_read_is_zeros_and_all_else_is_there() -> None:
    # F77
    file = FailingFile(DATA, [1, 2, 4])
    expected = bytearray(DATA)
    for start, end in ((4096, 12288), (16384, 20480)):
        expected[start:end] = bytes(end - start)
    assert file.read_around(0, len(DATA)) == expected
    assert list(file.unreadable) == [
        UnreadableRange(4096, 8192, REASON),
        UnreadableRange(16384, 4096, REASON),
    ]


def test_a_page_is_lost_whole_however_little_of_it_was_wanted() -> None:
    file = FailingFile(DATA, [6])
    assert file.read_around(24_990, 5) == bytes(5)
    assert spans(file.unreadable) == [(24_576, 25_000)]


def test_a_bad_page_is_not_read_again() -> None:
    file = FailingFile(DATA, [1])
    file.read_around(0, len(DATA))
    file.reads.clear()
    assert file.read_around(4000, 5000) == DATA[4000:4096] + bytes(4096) + DATA[8192:9000]
    assert file.reads == [(4000, 4096), (8192, 9000)]


def test_another_failure_than_the_disks_is_raised() -> None:
    def fill(position: int, target: memoryview) -> None:
        raise OSError(errno.ENOMEM, "")

    with pytest.raises(OSError, match="12"):
        ReadAround("segment", 10).read_into(0, memoryview(bytearray(10)), fill)


def test_a_file_is_out_of_memory_when_it_has_been_read(tmp_path: Path) -> None:
    """Not only when Python looks for cycles, which is seldom."""
    path = tmp_path / "segment"
    path.write_bytes(DATA)
    gc.disable()
    try:
        file = LocalFile(str(path))
        assert file.read(0, 5) == DATA[:5]
        file.close()
        found = weakref.ref(file)
        del file
        assert found() is None
    finally:
        gc.enable()


@pytest.fixture
def denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file without permission, also where tests run as root."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(DATA)
    opened = os.open

    def refusing(given: str, *rest: int) -> int:
        if given == str(path):
            raise PermissionError(errno.EACCES, "Permission denied", given)
        return opened(given, *rest)

    monkeypatch.setattr(os, "open", refusing)
    return path


def test_a_file_that_cannot_be_opened_is_one_unreadable_range(denied: Path) -> None:
    # F77
    with InputFile(str(denied)) as file:
        assert file.size == len(DATA)
        assert list(file.unreadable) == [UnreadableRange(0, len(DATA), "Permission denied")]
        assert file.read_around(10, 5) == bytes(5)


def test_who_needs_the_very_bytes_gets_an_error_with_their_place(denied: Path) -> None:
    with InputFile(str(denied)) as file, pytest.raises(CorruptDataError) as raised:
        file.read(10, 5)
    assert (raised.value.path, raised.value.position, raised.value.fault) == (
        str(denied), 10, "unreadable"
    )  # fmt: skip
    assert raised.value.detail == "bytes 0 to 24999 cannot be read: Permission denied"


def test_a_file_that_is_not_there_is_not_an_unreadable_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        InputFile(str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError):
        read_bytes(str(tmp_path / "absent"))


def test_forks_tell_the_first_process_what_they_could_not_read(denied: Path) -> None:
    with noted_unreadable() as noted:
        if (child := os.fork()) == 0:
            InputFile(str(denied)).close()
            os._exit(0)
        os.waitpid(child, 0)
        found = list(noted.ranges())
    assert found == [(str(denied), UnreadableRange(0, len(DATA), "Permission denied"))]
