"""The framing of fetch results, by vectors made by hand from the documents. F152, F153."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptDataError
from kafkalog.format.fetch_response import (
    OFFSET_OUT_OF_RANGE,
    MessageSetSend,
    MultiMessageSetSend,
    read_message_set_send,
    read_multi_message_set_send,
    write_message_set_send,
    write_multi_message_set_send,
)

# Total length of 2 + 5, error code 0, five bytes of messages.
ONE = bytes.fromhex("00000007 0000 6d65737361")
# Total length of 2, error code 1: the offset was out of range, there is no message.
REFUSED = bytes.fromhex("00000002 0001")
# Total length of 2 + 11 + 6, error code 0, and both.
BOTH = bytes.fromhex("00000013 0000") + ONE + REFUSED

sends = st.builds(MessageSetSend, st.binary(max_size=30), st.integers(-1, 5))
several = st.builds(MultiMessageSetSend, st.lists(sends, max_size=4).map(tuple), st.integers(-1, 5))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (ONE, MessageSetSend(b"messa")),
        (REFUSED, MessageSetSend(error_code=OFFSET_OUT_OF_RANGE)),
        (bytes.fromhex("00000003 ffff 78"), MessageSetSend(b"x", -1)),
    ],
)
def test_one_result_is_length_error_code_and_messages(data: bytes, value: MessageSetSend) -> None:
    # F152
    assert write_message_set_send(value) == data
    assert read_message_set_send(data) == (value, len(data))
    assert read_message_set_send(b"..." + data + b"more", 3) == (value, len(data))


def test_several_results_follow_each_other_under_one_length() -> None:
    # F153
    value = MultiMessageSetSend(
        (MessageSetSend(b"messa"), MessageSetSend(error_code=OFFSET_OUT_OF_RANGE))
    )
    assert write_multi_message_set_send(value) == BOTH
    assert read_multi_message_set_send(BOTH) == (value, len(BOTH))
    assert read_multi_message_set_send(b"." + BOTH + b"more", 1) == (value, len(BOTH))


def test_of_no_partition_there_is_an_empty_result() -> None:
    # F153
    assert write_multi_message_set_send(MultiMessageSetSend()) == REFUSED[:5] + b"\0"
    assert read_multi_message_set_send(REFUSED) == (MultiMessageSetSend(error_code=1), 6)


@pytest.mark.parametrize("end", range(len(BOTH)))
def test_a_result_that_is_not_all_there_is_an_error(end: int) -> None:
    # F152, F153
    for read in (read_message_set_send, read_multi_message_set_send):
        with pytest.raises(CorruptDataError, match="truncated"):
            read(BOTH[:end])


@pytest.mark.parametrize("length", [1, 0, -1, -(2**31)])
def test_a_length_without_room_for_the_error_code_is_an_error(length: int) -> None:
    # F152
    with pytest.raises(CorruptDataError, match="total length"):
        read_message_set_send(length.to_bytes(4, "big", signed=True) + bytes(10))


@pytest.mark.parametrize(
    "inside", [ONE[:-1], b"\0", REFUSED + b"\0\0\0", bytes.fromhex("00000008 0000 6d65737361")]
)
def test_inner_results_must_fill_the_outer_one(inside: bytes) -> None:
    # F153: bytes after it do not belong to it.
    data = (2 + len(inside)).to_bytes(4, "big") + b"\0\0" + inside
    with pytest.raises(CorruptDataError, match="truncated"):
        read_multi_message_set_send(data + b"and more bytes behind")


@given(several)
def test_what_is_written_is_read_again(value: MultiMessageSetSend) -> None:
    # F152, F153
    data = write_multi_message_set_send(value)
    assert read_multi_message_set_send(data) == (value, len(data))


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_are_one_error(data: bytes) -> None:
    for read in (read_message_set_send, read_multi_message_set_send):
        try:
            _, size = read(data)
        except CorruptDataError:
            continue
        assert size <= len(data)
