"""The offsets that consumer groups commit, in a log directory that a test makes."""

from __future__ import annotations

from collections.abc import Mapping

from kafkalog.coordination.groups.commit_status import offsets_partition_of
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.messages.commit_records import COMMIT_FORMS, GroupCommit, commit_record
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.testing.made_records import Clock
from kafkalog.testing.topics import Append, Topic

# As brokers from 2.1 on write them.
_FORM = COMMIT_FORMS["2.1"]

# Of topics and partitions the offset that the group wants to read next; None is a tombstone.
CommittedOffsets = Mapping[TopicPartition, int | None]


class GroupOffsets:
    """Topic `__consumer_offsets` with a number of partitions."""

    def __init__(self, partitions: int, clock: Clock) -> None:
        self.topic = Topic(CONSUMER_OFFSETS, partitions, clock)
        self._clock = clock

    def commit(self, group_id: str, offsets: CommittedOffsets, append: Append) -> None:
        """One batch of commits in the partition that the group belongs to."""
        log = self.topic.log(offsets_partition_of(group_id, len(self.topic.logs)))
        now_ms = self._clock.tick()
        commits = (GroupCommit(group_id, *key, offset, now_ms) for key, offset in offsets.items())
        append(
            log,
            [
                commit_record(commit, _FORM, log.next_offset + place, now_ms)
                for place, commit in enumerate(commits)
            ],
        )
