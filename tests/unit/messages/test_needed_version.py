"""Readers that do not know a message's version. Rule: docs/format.md F1015."""

from kafkalog.messages.catalog import message
from kafkalog.messages.schema import needed_version


def test_tagged_fields_need_no_newer_reader() -> None:
    # The fields after version 0 of this record are all tagged.
    assert needed_version(message("BrokerRegistrationChangeRecord"), 3, {"logDirs": ["x"]}) == 0


def test_structs_need_a_reader_of_their_version() -> None:
    # "Can't read version 4 of BrokerEndpoint", 3.9.2 says.
    values = {"endPoints": [{"name": "PLAINTEXT"}], "features": []}
    assert needed_version(message("RegisterBrokerRecord"), 4, values) == 4


def test_other_fields_need_a_reader_that_knows_them() -> None:
    # Version 1 of this value adds a field without a tag.
    assert needed_version(message("OffsetCommitValue"), 1, {}) == 1
