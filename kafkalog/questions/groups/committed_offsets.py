"""The offsets that groups have committed, as they are in effect at the end of the offsets topic."""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.coordination.groups.group_records import GroupKey, group_key, known_groups
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.views.engine import Views
from kafkalog.views.local_views import view_options
from kafkalog.views.planning.group_reads import group_reads
from kafkalog.views.reading.group_reading import GroupsRead, PartitionGroups, read_groups

CommittedOffsets = dict[tuple[GroupKey, str, int], int]


def committed_offsets(views: Views) -> CommittedOffsets:
    """Return the offsets by group, topic and partition, of groups that are not Dead; without
    commits that wait for their transaction."""
    logs = [log for log in best_logs(views.logs) if log.topic == CONSUMER_OFFSETS]
    if not logs:
        return {}
    options = view_options(views.log_dirs, "offset_commits", subscribe=CONSUMER_OFFSETS)

    def read(item: GroupsRead) -> Iterator[PartitionGroups]:
        yield read_groups(item, options, None)

    commits: CommittedOffsets = {}
    records = []
    for found in views.tasks(read, group_reads(options, logs)):
        records += found.records
        for row in [] if found.commits is None else found.commits.to_pylist():
            if row["committed_offset"] is not None:
                place = group_key(row), row["topic"], row["partition"]
                commits[place] = row["committed_offset"]
    groups = known_groups(records, {key for key, _, _ in commits})
    return {place: offset for place, offset in commits.items() if groups[place[0]].state != "Dead"}
