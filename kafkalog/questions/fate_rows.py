"""The rows of table recovery_plan with what the node decides: the fates of their partitions, and
the partitions that have no log. Rules: docs/format.md F960 to F973."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafkalog.inspection.groups.coordinator_loading import CoordinatorLoad
from kafkalog.inspection.start.assigned_replicas import OFFLINE, ReplicaFate
from kafkalog.inspection.start.node_start import NodeStart
from kafkalog.schemas import table_fields
from kafkalog.storage.names import broker_partition_name
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.recovery.recovery import RecoveryPlan, RecoverySettings, plan_recovery

_PLAN = "recovery_plan"
# Counts of what a partition without a directory has none of.
_NONE_OF_ABSENT = (
    *("lost_bytes", "lost_records", "salvageable_bytes", "salvageable_records"),
    *("remaining_faults", "padded_time_indexes"),
)
Row = dict[str, Any]


def partition_rows(
    starts: Sequence[NodeStart],
    logs: Sequence[PartitionLog],
    plan: Sequence[Row],
    loads: Sequence[CoordinatorLoad],
) -> list[Row]:
    """Return the rows of all partitions of nodes; `plan` has those of view `recovery_plan` of the
    logs, which are completed in place, because there can be many, and `loads` what coordinators
    make of theirs."""
    fates = {path: fate for each in starts for path, fate in each.fates.items()}
    stopped = {load.path: _coordinator_error(load) for load in loads if not load.loads}
    planned = {row["directory"] for row in plan}
    empty = dict.fromkeys(each["name"] for each in table_fields(_PLAN))
    rows = [*plan]
    for row in plan:
        row |= _fate_columns(row, fates, stopped)
    for start in starts:
        unplanned = {path: it for path, it in start.fates.items() if path not in planned}
        added = (*_unplanned_rows(start, unplanned), *_absent_rows(start, logs))
        rows += ({**empty, "deleted_segments": [], **row} for row in added)
    # What is set aside comes before what is in use in its place.
    rows.sort(
        key=lambda row: (
            *(row["topic"] or "", row["partition"] or 0),
            *(not row["is_set_aside"], row["directory"] or ""),
        )
    )
    return rows


def _fate_columns(row: Row, fates: Mapping[str, ReplicaFate], stopped: Mapping[str, Row]) -> Row:
    """Return the columns of a row that the node decides: the log that is set aside and begins
    empty has no records, and one that is not used any more has no offsets."""
    fate = fates.get(row["directory"])
    is_loaded = fate is None or (fate.leader_reason != OFFLINE and not fate.is_set_aside)
    added: Row = {"coordinator_error": stopped.get(row["directory"]) if is_loaded else None}
    if fate is not None:
        added |= {
            "is_set_aside": fate.is_set_aside,
            "set_aside_reason": fate.reason,
            "has_leader": fate.has_leader,
            "leader_reason": fate.leader_reason,
            "begins_empty": fate.begins_empty,
            "topic": _directory_topic(row),
        }
        has_place = fate.has_leader and not fate.begins_empty and fate.beside is None
        is_replaced = fate.is_moved or has_place
        if fate.replaced_by is not None:
            added |= _takeover(row, fate.replaced_by)
        elif fate.begins_empty and not fate.is_set_aside:
            lost = row["log_end_offset"] or 0
            empty = dict.fromkeys(("log_start_offset", "log_end_offset"), 0)
            added |= {**empty, "missing_offsets": lost, "deleted_soon": None}
        elif fate.is_set_aside and not is_replaced:
            end = 0 if fate.begins_empty else None
            added |= {"log_start_offset": end, "log_end_offset": end, "deleted_soon": None}
    return added


def _directory_topic(row: Mapping[str, Any]) -> str | None:
    """Return the topic by the directory's name: to the node it has no other, where the metadata
    has another topic of the name."""
    name = broker_partition_name(os.path.basename(row["directory"]))
    topic: str | None = row["topic"] if name is None else name.topic
    return topic


def _takeover(row: Mapping[str, Any], future: str) -> Row:
    """Return the offsets of a copy that takes a partition's place as it is, and what it lacks."""
    plan = plan_recovery(future, RecoverySettings(is_clean_shutdown=True))
    before, end = row["log_end_offset"] or 0, plan.log_end_offset
    return {
        "log_start_offset": plan.log_start_offset,
        "log_end_offset": end,
        "missing_offsets": max(row["missing_offsets"] or 0, before - (end or 0)),
        "deleted_soon": None,
    }


def _unplanned_rows(start: NodeStart, fates: Mapping[str, ReplicaFate]) -> Iterator[Row]:
    """Yield the rows of directories that were not planned: those whose names are not those of
    partitions, or that are not in use, and of those that have no finding of their own, the ones
    that are set aside, or whose partitions have no leader, or one that costs records."""
    files = start.files
    for path, fate in fates.items():
        name = broker_partition_name(os.path.basename(path))
        if name is not None and (fate.is_set_aside or fate.costs):
            yield {
                **dict.fromkeys(_NONE_OF_ABSENT, 0),
                "cluster_id": files.cluster_id,
                "broker_id": files.node_id,
                "input_path": os.path.dirname(path),
                "topic": name.topic,
                "partition": name.partition,
                "directory": path,
                "broker_starts": True,
                "missing_offsets": 0,
                "is_set_aside": fate.is_set_aside,
                "set_aside_reason": fate.reason,
                "has_leader": fate.has_leader,
                "leader_reason": fate.leader_reason,
                "begins_empty": fate.begins_empty,
            }


def _coordinator_error(load: CoordinatorLoad) -> Row:
    return {
        "offset": load.offset,
        "record": load.record_name,
        "reason": load.reason,
        "groups": load.waiting,
    }


def _absent_rows(start: NodeStart, logs: Sequence[PartitionLog]) -> Iterator[Row]:
    """Yield the rows of partitions that have no directory."""
    log_dirs = {log.log_dir.path: log.log_dir for log in logs}
    files = start.files
    for each in start.absent:
        log_dir = log_dirs.get(each.log_dir)
        key = each.topic, each.partition
        recorded = log_dir.high_watermarks.get(key, 0) if log_dir is not None else 0
        plan = RecoveryPlan(log_end_offset=0)
        if each.future is not None:
            is_clean = log_dir is not None and log_dir.is_clean_shutdown
            plan = plan_recovery(each.future, RecoverySettings(is_clean))
        end = plan.log_end_offset
        yield {
            **dict.fromkeys(_NONE_OF_ABSENT, 0),
            "cluster_id": files.cluster_id,
            "broker_id": files.node_id,
            "input_path": each.log_dir,
            "topic": each.topic,
            "partition": each.partition,
            "directory": each.future or os.path.join(each.log_dir, f"{key[0]}-{key[1]}"),
            "broker_starts": plan.start_error is None,
            "start_error": plan.start_error,
            "log_start_offset": plan.log_start_offset,
            "log_end_offset": end,
            "missing_offsets": None if end is None else max(recorded - end, 0),
            "is_set_aside": each.fate.is_set_aside,
            "set_aside_reason": each.fate.reason,
            "has_leader": each.fate.has_leader,
            "leader_reason": each.fate.leader_reason,
            "begins_empty": each.fate.begins_empty and each.future is None,
        }
