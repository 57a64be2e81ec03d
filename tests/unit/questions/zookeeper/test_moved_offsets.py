"""The form of moved commits, without a session."""

import pytest

from kafkalog.errors import OptionError
from kafkalog.inspection.groups.offset_segments import NEW_LOG, AppendPoint
from kafkalog.messages.commit_records import COMMIT_FORMS
from kafkalog.questions.zookeeper.moved_offsets import commit_forms
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from tests.support.repository import Unpack

ENDS = {0: AppendPoint(33, 0, magic=1), 1: AppendPoint(0, 0)}


@pytest.fixture
def of_offsets(unpacked: Unpack) -> list[PartitionLog]:
    """Those of a broker 0.10.2.2, in messages of format 1."""
    (offsets,) = unpacked("kafka010.logs").rglob("__consumer_offsets-1")
    return [
        log for log in find_partitions([str(offsets.parent)]) if log.topic == "__consumer_offsets"
    ]


def test_commits_are_written_as_the_partitions_last_messages_are(
    of_offsets: list[PartitionLog],
) -> None:
    # F480: partition 1 is empty, and as the others are.
    assert commit_forms(None, ENDS, of_offsets) == dict.fromkeys((0, 1), COMMIT_FORMS["0.10"])
    mixed = {0: AppendPoint(33, 0, magic=2), 1: AppendPoint(0, 0)}
    assert commit_forms(None, mixed, of_offsets) == {
        0: COMMIT_FORMS["0.11"],
        1: COMMIT_FORMS["0.10"],
    }


def test_the_release_that_is_requested_is_that(of_offsets: list[PartitionLog]) -> None:
    # F480
    assert commit_forms("2.1", ENDS, of_offsets) == dict.fromkeys((0, 1), COMMIT_FORMS["2.1"])


def test_where_no_message_tells_the_release_has_to_be_named() -> None:
    # F480
    for end in (NEW_LOG, AppendPoint(0, 0)):
        with pytest.raises(OptionError, match="--broker-version"):
            commit_forms(None, {0: end}, [])
        assert commit_forms("0.9", {0: end}, []) == {0: COMMIT_FORMS["0.9"]}
