"""Tiered storage, its metadata and the local logs compared: what is lost, what is left over, and
which local segments are safe in it. Rules: docs/remote.md F547 to F549 and F953.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kafkalog.coordination.metadata.remote_segments import (
    COPIED,
    COPYING,
    DELETED,
    DELETING,
    RemoteSegment,
)
from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.leader_epochs import read_leader_epochs
from kafkalog.storage.files.files import read_text
from kafkalog.storage.log_dir.tiered_storage import StoredSegment
from kafkalog.storage.names import REMOTE_LOG_METADATA
from kafkalog.storage.partition_log import LEADER_EPOCHS, PartitionLog, topic_id

_LOG = "log"
_MANIFEST = "rsm-manifest"
HOLE, ORPHAN = "hole", "orphan"
ERRORS = ("missing_object", "size_differs", HOLE)
# Findings that a later record about the segment would end.
UNFINISHED = (ORPHAN, "unfinished_copy", "unfinished_deletion")
UNKNOWN = "unknown"
ON_DISK, IN_TIER, ACTIVE = "on disk only", "in tier", "active"

_Key = tuple[str, str, int]


class TierRow(NamedTuple):
    """A segment in the tier or on a disk, or offsets that are nowhere; `finding` is None for what
    is as it should be. `end_offset` is the last offset, None if it is not known."""

    topic: str
    partition: int
    state: str | None
    start_offset: int
    end_offset: int | None = None
    size: int | None = None
    finding: str | None = None
    detail: str | None = None
    changed_ms: int | None = None
    broker_id: int | None = None
    topic_id: str | None = None
    segment_id: str | None = None
    path: str | None = None


def tier_rows(
    segments: Sequence[RemoteSegment],
    stored: Sequence[StoredSegment] | None,
    logs: Sequence[PartitionLog],
    *,
    is_whole: bool = True,
    hides_changes: bool = False,
) -> list[TierRow]:
    """Return a row for each segment that the metadata names or that is stored, for each segment of
    local logs of the same topics, and for each hole. `stored` is None where the tier was not given:
    nothing is said of its objects then.

    Where the metadata is not `is_whole`, no object is called left over, and no offsets a hole: the
    record that names the object may be in what is missing. Where it `hides_changes`, no local
    segment is called safe either, and nothing unfinished: the last record about a segment may be
    missing (F953).
    """
    objects = {each.segment_id: each for each in stored or ()}
    withheld = () if is_whole else (*(UNFINISHED if hides_changes else (ORPHAN,)), HOLE)
    rows = [
        _withheld(_of_metadata(each, objects.get(each.segment_id), stored is not None), withheld)
        for each in segments
        if each.state != DELETED or each.segment_id in objects
    ]
    orphans = _orphans(objects, {each.segment_id for each in segments})
    rows += [_withheld(row, withheld) for row in orphans]
    usable: dict[_Key, list[RemoteSegment]] = defaultdict(list)
    broken = {row.segment_id for row in rows if row.finding in ERRORS}
    for each in segments:
        if each.state == COPIED and each.segment_id not in broken:
            usable[each.topic, each.topic_id, each.partition].append(each)
    tiered = {(each.topic, each.topic_id, each.partition) for each in segments}
    by_key: dict[_Key, list[PartitionLog]] = defaultdict(list)
    for log in logs:
        key = (log.topic or "", topic_id(log) or "", log.partition or 0)
        if key in tiered and log.segments:
            by_key[key].append(log)
            local = _local(log, key, usable[key])
            rows += [_not_safe(row) for row in local] if hides_changes else local
    for key in sorted(tiered):
        holes = _holes(key, usable[key], by_key[key])
        rows += [_withheld(row, withheld) for row in holes]
    return sorted(rows, key=lambda row: (row.topic, row.partition, row.start_offset))


def _withheld(row: TierRow, withheld: Sequence[str]) -> TierRow:
    """Return a row without a finding that the missing records may refute."""
    if row.finding not in withheld:
        return row
    claim = "lost" if row.finding == HOLE else "left over"
    detail = f"not known to be {claim}: {REMOTE_LOG_METADATA} is not whole"
    return row._replace(state=row.state or UNKNOWN, finding=None, detail=detail)


def _not_safe(row: TierRow) -> TierRow:
    return row._replace(state=UNKNOWN) if row.state == IN_TIER else row


def _of_metadata(
    segment: RemoteSegment, stored: StoredSegment | None, is_compared: bool
) -> TierRow:
    finding, detail = _finding(segment, stored, is_compared)
    return TierRow(
        topic=segment.topic,
        partition=segment.partition,
        state=segment.state,
        start_offset=segment.start_offset,
        end_offset=segment.end_offset,
        size=segment.size,
        finding=finding,
        detail=detail,
        changed_ms=segment.changed_ms,
        broker_id=segment.broker_id,
        topic_id=segment.topic_id,
        segment_id=segment.segment_id,
        path=None if stored is None else stored.path,
    )


def _finding(
    segment: RemoteSegment, stored: StoredSegment | None, is_compared: bool
) -> tuple[str | None, str | None]:
    left = "" if stored is None else f"; {_size(stored)} bytes are stored"
    if segment.state == DELETED:
        return ORPHAN, f"its metadata says that it was deleted{left}"
    if segment.state == COPYING:
        return "unfinished_copy", f"no record says that the copy was finished{left}"
    if segment.state == DELETING:
        return "unfinished_deletion", f"no record says that the deletion was finished{left}"
    if not is_compared:
        return None, None
    if stored is None or _LOG not in stored.files:
        return "missing_object", "its metadata says that it was copied, and there is no .log of it"
    size = stored.files[_LOG].size
    # What a manifest describes may be compressed.
    if _MANIFEST not in stored.files and size != segment.size:
        return "size_differs", f"{size} bytes are stored, {segment.size} were copied"
    return None, None


def _orphans(objects: dict[str, StoredSegment], known: set[str]) -> Iterator[TierRow]:
    for each in objects.values():
        if each.segment_id not in known:
            yield TierRow(
                topic=each.topic,
                partition=each.partition,
                state=None,
                start_offset=each.base_offset,
                size=_size(each),
                finding=ORPHAN,
                detail=f"no record of {REMOTE_LOG_METADATA} names it",
                topic_id=each.topic_id,
                segment_id=each.segment_id,
                path=each.path,
            )


def _size(stored: StoredSegment) -> int:
    return sum(entry.size for entry in stored.files.values())


def _local(log: PartitionLog, key: _Key, usable: Sequence[RemoteSegment]) -> Iterator[TierRow]:
    """Yield the segments of a local log; one is safe if segments in the tier of the same leaders
    hold all its offsets."""
    starts = _epoch_starts(log)
    same = [each for each in usable if _is_same_history(starts, each)]
    for segment in log.segments:
        base = segment.base_offset or 0
        if segment.next_base_offset is None:
            state, end = ACTIVE, None
        else:
            end = segment.next_base_offset - 1
            state = IN_TIER if _covered_up_to(same, base) > end else ON_DISK
        yield TierRow(
            topic=key[0],
            partition=key[2],
            state=state,
            start_offset=base,
            end_offset=end,
            size=segment.size,
            broker_id=log.log_dir.broker_id,
            topic_id=key[1],
            path=segment.path,
        )


def _epoch_starts(log: PartitionLog) -> dict[int, int]:
    """Return the log's leader epochs and where each begins, none if its checkpoint is missing or
    damaged."""
    try:
        text = read_text(os.path.join(log.path, LEADER_EPOCHS))
        return {} if text is None else dict(read_leader_epochs(text))
    except CorruptDataError:
        return {}


def _is_same_history(starts: Mapping[int, int], segment: RemoteSegment) -> bool:
    """Return whether a log has the segment's leader epochs, those that begin within it where it
    says."""
    return bool(segment.epochs) and all(
        epoch in starts and (number == 0 or starts[epoch] == offset)
        for number, (epoch, offset) in enumerate(segment.epochs)
    )


def _covered_up_to(segments: Sequence[RemoteSegment], offset: int) -> int:
    """Return the first offset from `offset` on that no segment holds."""
    for each in sorted(segments, key=lambda each: each.start_offset):
        if each.start_offset <= offset <= each.end_offset:
            offset = each.end_offset + 1
    return offset


def _holes(
    key: _Key, usable: Sequence[RemoteSegment], logs: Sequence[PartitionLog]
) -> Iterator[TierRow]:
    """Yield the offsets between the first of the log and the local logs that are nowhere."""
    starts = [log.segments[0].base_offset or 0 for log in logs]
    if not usable or not starts:
        return
    log_starts = [log.log_dir.log_starts.get((key[0], key[2]), 0) for log in logs]
    position = max(min(each.start_offset for each in usable), *log_starts)
    local = min(starts)
    later = sorted(each.start_offset for each in usable if each.start_offset > position)
    while (position := _covered_up_to(usable, position)) < local:
        end = min((each for each in (*later, local) if each > position), default=local)
        yield TierRow(
            topic=key[0],
            partition=key[2],
            state=None,
            start_offset=position,
            end_offset=end - 1,
            finding=HOLE,
            detail="neither the tier nor a log directory of the input has these offsets",
            topic_id=key[1],
        )
        position = end
