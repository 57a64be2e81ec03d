"""Ranges of bytes that could not be read, put together. Rule: docs/format.md F77."""

from kafkalog.format.unreadable import UnreadableRange
from tests.support.disks.hidden_pages import spans, unreadable


def test_pages_that_touch_are_one_range() -> None:
    # F77: in whatever order they are met.
    ranges = unreadable((8192, 4096, "a"), (0, 4096, "a"), (4096, 4096, "a"), (20480, 1, "a"))
    assert list(ranges) == [UnreadableRange(0, 12288, "a"), UnreadableRange(20480, 1, "a")]


def test_ranges_of_different_reasons_stay_apart() -> None:
    ranges = unreadable((0, 10, "a"), (10, 10, "b"))
    assert spans(ranges) == [(0, 10), (10, 20)]


def test_what_is_known_already_keeps_its_reason() -> None:
    ranges = unreadable((10, 10, "a"), (0, 30, "b"))
    assert list(ranges) == [
        UnreadableRange(0, 10, "b"), UnreadableRange(10, 10, "a"), UnreadableRange(20, 10, "b")
    ]  # fmt: skip


def test_only_what_shares_a_byte_is_within() -> None:
    ranges = unreadable((10, 10, "a"), (30, 10, "a"))
    assert [len(ranges.within(*span)) for span in ((0, 10), (9, 11), (19, 30), (19, 31))] == [
        0, 1, 1, 2
    ]  # fmt: skip
    assert [ranges.overlap(20, 30), ranges.overlap(39, 100), ranges.overlap(15, 15)] == [
        False, True, False
    ]  # fmt: skip


def test_the_parts_between_are_the_rest() -> None:
    ranges = unreadable((10, 10, "a"), (30, 10, "a"))
    assert list(ranges.others(0, 50)) == [(0, 10), (20, 30), (40, 50)]
    assert list(ranges.others(15, 35)) == [(20, 30)]
    assert list(ranges.others(12, 18)) == []


def test_the_rest_of_a_file_has_them_at_its_own_places() -> None:
    ranges = unreadable((10, 10, "a"), (30, 10, "a")).moved(-15)
    assert spans(ranges) == [(0, 5), (15, 25)]


def test_words_name_the_pages_and_the_reason() -> None:
    # F77
    ranges = unreadable((8192, 4096, "Input/output error"), (16384, 8192, "Input/output error"))
    assert ranges.words(8000, 9000) == "bytes 8192 to 12287 cannot be read: Input/output error"
    assert ranges.words(0, 20000) == (
        "bytes 8192 to 12287 cannot be read: Input/output error; and 8,192 bytes more in 1 range "
        "up to 24575"
    )
