"""Errors cross processes: Spark pickles them on the way from a task to the driver."""

import pickle

import pytest

from kafkalog.errors import (
    CorruptDataError,
    DataLossError,
    KafkaLogError,
    LogDirError,
    OptionError,
    OutOfMemoryError,
    SchemaError,
    UnsupportedFormatError,
)

ERRORS = [
    KafkaLogError("a message"),
    UnsupportedFormatError("a message"),
    SchemaError("a message"),
    LogDirError("a message"),
    DataLossError("a message"),
    OptionError("mode", "LAX", ("FAILFAST", "PERMISSIVE")),
    OptionError("path", None, "a log directory"),
    OutOfMemoryError("orders-0/00000000000000000000.log"),
    CorruptDataError("checksum", "0x1 is not 0x2", position=17),
    CorruptDataError(
        "checksum",
        "0x1 is not 0x2",
        position=17,
        path="orders-0/00000000000000000000.log",
        base_offset=5,
        advice="read on",
    ),
]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_keeps_class_message_and_fields(error: KafkaLogError, protocol: int) -> None:
    copy = pickle.loads(pickle.dumps(error, protocol))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_an_error_with_a_note_is_still_read() -> None:
    error = CorruptDataError("checksum", "0x1 is not 0x2", position=17)
    error.add_note("while reading orders-0")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_all_errors_are_caught_as_one(error: KafkaLogError) -> None:
    assert isinstance(error, KafkaLogError)


def test_an_option_error_names_the_option_its_value_and_what_is_allowed() -> None:
    error = OptionError("mode", "LAX", ("FAILFAST", "PERMISSIVE"))
    assert str(error) == "mode: 'LAX' is not valid, expected one of FAILFAST, PERMISSIVE"
    assert str(OptionError("path", "", "a path")) == "path: '' is not valid, expected a path"


def test_a_corrupt_data_error_tells_place_fault_detail_and_advice() -> None:
    error = CorruptDataError(
        "checksum", "0x1 is not 0x2", position=17, path="a.log", base_offset=5, advice="read on"
    )
    message = "a.log: position 17, base offset 5: checksum: 0x1 is not 0x2 (read on)"
    assert str(error) == message


def test_a_corrupt_data_error_is_located_by_who_opened_the_file() -> None:
    error = CorruptDataError("checksum", "bad", position=3, advice="read on")
    located = error.located("a.log", 103, 5)
    assert str(located) == "a.log: position 103, base offset 5: checksum: bad (read on)"
    assert vars(located) == {**vars(error), "position": 103, "path": "a.log", "base_offset": 5}
