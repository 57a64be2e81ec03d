"""Listing directories and reading files that others write to at the same time."""

import os
from pathlib import Path

import pytest

from kafkalog.errors import FileCutError
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import (
    InputFile,
    list_directory,
    matching_paths,
    modified_ms,
    read_text,
)


def test_a_directory_is_listed_by_name_with_sizes(tmp_path: Path) -> None:
    (tmp_path / "b.log").write_bytes(bytes(7))
    (tmp_path / "c").mkdir()
    (tmp_path / "a").touch()
    (tmp_path / ".lock").touch()
    assert list_directory(str(tmp_path)) == [
        Entry(".lock", str(tmp_path / ".lock"), is_directory=False, size=0),
        Entry("a", str(tmp_path / "a"), is_directory=False, size=0),
        Entry("b.log", str(tmp_path / "b.log"), is_directory=False, size=7),
        Entry("c", str(tmp_path / "c"), is_directory=True, size=0),
    ]


def test_an_empty_directory_holds_nothing(tmp_path: Path) -> None:
    assert list_directory(str(tmp_path)) == []


def test_a_name_that_leads_nowhere_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert list_directory(str(tmp_path)) == []


def test_a_file_was_last_changed_in_whole_milliseconds(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    os.utime(tmp_path / "a", ns=(0, 1_650_000_000_123_999_999))
    assert modified_ms(str(tmp_path / "a")) == 1_650_000_000_123


def test_links_stand_for_what_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_bytes(bytes(3))
    (tmp_path / "listed").mkdir()
    (tmp_path / "listed" / "d").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "listed" / "f").symlink_to(tmp_path / "elsewhere" / "file")
    assert list_directory(str(tmp_path / "listed")) == [
        Entry("d", str(tmp_path / "listed" / "d"), is_directory=True, size=0),
        Entry("f", str(tmp_path / "listed" / "f"), is_directory=False, size=3),
    ]


def test_a_glob_gives_all_it_matches_sorted(tmp_path: Path) -> None:
    for name in ("disk2", "disk1", "tape"):
        (tmp_path / name).mkdir()
    assert matching_paths(str(tmp_path / "disk*")) == [
        str(tmp_path / "disk1"),
        str(tmp_path / "disk2"),
    ]


@pytest.mark.parametrize("pattern", ["nothing", "nothing*", "nothing/[0-9]"])
def test_what_is_not_there_matches_nothing(pattern: str, tmp_path: Path) -> None:
    assert matching_paths(str(tmp_path / pattern)) == []


def test_a_path_that_exists_is_not_a_glob(tmp_path: Path) -> None:
    for name in ("data[1]", "data1"):
        (tmp_path / name).mkdir()
    assert matching_paths(str(tmp_path / "data[1]")) == [str(tmp_path / "data[1]")]


@pytest.mark.parametrize("path", ["data", "./data", "data/", "data/../data", "dat?"])
def test_relative_paths_become_absolute(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    assert matching_paths(path) == [str(tmp_path / "data")]


def test_a_text_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert read_text(str(tmp_path / "nowhere")) is None


def test_bytes_that_are_not_utf_8_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\xffz")
    assert read_text(str(tmp_path / "text")) == "a\ufffdz"


@pytest.mark.parametrize(
    ("position", "size", "expected"),
    [
        (0, 10, b"0123456789"),
        (3, 4, b"3456"),
        (8, 5, b"89"),
        (10, 5, b""),
        (99, 5, b""),
        (4, 0, b""),
    ],
)
def test_a_file_gives_the_bytes_from_a_position(
    position: int, size: int, expected: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with InputFile(str(path)) as file:
        assert (file.path, file.size, file.read(position, size)) == (str(path), 10, expected)


def test_bytes_are_read_into_a_buffer(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    buffer = bytearray(4)
    with InputFile(str(path)) as file:
        file.read_into(5, memoryview(buffer))
    assert buffer == b"5678"


def test_what_a_broker_appends_meanwhile_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123")
    with InputFile(str(path)) as file, path.open("ab") as writer:
        writer.write(b"4567")
        writer.flush()
        assert (file.size, file.read(2, 10)) == (4, b"23")


def test_a_file_is_read_on_under_its_old_name_after_it_was_renamed(tmp_path: Path) -> None:
    # F94.
    path = tmp_path / "file"
    path.write_bytes(b"0123")
    with InputFile(str(path)) as file:
        path.rename(tmp_path / "file.deleted")
        assert file.read(0, 4) == b"0123"


def test_a_file_cut_while_it_is_read_is_an_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with InputFile(str(path)) as file:
        path.write_bytes(b"012")
        with pytest.raises(FileCutError, match="it was truncated while being read") as caught:
            file.read(1, 9)
    assert f"{path} ends at 3 now, it had 10 bytes" in str(caught.value)


def test_a_buffer_larger_than_the_file_cannot_be_filled(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"01")
    with InputFile(str(path)) as file, pytest.raises(FileCutError):
        file.read_into(0, memoryview(bytearray(3)))


def test_a_file_is_closed_at_the_end_of_its_block(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"01")
    with InputFile(str(tmp_path / "file")) as file:
        pass
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.read(0, 1)


def test_a_file_that_is_not_there_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        InputFile(str(tmp_path / "nowhere"))
