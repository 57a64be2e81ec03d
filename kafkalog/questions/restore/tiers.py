"""Tiered storage beside disks: the beginnings of logs that no disk has any more, and logs of which
no disk was given. Rules: docs/restore.md F1202 and F1203.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kafkalog.errors import LogDirError
from kafkalog.storage.log_dir.log_dir import find_partitions, input_entries
from kafkalog.storage.log_dir.same_partitions import refuse_doubles
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog

# A partition of one incarnation of a topic: the topic's id, and the number.
PartitionKey = tuple[str, int]


@dataclass(frozen=True)
class FoundLogs:
    """The logs on disks, and those in tiered storage, each with the path that it was found
    under."""

    on_disk: Sequence[PartitionLog]
    in_tier: Mapping[PartitionKey, PartitionLog]
    tier_paths: Sequence[str]


def found_logs(paths: Sequence[str]) -> FoundLogs:
    """Return what is under the paths, disks and tiers apart. Raises LogDirError for a partition
    that is twice on disks of one node, or in two tiers, and what finding logs raises."""
    on_disk: list[PartitionLog] = []
    in_tier: dict[PartitionKey, PartitionLog] = {}
    tier_paths: list[str] = []
    given = dict.fromkeys(entry.path for path in paths for entry in input_entries(path))
    for path in given:
        for log in find_partitions([path], strict=False, current_ids=None, needed=CLUSTER_METADATA):
            if log.tiered_topic_id is None:
                on_disk.append(log)
                continue
            if any(not segment.is_cut for segment in log.segments):
                raise LogDirError(
                    f"{path} has log directories and tiered storage: give each by its own path"
                )
            key = log.tiered_topic_id, log.partition or 0
            if key in in_tier:
                raise LogDirError(
                    f"partition {log.name} is in tiered storage twice, in {in_tier[key].path} and "
                    f"in {log.path}: one is a copy; name only one of them"
                )
            in_tier[key] = log
            if path not in tier_paths:
                tier_paths.append(path)
    # A partition that a broker has in two log directories has two copies.
    refuse_doubles([log for log in on_disk if log.topic == CLUSTER_METADATA])
    on_disk.sort(key=lambda log: (log.topic or "", log.partition or 0, log.path))
    return FoundLogs(on_disk, in_tier, tier_paths)


def with_beginning(log: PartitionLog, tiered: PartitionLog | None) -> PartitionLog:
    """Return a log on a disk with the segments before it that are in tiered storage, from its log
    start on."""
    if tiered is None or not log.segments:
        return log
    begin = log.segments[0].base_offset or 0
    before = [
        segment
        for segment in tiered.segments
        if (segment.base_offset or 0) < begin
        and (segment.next_base_offset is None or segment.next_base_offset > log.log_start)
    ]
    if before:
        before[-1] = replace(before[-1], next_base_offset=begin)
    return replace(log, segments=(*before, *log.segments)) if before else log
