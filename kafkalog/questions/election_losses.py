"""What partitions lose by who leads them, where several nodes of a cluster start together.

Column election_lost_records of table recovery_plan. Rules: docs/format.md F1445, and F790 to F795.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from kafkalog.inspection.partitions.leader_choices import LeaderChoices, Loss
from kafkalog.inspection.start.assigned_replicas import OFFLINE, Assignments
from kafkalog.inspection.start.node_start import NodeStart
from kafkalog.storage.partition_log import PartitionLog

LOST = "election_lost_records"
Row = dict[str, Any]
# A partition of a cluster: its id, the topic and the number.
PartitionKey = tuple[str | None, str, int]


def add_election_losses(
    starts: Sequence[NodeStart], logs: Sequence[PartitionLog], rows: Sequence[Row], now_ms: int
) -> None:
    """Complete the rows of table `recovery_plan` of nodes with what is lost with each replica that
    can lead. All rows of a partition are there."""
    here = {log.path: log for log in logs}
    clusters = {cluster: _assignments(cluster, starts) for cluster in _clusters(starts)}
    replicas: defaultdict[PartitionKey, dict[int, Row]] = defaultdict(dict)
    for row in rows:
        cluster, topic, number = row["cluster_id"], row["topic"], row["partition"]
        found = clusters.get(cluster)
        if found is None or topic is None or row["broker_id"] not in found[1]:
            continue
        # What is set aside comes before what is in use in its place.
        replicas[cluster, topic, number or 0][row["broker_id"]] = row
    for (cluster, topic, number), by_node in replicas.items():
        assignments, _, stopped = clusters[cluster]
        leaders = assignments.possible_leaders(topic, number, stopped)
        used = {
            node: here[row["directory"]]
            for node, row in by_node.items()
            if _is_used(row) and row["directory"] in here
        }
        states = [(row["log_end_offset"], row["leader_epochs"]) for row in by_node.values()]
        if {*by_node} == {*used} and all(state == states[0] for state in states):
            losses = dict.fromkeys(leaders, 0)
        else:
            losses = dict(_losses(used, leaders, now_ms))
        for node, records in losses.items():
            if node in by_node:
                by_node[node][LOST] = records


def lost_by_partition(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return by partition how many records it loses at most, those that lose most first."""
    most: dict[PartitionKey, int] = {}
    for row in rows:
        if row.get(LOST):
            key = row["cluster_id"], row["topic"], row["partition"]
            most[key] = max(most.get(key, 0), row[LOST])
    found: defaultdict[str, int] = defaultdict(int)
    for (_, topic, number), records in sorted(most.items(), key=lambda it: -it[1]):
        found[f"{topic}-{number}"] += records
    return dict(found)


def _clusters(starts: Sequence[NodeStart]) -> Iterator[str | None]:
    """Yield the clusters of which several nodes start."""
    found: defaultdict[str | None, int] = defaultdict(int)
    for start in starts:
        found[start.files.cluster_id] += _is_starting(start)
    return (cluster for cluster, count in found.items() if count > 1)


def _is_starting(start: NodeStart) -> bool:
    has_partitions = start.loaded is not None and start.loaded.assignments is not None
    return start.broker_starts and start.starting is not None and has_partitions


def _assignments(
    cluster: str | None, starts: Sequence[NodeStart]
) -> tuple[Assignments, set[int], set[int]]:
    """Return the assignments of a cluster, which nodes of it start, and which were given and do
    not."""
    own = [start for start in starts if start.files.cluster_id == cluster]
    given = {start.files.node_id for start in own if start.files.node_id is not None}
    brokers = [start.starting for start in own if _is_starting(start) and start.starting]
    known = next(
        start.loaded.assignments
        for start in own
        if _is_starting(start) and start.loaded and start.loaded.assignments
    )
    running = {each.node_id for each in brokers}
    return known.starting(brokers[0], brokers[1:]), running, given - running


def _is_used(row: Mapping[str, Any]) -> bool:
    """Return whether a replica has a log that its broker opens."""
    is_open = row["broker_starts"] and row["leader_reason"] != OFFLINE
    return bool(is_open and not row["is_set_aside"] and row["log_end_offset"] is not None)


def _losses(
    used: Mapping[int, PartitionLog], leaders: Collection[int], now_ms: int
) -> Iterator[tuple[int, int]]:
    """Yield the leaders, each with the records that are lost with it. What its own broker drops at
    the start is in `lost_records`. A leader without a log leaves nothing."""
    if not leaders:
        return
    logs = [*used.values()]
    choices = LeaderChoices(logs, now_ms=now_ms)
    for number, node in enumerate(used):
        if node in leaders and choices.can_lead(number):
            yield node, _records(choices.loss(number))
    without_log = sorted({*leaders} - used.keys())
    if without_log:
        every = _records(LeaderChoices(logs, without=[*used], now_ms=now_ms).loss(None))
        yield from ((node, every) for node in without_log)


def _records(loss: Loss) -> int:
    return sum(each.records for each in loss.ranges if not each.is_recovered_away)
