"""Files that a broker renames between the listing and the reading. F94, T32."""

from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.files.unreadable_input import noted_unreadable
from kafkalog.storage.partition_log import SegmentFile
from kafkalog.storage.reading import renamed_files
from kafkalog.storage.reading.renamed_files import (
    current_path,
    deletions_raised,
    opened,
    opened_segment,
)
from tests.support.logs.log_dirs import UNIQUE, add_partition, log_name

FIRST = log_name(0)


def renamed(partition: Path, mark: str = "delete") -> Path:
    """The directory as a broker marks it."""
    return partition.rename(partition.with_name(f"{partition.name}.{UNIQUE}-{mark}"))


def test_a_file_that_is_still_there_keeps_its_path(tmp_path: Path) -> None:
    partition = add_partition(tmp_path, "orders-0", 0)
    assert current_path(str(partition / FIRST)) == str(partition / FIRST)


def test_a_file_is_read_under_its_own_name_while_there_is_one(tmp_path: Path) -> None:
    # F94: the cleaner writes a new file of the name before the old one is deleted.
    partition = add_partition(tmp_path, "orders-0", 0)
    (partition / f"{FIRST}.deleted").touch()
    assert current_path(str(partition / FIRST)) == str(partition / FIRST)


def test_a_deleted_segment_is_found_under_its_new_name(tmp_path: Path) -> None:
    # F94, T32.
    partition = add_partition(tmp_path, "orders-0", 0, 100)
    (partition / FIRST).rename(partition / f"{FIRST}.deleted")
    assert current_path(str(partition / FIRST)) == str(partition / f"{FIRST}.deleted")


@pytest.mark.parametrize("name", ["orders-0", "web-shop.v2-12", f"{'t' * 200}-0"])
def test_a_deleted_partition_is_found_under_its_new_name(name: str, tmp_path: Path) -> None:
    # F94, T32.
    partition = add_partition(tmp_path, name, 0)
    moved = renamed(partition)
    assert current_path(str(partition / FIRST)) == str(moved / FIRST)


def test_a_deleted_partition_of_a_long_topic_is_found_under_its_new_name(tmp_path: Path) -> None:
    # F92, F94.
    partition = add_partition(tmp_path, f"{'t' * 249}-0", 0)
    suffix = f"-0.{UNIQUE}-delete"
    moved = partition.rename(tmp_path / f"{'t' * (255 - len(suffix))}{suffix}")
    assert current_path(str(partition / FIRST)) == str(moved / FIRST)


def test_a_deleted_segment_of_a_deleted_partition_is_found(tmp_path: Path) -> None:
    # F94.
    partition = add_partition(tmp_path, "orders-0", 0)
    (partition / FIRST).rename(partition / f"{FIRST}.deleted")
    moved = renamed(partition)
    assert current_path(str(partition / FIRST)) == str(moved / f"{FIRST}.deleted")


def test_a_file_that_is_missing_is_none(tmp_path: Path) -> None:
    # F94.
    partition = add_partition(tmp_path, "orders-0", 0)
    assert current_path(str(partition / log_name(100))) is None


def test_a_file_of_a_directory_that_is_missing_is_none(tmp_path: Path) -> None:
    # F94.
    assert current_path(str(tmp_path / "orders-0" / FIRST)) is None
    assert current_path(str(tmp_path / "data" / "orders-0" / FIRST)) is None


def test_a_marked_namesake_is_not_looked_into_while_the_directory_is_there(tmp_path: Path) -> None:
    # F94: an earlier topic of the same name.
    partition = add_partition(tmp_path, "orders-0", 100)
    add_partition(tmp_path, f"orders-0.{UNIQUE}-delete", 0)
    assert current_path(str(partition / FIRST)) is None


@pytest.mark.parametrize(
    "other",
    [
        f"orders-1.{UNIQUE}-delete",
        f"orders-00.{UNIQUE}-delete",
        f"my-orders-0.{UNIQUE}-delete",
        f"orders-0.{UNIQUE}-future",
        "orders-0.backup",
    ],
)
def test_files_of_other_directories_are_not_taken_for_it(other: str, tmp_path: Path) -> None:
    # F90, F94.
    add_partition(tmp_path, other, 0)
    assert current_path(str(tmp_path / "orders-0" / FIRST)) is None


def test_a_deleted_partition_of_a_topic_with_dots_is_not_taken_for_it(tmp_path: Path) -> None:
    # F90, F94, T32: the topic orders-0.audit is another one.
    add_partition(tmp_path, f"orders-0.audit-3.{UNIQUE}-delete", 0)
    assert current_path(str(tmp_path / "orders-0" / FIRST)) is None


def test_relative_paths_are_found_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = add_partition(tmp_path, "orders-0", 0)
    (partition / FIRST).rename(partition / f"{FIRST}.deleted")
    monkeypatch.chdir(tmp_path)
    assert current_path(f"orders-0/{FIRST}") == f"orders-0/{FIRST}.deleted"


def test_a_file_is_opened_under_its_new_name(tmp_path: Path) -> None:
    # F94.
    partition = add_partition(tmp_path, "orders-0", 0, size=7)
    (partition / FIRST).rename(partition / f"{FIRST}.deleted")
    with opened(str(partition / FIRST)) as file:
        assert (file.path, file.size) == (str(partition / f"{FIRST}.deleted"), 7)


def test_a_file_that_is_renamed_while_it_is_looked_for_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # F94.
    partition = add_partition(tmp_path, "orders-0", 0, size=7)
    path = str(partition / FIRST)
    places = iter([path, f"{path}.deleted"])
    monkeypatch.setattr(renamed_files, "current_path", lambda _: next(places))
    (partition / FIRST).rename(f"{path}.deleted")
    with opened(path) as file:
        assert file.path == f"{path}.deleted"


def test_a_file_that_is_listed_and_cannot_be_opened_is_looked_for_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # F950: a file system of a network can list what it does not open.
    partition = add_partition(tmp_path, "orders-0", 0, size=7)
    tries: list[str] = []

    def refuse(path: str) -> None:
        tries.append(path)
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr(renamed_files, "InputFile", refuse)
    with pytest.raises(FileNotFoundError):
        opened(str(partition / FIRST))
    assert 1 < len(tries) < 10


@pytest.mark.parametrize(
    ("base_offset", "next_base_offset", "offsets"),
    [
        (0, 100, "offsets 0 to 99 are not in the output"),
        (99, 100, "offset 99 is not in the output"),
        (100, None, "offsets from 100 on are not in the output"),
        (None, None, "its offsets are not in the output"),
    ],
)
def test_a_segment_that_was_deleted_is_a_file_without_readable_bytes(
    tmp_path: Path, base_offset: int | None, next_base_offset: int | None, offsets: str
) -> None:
    # F950
    path = str(tmp_path / FIRST)
    segment = SegmentFile(path, base_offset, next_base_offset, 7, path)
    with noted_unreadable() as noted, opened_segment(segment) as file:
        assert (file.size, file.read_around(0, 7)) == (7, bytes(7))
        with pytest.raises(CorruptDataError, match="deleted while it was read"):
            file.read(0, 7)
        assert noted.lines() == [f"{path} was deleted while it was read: {offsets}"]
        assert noted.exit_code(ExitCode.DONE) == ExitCode.UNREADABLE_INPUT


def test_who_lists_the_log_again_is_told_that_a_segment_was_deleted(tmp_path: Path) -> None:
    # F951
    path = str(tmp_path / FIRST)
    with noted_unreadable() as noted, deletions_raised():
        with pytest.raises(FileNotFoundError):
            opened_segment(SegmentFile(path, 0, None, 7, path))
        assert noted.lines() == []


def test_opening_a_file_that_is_missing_is_an_error_naming_it(tmp_path: Path) -> None:
    # F94.
    with pytest.raises(FileNotFoundError) as caught:
        opened(str(tmp_path / FIRST))
    assert caught.value.filename == str(tmp_path / FIRST)
