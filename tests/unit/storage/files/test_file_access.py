"""How fast files are read, and what is left of them in the page cache."""

import ctypes
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.storage.files.file_access import FileAccess, RateLimit, use_file_access
from kafkalog.storage.files.files import InputFile

MIB = 1024 * 1024
PAGES = 4 * MIB // mmap.PAGESIZE


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_reads_wait_for_those_before_them() -> None:
    """F550."""
    clock = Clock()
    limit = RateLimit(100, clock.time, clock.sleep)
    times = []
    for size in (50, 100, 10, 0):
        limit.take(size)
        times.append(clock.now)
    assert times == [0.0, 0.5, 1.5, pytest.approx(1.6)]


def test_time_without_a_read_is_not_saved_up() -> None:
    """F550."""
    clock = Clock()
    limit = RateLimit(100, clock.time, clock.sleep)
    clock.now = 1000.0
    limit.take(100)
    limit.take(100)
    assert clock.now == 1001.0


def test_without_a_limit_no_read_waits() -> None:
    clock = Clock()
    RateLimit(None, clock.time, clock.sleep).take(10**12)
    assert clock.now == 0.0


@pytest.fixture(params=["this machine's disk", "a disk that answers at once"])
def dropping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "a disk that answers at once":
        preadv = os.preadv

        def read_now(descriptor: int, buffers: list[memoryview], position: int, _: int = 0) -> int:
            return preadv(descriptor, buffers, position)

        monkeypatch.setattr(os, "preadv", read_now)
    use_file_access(FileAccess(drop_page_cache=True))
    yield
    use_file_access(FileAccess())


def resident(path: Path) -> list[bool]:
    """Which pages of a file are in the page cache, by mincore."""
    size = path.stat().st_size
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    with path.open("rb") as file:
        place = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        found = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        assert libc.mincore(place, size, found) == 0
        libc.munmap(place, size)
    return [bool(page & 1) for page in found]


def drop(path: Path) -> None:
    """Write a file out and take it out of the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


@pytest.fixture
def file_on_disk(tmp_path: Path) -> Path:
    """A file of four MiB, none of it in the page cache."""
    path = tmp_path / "file"
    path.write_bytes(os.urandom(4 * MIB))
    drop(path)
    if any(resident(path)):
        pytest.skip("files here are in memory, or the file system keeps what it has cached")
    return path


def read_all(path: Path) -> bytes:
    with InputFile(str(path)) as file:
        return b"".join(file.read(at, 300_001) for at in range(0, 4 * MIB, 300_001))


def test_what_is_read_stays_in_the_page_cache_unless_asked_otherwise(file_on_disk: Path) -> None:
    """F551."""
    read_all(file_on_disk)
    assert all(resident(file_on_disk))


@pytest.mark.usefixtures("dropping")
def test_what_was_not_in_the_page_cache_is_not_in_it_afterwards(file_on_disk: Path) -> None:
    """F551."""
    content = read_all(file_on_disk)
    assert sum(resident(file_on_disk)) == 0
    assert content == file_on_disk.read_bytes()


@pytest.mark.usefixtures("dropping")
def test_what_was_in_the_page_cache_stays(file_on_disk: Path) -> None:
    """F551: a MiB that a broker's consumers read just now."""
    with file_on_disk.open("rb", buffering=0) as consumer:
        os.posix_fadvise(consumer.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        consumer.seek(MIB)
        consumer.read(MIB)
    before = resident(file_on_disk)
    assert 0 < sum(before) < PAGES
    read_all(file_on_disk)
    assert resident(file_on_disk) == before
