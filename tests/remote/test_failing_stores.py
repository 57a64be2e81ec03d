"""What object stores and networks do at times ends in the right bytes or in one typed error."""

import os
from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError, RemoteFileError
from kafkalog.storage.files.file_access import FileAccess, use_file_access
from kafkalog.storage.files.files import InputFile, list_directory, read_text
from kafkalog.storage.files.read_ahead import MOST_FAILURES, PART_BYTES
from tests.remote.faulty_proxy import Fault
from tests.remote.gateway import SECRET_KEY
from tests.remote.stores import Store, needs_store

pytestmark = needs_store
MIB = 1024 * 1024
DATA = os.urandom(MIB) * 3


def one_file(store: Store) -> tuple[str, Path]:
    """A file of some size: its URI and its path."""
    uri, folder = store.bucket()
    (folder / "file.log").write_bytes(DATA)
    return f"{uri}/file.log", folder / "file.log"


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.CUT])
def test_what_goes_wrong_twice_is_tried_again(store: Store, fault: Fault) -> None:
    """F543."""
    uri, _ = one_file(store)
    with store.proxy.faulty(fault, ".log", times=2), InputFile(uri) as file:
        assert file.read(0, len(DATA)) == DATA


def test_a_part_that_goes_on_going_wrong_is_unreadable_and_the_rest_is_read(store: Store) -> None:
    """F546."""
    uri, _ = one_file(store)
    within = (PART_BYTES + 5, PART_BYTES + 6)
    with store.proxy.faulty(Fault.REFUSED, ".log", within=within), InputFile(uri) as file:
        data = file.read_around(0, len(DATA))
        (unreadable,) = file.unreadable
    assert (unreadable.position, unreadable.length) == (PART_BYTES, PART_BYTES)
    assert "ACCESS_DENIED" in unreadable.reason
    assert data == DATA[:PART_BYTES] + bytes(PART_BYTES) + DATA[2 * PART_BYTES :]


def test_a_file_that_is_refused_is_unreadable_as_a_whole_in_a_few_requests(store: Store) -> None:
    """F546."""
    uri, _ = one_file(store)
    with (
        store.proxy.faulty(Fault.REFUSED, ".log"),
        InputFile(uri) as file,
        pytest.raises(CorruptDataError) as caught,
    ):
        file.read(0, len(DATA))
    assert (caught.value.fault, caught.value.path) == ("unreadable", uri)
    assert f"bytes 0 to {len(DATA) - 1} cannot be read" in caught.value.detail
    assert len(store.proxy.reads(".log")) <= 2 * (1 + MOST_FAILURES)


def test_a_store_that_stays_too_busy_is_one_error_and_no_unreadable_file(store: Store) -> None:
    """F543: the task can be repeated."""
    uri, _ = one_file(store)
    with (
        store.proxy.faulty(Fault.SLOW_DOWN, ".log"),
        InputFile(uri) as file,
        pytest.raises(RemoteFileError) as caught,
    ):
        file.read(0, len(DATA))
    assert uri in str(caught.value)
    assert "reading again is safe" in str(caught.value)


def test_what_is_left_of_a_file_that_vanishes_while_it_is_read_is_unreadable(store: Store) -> None:
    """F543, F950."""
    uri, path = one_file(store)
    with InputFile(uri) as file:
        file.read(0, 5)
        path.unlink()
        with pytest.raises(CorruptDataError, match="the file was deleted while it was read"):
            file.read(2 * MIB, 5)


def test_a_file_that_is_deleted_once_it_is_read_was_read(store: Store) -> None:
    """F544."""
    uri, path = one_file(store)
    with InputFile(uri) as file:
        assert file.read(0, MIB) + file.read(MIB, 9 * MIB) == DATA
        path.unlink()


def test_a_file_that_is_not_there_is_not_found(store: Store) -> None:
    uri, path = one_file(store)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"file\.log"):
        InputFile(uri)
    assert read_text(uri) is None


def test_a_file_that_grows_has_the_size_that_it_was_opened_with(store: Store) -> None:
    """F544."""
    uri, path = one_file(store)
    (listed,) = list_directory(uri.rpartition("/")[0])
    with path.open("ab") as growing:
        growing.write(b"more")
    with InputFile(uri) as file:
        assert (listed.size, file.size) == (len(DATA), len(DATA) + 4)
        assert file.read(0, 10 * MIB) == DATA + b"more"


@pytest.mark.parametrize("other", [DATA[::-1], DATA + b"more", DATA[:-9]])
def test_a_file_that_is_replaced_while_it_is_read_is_an_error(store: Store, other: bytes) -> None:
    """F544."""
    uri, path = one_file(store)
    os.utime(path, (1, 1))
    with pytest.raises(RemoteFileError, match="replaced by another"), InputFile(uri) as file:
        file.read(0, 5)
        path.write_bytes(other)
        file.read(2 * MIB, 5)


def test_wrong_credentials_are_an_error_without_them(store: Store) -> None:
    """F545."""
    uri, _ = store.bucket()
    wrong = "a-wrong-secret-key"
    settings = (("accesskey", "somebody"), ("secretkey", wrong))
    access = FileAccess(storage=settings)
    use_file_access(access)
    with pytest.raises(RemoteFileError) as caught:
        list_directory(uri)
    assert uri in str(caught.value)
    for text in (str(caught.value), repr(caught.value), repr(access)):
        assert wrong not in text
        assert "somebody" not in text
        assert SECRET_KEY not in text
    assert caught.value.__cause__ is None


def test_a_store_that_is_not_there_is_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F543."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    use_file_access(FileAccess(storage=(("connecttimeout", "0.2"),)))
    with pytest.raises(RemoteFileError, match="s3://not-there"):
        list_directory("s3://not-there")
