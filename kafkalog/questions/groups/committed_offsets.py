"""The offsets that groups have committed, as they are in effect at the end of the offsets topic."""

from __future__ import annotations

from kafkalog.coordination.groups.group_records import GroupKey, group_key
from kafkalog.coordination.groups.lag_question import LagQuestion
from kafkalog.questions.groups.lag import ConsumerLag
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.views.engine import Views

CommittedOffsets = dict[tuple[GroupKey, str, int], int]
_COLUMNS = (
    *(*GroupKey._fields, "topic", "partition", "committed_offset", "group_type", "group_state"),
)


def committed_offsets(views: Views) -> CommittedOffsets:
    """Return the offsets by group, topic and partition, of groups that are not Dead; without
    commits that wait for their transaction, and without share groups, which commit nothing."""
    if not any(log.topic == CONSUMER_OFFSETS for log in views.logs):
        return {}
    rows = ConsumerLag(views, LagQuestion(0)).rows.commits_alone()
    return {
        (group_key(row), row["topic"], row["partition"]): row["committed_offset"]
        for row in rows.select(_COLUMNS).to_pylist()
        if row["committed_offset"] is not None
        and row["group_state"] != "Dead"
        and row["group_type"] != "share"
    }
