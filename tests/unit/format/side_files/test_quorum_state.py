"""The file quorum-state, of both versions. Rule: F767."""

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.quorum_state import (
    QuorumState,
    read_quorum_state,
    write_quorum_state,
)

# As Kafka 4.4.0 wrote them, with static and with dynamic voters.
STATIC = (
    '{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
    '"currentVoters":[{"voterId":3},{"voterId":1}],"data_version":0}'
)
DYNAMIC = (
    '{"leaderId":-1,"leaderEpoch":7,"votedId":2,"votedDirectoryId":"58re7iadeZ9ThE6GcWduuA",'
    '"data_version":1}'
)


def test_both_versions_are_read() -> None:
    assert read_quorum_state(STATIC) == QuorumState(0, 1, 2, None, None, (1, 3))
    assert read_quorum_state(DYNAMIC) == QuorumState(1, None, 7, 2, "58re7iadeZ9ThE6GcWduuA", ())


def test_both_versions_are_written_as_kafka_writes_them() -> None:
    written = write_quorum_state(read_quorum_state(STATIC))
    assert written == STATIC.replace('{"voterId":3},{"voterId":1}', '{"voterId":1},{"voterId":3}')
    assert write_quorum_state(read_quorum_state(DYNAMIC)) == DYNAMIC


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "malformed"),
        ("{}", "malformed"),
        ("[" * 100_000, "malformed"),
        (STATIC[:-20], "malformed"),
        (STATIC.replace('"leaderEpoch":2', '"leaderEpoch":[]'), "malformed"),
        (STATIC.replace('[{"voterId":3},{"voterId":1}]', "[3]"), "malformed"),
        (DYNAMIC.replace('"data_version":1', '"data_version":2'), "version"),
    ],
)
def test_another_text_is_an_error(text: str, fault: str) -> None:
    with pytest.raises(CorruptDataError) as raised:
        read_quorum_state(text)
    assert raised.value.fault == fault
