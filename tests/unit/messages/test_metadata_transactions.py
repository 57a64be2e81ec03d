"""Which records of the metadata are in force. Rule: F195."""

import pytest

from kafkalog.messages.internal_records import (
    InternalRecord,
    read_control_record,
    read_internal_record,
)
from kafkalog.messages.metadata_transactions import records_in_force
from kafkalog.messages.record_writer import write_record_value

METADATA = "__cluster_metadata"
NUMBERS = {"topic": 2, "begin": 23, "end": 24, "abort": 25}
CONTROL = {"leader": 2, "header": 3, "footer": 4}
LEADER_CHANGE = b"\0\0" + b"\0\0\0\x01" + b"\x01\x01\x00"


def record(word: str) -> InternalRecord:
    """`begin`, `end`, `abort` and so on, or the name of a topic that comes to be."""
    if word in CONTROL:
        return read_control_record(bytes((0, 0, 0, CONTROL[word])), LEADER_CHANGE)
    number = NUMBERS.get(word, NUMBERS["topic"])
    values = {} if word in NUMBERS else {"name": word}
    return read_internal_record(METADATA, None, write_record_value(METADATA, number, 0, values))


@pytest.mark.parametrize(
    ("words", "in_force"),
    [
        ("a b", "a b"),
        ("begin a b end c", "a b c"),
        ("begin a b abort c", "c"),
        ("a begin b", "a"),
        ("begin a begin b end", "b"),
        ("begin a leader b abort c", "leader c"),
        ("begin end begin abort", ""),
        ("a end b abort c", "a b c"),
        ("begin a end begin b abort begin c end", "a c"),
    ],
)
def test_records_of_a_transaction_count_once_it_has_ended(words: str, in_force: str) -> None:
    # T40
    found = list(records_in_force(map(record, words.split())))
    assert found == list(map(record, in_force.split()))
