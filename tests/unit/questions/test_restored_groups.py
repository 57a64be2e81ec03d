"""Restored groups, and of which of them commits may be missing that were in force: F1218."""

import pytest

from kafkalog.messages.record_writer import write_record_key, write_record_value
from kafkalog.questions.restore.coordinator_records import CoordinatorRecord
from kafkalog.questions.restore.groups import GroupSettings, restored_groups

TOPIC = "__consumer_offsets"
MOMENT_MS = 1_000_000
SETTINGS = GroupSettings({("t", 0): 1000}, {}, set(), lambda _: True, MOMENT_MS + 1)


def commit(offset: int, group: str, committed: int, at_ms: int) -> CoordinatorRecord:
    key = write_record_key(TOPIC, 1, {"group": group, "topic": "t", "partition": 0}) or b""
    values = {"offset": committed, "leaderEpoch": -1, "metadata": "", "commitTimestamp": MOMENT_MS}
    value = write_record_value(TOPIC, 1, 3, values)
    return CoordinatorRecord(offset, MOMENT_MS + at_ms, key, value)


@pytest.mark.parametrize(
    ("later_offset", "doubtful"),
    [
        pytest.param(2, {}, id="no record is missing"),
        # At 2 to 4 "one" can have committed again, and the cleaner has removed that for 5.
        pytest.param(5, {"one": 1}, id="the cleaner has removed records before the cut"),
    ],
)
def test_a_commit_that_was_superseded_after_the_moment_may_not_be_the_last(
    later_offset: int, doubtful: dict[str, int]
) -> None:
    records = [
        commit(0, "one", 10, -900),
        commit(1, "two", 20, -800),
        commit(later_offset, "one", 30, 500),
    ]
    found = restored_groups(records, later_offset, lambda *_: True, SETTINGS)
    assert found.doubtful == doubtful
    assert {row.group_id: row.committed_offset for row in found.commits} == {"one": 10, "two": 20}
