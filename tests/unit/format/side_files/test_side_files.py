"""Files beside the logs: what is refused, and the rules of leader epochs. F103 to F109."""

import struct
import tracemalloc

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.checkpoints import refusal
from kafkalog.format.side_files.indexes import (
    AbortedTransaction,
    OffsetEntry,
    TimeEntry,
    read_offset_index,
    read_time_index,
    read_transaction_index,
    write_transaction_index,
)
from kafkalog.format.side_files.leader_epochs import (
    EpochStart,
    read_leader_epochs,
    with_epoch,
    without_end,
    without_start,
)
from kafkalog.format.side_files.partition_metadata import read_topic_id
from kafkalog.format.side_files.producer_snapshot import (
    ProducerEntry,
    read_producer_snapshot,
    write_producer_snapshot,
)
from kafkalog.format.side_files.properties import read_properties, write_properties

SNAPSHOT = write_producer_snapshot([ProducerEntry(7, 1, 9, 19, 4, 1000, -1, -1)])


def test_zeros_behind_the_entries_are_not_entries() -> None:
    # F103: as a broker leaves them that was killed.
    data = struct.pack(">iiii", 9, 4200, 19, 8500) + bytes(800)
    index = read_offset_index(data, 100)
    assert index.entries == [OffsetEntry(109, 4200), OffsetEntry(119, 8500)]
    assert index.zero_bytes == 800


def test_zeros_that_end_an_entry_belong_to_it() -> None:
    # F101, F103.
    index = read_time_index(struct.pack(">qi", 1000, 0) + bytes(24), 100)
    assert (index.entries, index.zero_bytes) == ([TimeEntry(1000, 100)], 24)


@pytest.mark.parametrize("size", [1, 7, 9, 15])
def test_part_of_an_entry_is_an_error_that_tells_where(size: int) -> None:
    with pytest.raises(CorruptDataError) as caught:
        read_offset_index(b"\1" * size, 0)
    assert caught.value.position == size // 8 * 8


def test_an_aborted_transaction_of_unknown_version_is_an_error() -> None:
    # F104.
    entries = [AbortedTransaction(7, 1, 2, 3), AbortedTransaction(8, 4, 5, 6)]
    data = bytearray(write_transaction_index(entries))
    assert read_transaction_index(bytes(data)) == entries
    data[35] = 1
    with pytest.raises(CorruptDataError) as caught:
        read_transaction_index(bytes(data))
    assert (caught.value.fault, caught.value.position) == ("version", 34)


@pytest.mark.parametrize("size", range(len(SNAPSHOT)))
def test_a_snapshot_that_is_cut_is_an_error(size: int) -> None:
    # F105.
    with pytest.raises(CorruptDataError):
        read_producer_snapshot(SNAPSHOT[:size])


@given(st.integers(0, len(SNAPSHOT) - 1), st.integers(0, 7))
def test_no_bit_of_a_snapshot_flips_unseen(byte: int, bit: int) -> None:
    # F105.
    damaged = bytearray(SNAPSHOT)
    damaged[byte] ^= 1 << bit
    with pytest.raises(CorruptDataError):
        read_producer_snapshot(bytes(damaged))


def test_a_snapshot_is_laid_out_as_kafka_does() -> None:
    # F105, F106: an entry by the specification, not by our writer.
    body = struct.pack(">iqhiqiqiq", 1, 7, 1, 9, 19, 4, 1000, -1, -1)
    assert struct.pack(">hI", 1, crc32c.crc32c(body)) + body == SNAPSHOT


def test_more_entries_announced_than_there_are_is_an_error() -> None:
    # F105.
    body = struct.pack(">i", 2)
    data = struct.pack(">hI", 1, crc32c.crc32c(body)) + body
    with pytest.raises(CorruptDataError, match="2 entries announced"):
        read_producer_snapshot(data)


EPOCHS = [EpochStart(0, 0), EpochStart(3, 10), EpochStart(5, 20)]


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        ((5, 25), [(0, 0), (3, 10), (5, 20)]),
        ((6, 30), [(0, 0), (3, 10), (5, 20), (6, 30)]),
        ((6, 20), [(0, 0), (3, 10), (6, 20)]),
        ((6, 15), [(0, 0), (3, 10), (6, 15)]),
        ((4, 40), [(0, 0), (3, 10), (4, 40)]),
        ((5, 15), [(0, 0), (3, 10), (5, 15)]),
        ((0, 0), [(0, 0)]),
    ],
)
def test_a_new_epoch_removes_what_it_contradicts(
    added: tuple[int, int], expected: list[tuple[int, int]]
) -> None:
    # F108.
    assert with_epoch(EPOCHS, EpochStart(*added)) == expected


@pytest.mark.parametrize(("end", "left"), [(0, 0), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3)])
def test_a_log_that_is_cut_loses_the_epochs_behind(end: int, left: int) -> None:
    # F108.
    assert without_end(EPOCHS, end) == EPOCHS[:left]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (0, [(0, 0), (3, 10), (5, 20)]),
        (5, [(0, 5), (3, 10), (5, 20)]),
        (10, [(3, 10), (5, 20)]),
        (99, [(5, 99)]),
    ],
)
def test_a_log_that_begins_later_keeps_the_epoch_of_its_start(
    start: int, expected: list[tuple[int, int]]
) -> None:
    # F108.
    assert without_start(EPOCHS, start) == expected


@pytest.mark.parametrize(
    "text", ["", "0\n", "1\n0\n", "0\n2\n0 0\n", "0\n1\n0 0 0\n", "0\n1\na b\n"]
)
def test_a_bad_epoch_checkpoint_is_an_error(text: str) -> None:
    # F107.
    with pytest.raises(CorruptDataError):
        read_leader_epochs(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version: 0\n",
        "version: one\ntopic_id: jOlnJsNpS9qzndnqMsQh9g",
        "version: 0\ntopic_id: jOlnJsNpS9qzndnqMsQh9",
        # As a broker of 4.4.0 and of 4.1.1 refused them.
        "version: -1\ntopic_id: jOlnJsNpS9qzndnqMsQh9g",
        "topic_id: jOlnJsNpS9qzndnqMsQh9g\nversion: 0",
        "\nversion: 0\ntopic_id: jOlnJsNpS9qzndnqMsQh9g",
    ],
)
def test_a_bad_topic_id_is_an_error(text: str) -> None:
    # F109.
    with pytest.raises(CorruptDataError):
        read_topic_id(text)


def test_a_later_version_of_partition_metadata_is_read_as_the_first() -> None:
    # F967, as a broker of 4.4.0 did with fixture 03d.
    topic_id = "jOlnJsNpS9qzndnqMsQh9g"
    assert read_topic_id(f"version: 1\ntopic_id: {topic_id}") == topic_id


@pytest.mark.parametrize("form", ["version: 0\n%s\nmore: 1\n", "version: 0\r\n%s\r\n", "a 0\n%s"])
def test_the_second_words_of_two_lines_are_the_topics_id(form: str) -> None:
    # F967, as a broker of 4.4.0 did: it looks neither at the names nor at further lines.
    topic_id = "jOlnJsNpS9qzndnqMsQh9g"
    assert read_topic_id(form % f"topic_id: {topic_id}") == topic_id


@given(st.dictionaries(st.text("ab.:=#! \\", min_size=1).map(str.strip), st.text("ab:=#!\\ -\n\t")))
def test_properties_are_read_as_they_are_written(values: dict[str, str]) -> None:
    # F82.
    values = {key: value.strip() for key, value in values.items() if key}
    assert read_properties(write_properties(values)).values == values


@given(st.text())
def test_any_text_is_properties(text: str) -> None:
    found = read_properties(text)
    assert len(found.values) + len(found.comments) <= len(text.splitlines())


@pytest.mark.timeout(60)
def test_a_value_of_a_million_lines_is_read_in_linear_time() -> None:
    # F82. A copy for each line took hours.
    text = "a=" + "bcd\\\n" * 1_000_000 + "e"
    assert read_properties(text).values == {"a": "bcd" * 1_000_000 + "e"}


def test_a_comment_sign_in_a_line_that_goes_on_is_part_of_the_value() -> None:
    assert read_properties("a=\\\n#b\n").values == {"a": "#b"}


@pytest.mark.parametrize("text", ["\0", "\\a", " ", "a="])
def test_one_long_line_of_properties_takes_a_few_times_its_size(text: str) -> None:
    line = text * (2**20 // len(text))
    tracemalloc.start()
    try:
        read_properties(f"cluster.id=a\n{line}")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * len(line)


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        # What brokers of 4.4.0 did: fixtures 19a, 19c and 19e, and
        # tests/broker/damage/test_node_start_on_broker.py.
        ("", False),
        ("0\n", False),
        ("0\n1\norders 0 5\n", False),
        ("0\n1\norders 0 5", False),
        ("7\n1\norders 0 5\n", True),
        ("0\n3\norders 0 5\n", True),
        ("0\n0\n\n", True),
        ("garbage\n", True),
        ("0\n1\norders zero 5\n", True),
        ("0\n1\norders 5\n", True),
    ],
)
def test_what_a_broker_refuses_of_a_checkpoint(text: str, is_refused: bool) -> None:
    # F964.
    assert (refusal(text, 3) is not None) == is_refused
