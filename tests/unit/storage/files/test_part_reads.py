"""Remote files are read around parts that a store does not give. Rule: docs/remote.md F546."""

import pytest
from pyarrow import fs

from kafkalog.errors import CorruptDataError, RemoteFileError
from kafkalog.format.unreadable import UnreadableRange
from kafkalog.storage.files import remote_files
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.files.read_ahead import MOST_FAILURES, PART_BYTES, PartError, PartReads

DATA = bytes(range(1, 251)) * (8 * PART_BYTES // 250)


class FailingStore:
    """A file of which some parts cannot be fetched."""

    def __init__(self, *parts: int) -> None:
        self.parts = parts
        self.requests: list[tuple[int, int]] = []
        self.reads = PartReads("s3://bucket/file", len(DATA), self.fetch)

    def fetch(self, position: int, size: int) -> bytes:
        end = position + size
        self.requests.append((position, end))
        for part in self.parts:
            if part * PART_BYTES < end and position < (part + 1) * PART_BYTES:
                raise PartError("AccessDenied")
        return DATA[position:end]


def without(*parts: int) -> bytes:
    data = bytearray(DATA)
    for part in parts:
        start, end = part * PART_BYTES, min((part + 1) * PART_BYTES, len(DATA))
        data[start:end] = bytes(end - start)
    return bytes(data)


def test_all_but_the_parts_that_fail_is_read() -> None:
    # F546
    store = FailingStore(1, 2, 5)
    assert store.reads.fetch(0, len(DATA)) == without(1, 2, 5)
    assert list(store.reads.unreadable) == [
        UnreadableRange(PART_BYTES, 2 * PART_BYTES, "AccessDenied"),
        UnreadableRange(5 * PART_BYTES, PART_BYTES, "AccessDenied"),
    ]


def test_what_failed_is_not_asked_for_again() -> None:
    store = FailingStore(1)
    store.reads.fetch(0, 2 * PART_BYTES)
    store.requests.clear()
    store.reads.fetch(0, 3 * PART_BYTES)
    assert store.requests == [(0, PART_BYTES), (2 * PART_BYTES, 3 * PART_BYTES)]


def test_after_some_failures_in_a_row_the_rest_of_the_file_is_given_up() -> None:
    # F546: one after another could take hours.
    store = FailingStore(*range(1, 8))
    assert store.reads.fetch(0, len(DATA)) == without(*range(1, 8))
    assert len(store.requests) == 1 + 1 + MOST_FAILURES
    assert list(store.reads.unreadable) == [
        UnreadableRange(PART_BYTES, len(DATA) - PART_BYTES, "AccessDenied")
    ]


def test_a_small_range_that_fails_is_not_tried_in_parts() -> None:
    store = FailingStore(0)
    assert store.reads.fetch(10, 100) == bytes(100)
    assert store.requests == [(10, 110)]
    assert list(store.reads.unreadable) == [UnreadableRange(10, 100, "AccessDenied")]


class FakeFile:
    """What pyarrow opens: reads of some parts fail with a store's answer."""

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def size(self) -> int:
        return len(DATA)

    def metadata(self) -> dict[bytes, bytes]:
        return {}

    def read_at(self, size: int, position: int) -> bytes:
        if position < 2 * PART_BYTES and position + size > PART_BYTES:
            raise OSError(self._answer)
        return DATA[position : position + size]

    def close(self) -> None:
        pass


class FakeSystem:
    """A store with one object, which it finds as long as it `answers`."""

    def __init__(self, answer: str, *, answers: bool = True) -> None:
        self._file = FakeFile(answer)
        self._answers = answers

    def open_input_file(self, name: str) -> FakeFile:
        return self._file

    def get_file_info(self, path: str) -> fs.FileInfo:
        if not self._answers:
            raise OSError("no connection")
        return fs.FileInfo(path, fs.FileType.File, size=len(DATA))


def opened(monkeypatch: pytest.MonkeyPatch, system: FakeSystem) -> InputFile:
    monkeypatch.setattr(remote_files, "file_system", lambda uri, settings: (system, "bucket/file"))
    return InputFile("s3://bucket/file")


def test_a_part_of_an_object_that_is_still_found_is_unreadable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # F546
    with opened(monkeypatch, FakeSystem("AWS Error ACCESS_DENIED")) as file:
        assert file.read_around(0, len(DATA)) == without(1)
        assert list(file.unreadable) == [
            UnreadableRange(PART_BYTES, PART_BYTES, "AWS Error ACCESS_DENIED")
        ]
        with pytest.raises(CorruptDataError, match="ACCESS_DENIED"):
            file.read(PART_BYTES, 10)


@pytest.mark.parametrize(
    "system",
    [
        FakeSystem("AWS Error SLOW_DOWN: Please reduce your request rate"),
        FakeSystem("AWS Error UNKNOWN (HTTP status 503)"),
        FakeSystem("connection reset", answers=False),
    ],
)
def test_a_store_that_is_busy_or_does_not_answer_is_an_error_that_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch, system: FakeSystem
) -> None:
    # F543, F546
    with pytest.raises(RemoteFileError), opened(monkeypatch, system) as file:
        file.read_around(0, len(DATA))
