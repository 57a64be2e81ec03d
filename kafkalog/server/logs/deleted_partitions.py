"""Partitions that a broker has deleted or set aside, under the plain names of their topics.

Which of them can be served beside the others: what has a name of its own, and is there once or as
replicas of each other. Rule: docs/format.md F92.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.storage.log_dir.deleted_logs import marked_directories
from kafkalog.storage.log_dir.log_dir import input_entries
from kafkalog.storage.log_dir.same_partitions import replica_place, why_no_replicas
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog, topic_id


def deleted_partitions(
    paths: Sequence[str], logs: Sequence[PartitionLog]
) -> tuple[list[PartitionLog], list[str]]:
    """Return the logs in directories marked as deleted or stray, as live ones, and a line for each
    that is left out; `logs` are those that were found under the paths."""
    by_topic: dict[str, list[PartitionLog]] = defaultdict(list)
    for log in _marked(paths):
        if log.topic is not None and log.topic != CLUSTER_METADATA:
            by_topic[log.topic].append(log)
    kept: list[PartitionLog] = []
    left_out: list[str] = []
    for topic, found in sorted(by_topic.items()):
        live = [log for log in logs if log.is_live and log.topic == topic]
        reasons = {log.path: _why_not_beside(log, live) for log in found}
        rest = [log for log in found if reasons[log.path] is None]
        among_them = _why_not_one_topic(rest)
        if among_them is None:
            kept += rest
        for log in found:
            reason = reasons[log.path] or among_them
            if reason is not None:
                left_out.append(f"{log.path} is not served: {reason}")
    return kept, left_out


def _marked(paths: Sequence[str]) -> Iterator[PartitionLog]:
    """Yield the logs of marked directories: those given, and those in log directories."""
    directories: dict[str, None] = {}
    for pattern in paths:
        for entry in input_entries(pattern):
            if entry.is_directory:
                directories.update(dict.fromkeys(marked_directories(entry.path)))
    for path in directories:
        for log in find_logs([path], strict=False):
            # Its checkpoints have no entries of the log, so its end does not follow from them.
            log_dir = replace(log.log_dir, is_clean_shutdown=False)
            yield replace(log, log_dir=log_dir, is_live=True)


def _why_not_beside(log: PartitionLog, live: Sequence[PartitionLog]) -> str | None:
    """Return why a log cannot be served beside those of a topic of its name."""
    if any(other.partition == log.partition for other in live):
        return f"there is a partition {log.name} that is not deleted"
    if any(topic_id(other) != topic_id(log) for other in live):
        return f"there is another topic {log.topic} that is not deleted; give this path alone"
    return None


def _why_not_one_topic(found: Sequence[PartitionLog]) -> str | None:
    """Return why logs of one topic name are not those of one topic."""
    ids = {topic_id(log) for log in found}
    if len(ids) > 1:
        return f"several topics were named {found[0].topic}; give the directories of one of them"
    for one, other in combinations(found, 2):
        reason = why_no_replicas(replica_place(one), replica_place(other))
        if one.partition == other.partition and reason is not None:
            names = os.path.basename(one.path), os.path.basename(other.path)
            return f"{' and '.join(names)} are the same partition, and {reason}"
    return None
