"""What a recovery costs a partition and what of it could be saved: view `recovery_plan`,
schemas/tables/recovery_plan.json.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.byte_ranges import FAULTY, TRAILING, VALID, ByteRange
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.segment_reader import SegmentByteRanges
from kafkalog.columns.table_rows import TableRow
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.metadata.metadata_start import start_with_snapshots
from kafkalog.inspection.partitions.deleted_soon import DeletedSoon, deleted_soon, is_cleaned
from kafkalog.inspection.partitions.served_faults import (
    ServedSegment,
    cleaning_stops_at,
    consumers_stop_at,
)
from kafkalog.storage.cleaning.retention_facts import TimestampFrom, largest_timestamp
from kafkalog.storage.log_dir.topic_configs import RetentionSettings
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.log_bounds import recorded_end, with_files
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.recovery.recovery import RecoveryPlan, RecoverySettings, plan_recovery


def recovery_row(
    log: PartitionLog, settings: RecoverySettings, retention: RetentionSettings | None = None
) -> TableRow:
    """Return the plan for a partition's next start, and the account of what it costs, with what
    retention by these settings costs soon after. Raises FileNotFoundError where a file of it was
    deleted since the log was listed."""
    plan = plan_recovery(log.path, settings)
    if log.topic == CLUSTER_METADATA and log.is_live:
        start_with_snapshots(log, plan, needs_snapshot=settings.needs_snapshot)
    cut = plan.cuts[-1] if plan.cuts else None
    served, lost = _divided(log, plan)
    sound = [row for row in lost if row["verdict"] == VALID]
    damaged = [row for row in lost if row["verdict"] in (FAULTY, TRAILING)]
    soon = None if retention is None else _deleted_soon(log, plan, settings, retention)
    return {
        "directory": log.path,
        "shutdown": "clean" if settings.is_clean_shutdown else "unclean",
        "recovery_point": settings.recovery_point,
        "broker_starts": plan.start_error is None,
        "start_error": plan.start_error,
        "ends_process": None if plan.start_error is None else plan.ends_process,
        "log_start_offset": _log_start(plan, soon),
        "deleted_soon": soon.row() if soon else None,
        "log_end_offset": plan.log_end_offset,
        "cut_file": os.path.join(log.path, cut.file) if cut else None,
        "cut_position": cut.position if cut else None,
        "cut_reason": cut.reason if cut else None,
        "cut_kind": damaged[0]["kind"] if damaged else None,
        "lost_bytes": _total(lost, "length"),
        "lost_records": _total(sound, "records") + _announced(damaged),
        "salvageable_bytes": _total(sound, "length"),
        "salvageable_records": _total(sound, "records"),
        "recovered_segments": len(plan.recovered_segments),
        "deleted_segments": sorted((*plan.deleted_segments, *plan.replaced_segments)),
        "deleted_snapshots": plan.deleted_snapshots,
        "written_snapshots": plan.written_snapshots,
        "leader_epochs": [entry._asdict() for entry in plan.leader_epochs],
        "missing_offsets": _missing_offsets(log, plan),
        **_unflushed(log, settings.recovery_point),
        "cleaning_stops_at": _cleaning_stop(log, plan, served, retention),
        **_remaining(plan, served, keeps_indexes=log.topic != CLUSTER_METADATA),
    }


def _log_start(plan: RecoveryPlan, soon: DeletedSoon | None) -> int:
    """Return the log start offset after what retention deletes, unless only Kafka's defaults say
    that it does."""
    if soon is None or (soon.is_expected and soon.is_assumed):
        return plan.log_start_offset
    return soon.log_start_offset


def _deleted_soon(
    log: PartitionLog, plan: RecoveryPlan, settings: RecoverySettings, retention: RetentionSettings
) -> DeletedSoon | None:
    if plan.log_end_offset is None or log.topic == CLUSTER_METADATA or not log.is_live:
        return None
    gone = {*plan.deleted_segments}
    return deleted_soon(log, retention, settings.now_ms, gone, plan.log_end_offset)


def _cleaning_stop(
    log: PartitionLog,
    plan: RecoveryPlan,
    served: Sequence[ServedSegment],
    retention: RetentionSettings | None,
) -> str | None:
    is_open = plan.start_error is None and log.topic != CLUSTER_METADATA and log.is_live
    if not is_open or retention is None or not is_cleaned(log, retention):
        return None
    return cleaning_stops_at(served, plan.log_start_offset)


def _remaining(
    plan: RecoveryPlan, served: Sequence[ServedSegment], *, keeps_indexes: bool
) -> TableRow:
    """Return what stays wrong with a log that a broker starts with. `keeps_indexes` is False for
    the cluster's metadata, whose indexes every start recreates."""
    if plan.start_error is not None:
        names = ("remaining_faults", "consumers_stop_at", "padded_time_indexes")
        return dict.fromkeys(names)
    start, end, rebuilt = plan.log_start_offset, plan.log_end_offset, plan.recovered_segments
    kept = (each.segment for each in served if each.segment.base_offset not in rebuilt)
    return {
        "remaining_faults": sum(len(each.faults(start)) for each in served),
        "consumers_stop_at": consumers_stop_at(served, start, end),
        "padded_time_indexes": sum(
            keeps_indexes and largest_timestamp(segment).source is TimestampFrom.ZEROS
            for segment in kept
        ),
    }


def _missing_offsets(log: PartitionLog, plan: RecoveryPlan) -> int | None:
    """Return offsets that the log had by checkpoints or indexes and does not have once the broker
    runs."""
    if plan.log_end_offset is None:
        return None
    recorded = with_files(recorded_end(log), plan.log_end_offset)
    return max(recorded.offset - plan.log_end_offset, 0)


def _total(rows: list[ByteRange], name: str) -> int:
    return sum(int(row[name]) for row in rows)  # type: ignore[call-overload]


def _announced(rows: list[ByteRange]) -> int:
    """Return records of damaged batches, by the offsets in their headers where there are any."""
    return sum(
        int(row["last_offset"]) - int(row["base_offset"]) + 1  # type: ignore[call-overload]
        for row in rows
        if row.get("base_offset") is not None and row.get("last_offset") is not None
    )


def _divided(log: PartitionLog, plan: RecoveryPlan) -> tuple[list[ServedSegment], list[ByteRange]]:
    """Return what the plan leaves of each segment, and the ranges of all that it does not."""
    cuts = {cut.file: cut.position for cut in plan.cuts}
    served: list[ServedSegment] = []
    lost: list[ByteRange] = []
    for segment in log.segments:
        is_deleted = segment.base_offset in plan.deleted_segments
        end = 0 if is_deleted else cuts.get(os.path.basename(segment.path))
        ranges = list(_byte_ranges(log, segment))
        if end is not None:
            # Of what follows a cut nothing is left that a hole could lie before.
            ranges = [row for row in ranges if row["length"]]
            lost += [
                row
                for row in ranges
                if int(str(row["position"])) >= end and not _is_kept(row, plan)
            ]
            ranges = [row for row in ranges if int(str(row["position"])) < end]
        if not is_deleted:
            served.append(ServedSegment(segment, segment.size if end is None else end, ranges))
    return served, lost


def _is_kept(row: ByteRange, plan: RecoveryPlan) -> bool:
    """Return whether a snapshot of the cluster's metadata has all records of a range."""
    last_offset = row.get("last_offset")
    return last_offset is not None and int(str(last_offset)) < plan.kept_in_snapshot


def _byte_ranges(log: PartitionLog, segment: SegmentFile) -> Iterator[ByteRange]:
    options = SegmentOptions.of(segment)
    with opened_segment(segment) as file:
        known = log.known_sound(segment, file.size)
        if known is not None:
            yield {"position": 0, "length": file.size, "verdict": VALID, **known._asdict()}
            return
        ranges = SegmentByteRanges(FileWindow(file), options, is_compacted=log.is_compacted)
        yield from ranges.rows()


def _unflushed(log: PartitionLog, recovery_point: int) -> TableRow:
    """Return what a crash of the machine could have cost: records that may not have been on disk
    yet."""
    records = size = 0
    first_ms, last_ms = None, None
    for segment in log.segments:
        if segment.next_base_offset is not None and segment.next_base_offset <= recovery_point:
            continue
        for table in _headers(segment):
            late = table[
                (table[:, column.FAULT] == 0) & (table[:, column.LAST_OFFSET] >= recovery_point)
            ]
            records += int(column.record_counts(late).sum())
            size += int(late[:, column.SIZE].sum())
            times = late[late[:, column.MAX_TIMESTAMP] != NO_VALUE]
            if len(times):
                latest, firsts = times[:, column.MAX_TIMESTAMP], column.first_timestamps(times)
                known = firsts[firsts != NO_VALUE]
                first, last = int((known if len(known) else latest).min()), int(latest.max())
                first_ms = first if first_ms is None else min(first_ms, first)
                last_ms = last if last_ms is None else max(last_ms, last)
    span_ms = -1 if first_ms is None or last_ms is None else last_ms - first_ms
    return {
        "unflushed_records": records,
        "unflushed_bytes": size,
        # Producers choose timestamps: their distance can be no time at all.
        "unflushed_ms": span_ms if 0 <= span_ms < 2**63 else None,
    }


def _headers(segment: SegmentFile) -> Iterator[LongArray]:
    options = SegmentOptions.of(segment, check_crcs=False)
    with opened_segment(segment) as file:
        for chunk in SegmentHeaders(FileWindow(file), options).chunks():
            yield chunk.table
