"""`kafkalog dump --follow`: on and on as logs grow, segments that are rolled included.

Rule: docs/command-line.md F586.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kafkalog.columns.dump_log import Piece
from kafkalog.columns.segment_batches import SegmentOptions
from kafkalog.columns.window import FileWindow
from kafkalog.command_line.dump_plan import LogItem, log_items
from kafkalog.command_line.dump_request import DumpRequest
from kafkalog.command_line.dump_run import (
    Progress,
    csv_header,
    ended,
    for_people,
    heading,
    log_dump,
    opened_output,
    tell_beside,
)
from kafkalog.command_line.inputs import chosen_logs
from kafkalog.exit_codes import ExitCode
from kafkalog.format.segment import LARGEST_OFFSET
from kafkalog.storage.files import modified_ms
from kafkalog.storage.log_dir import input_entries, with_segments_of_now
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.renamed_files import opened

_SECONDS_BETWEEN_LOOKS = 0.2


@dataclass
class _Followed:
    """A log that is followed: the segment that is being told, and how far it has been."""

    log: PartitionLog
    item: LogItem
    told_position: int = -1
    next_offset: int = 0
    seen: tuple[int, int] | None = None  # size and time of the file when it was looked at


def run_follow(request: DumpRequest, *, fail_on_findings: bool) -> ExitCode:
    """Dump what is there and what comes, until Ctrl-C or until the limit is reached."""
    progress = Progress()
    with opened_output(request) as output:
        try:
            output.write(csv_header(request))
            for piece in _pieces(request):
                output.write(for_people(piece, request))
                output.flush()
                tell_beside(piece.findings, request)
                progress.findings += len(piece.findings)
        except KeyboardInterrupt:
            output.flush()
    return ended(progress, fail_on_findings=fail_on_findings)


def _pieces(request: DumpRequest) -> Iterator[Piece]:
    left = LARGEST_OFFSET if request.limit is None else request.limit
    followed = [_Followed(log, item) for log, item in _first_items(request)]
    while True:
        for log in followed:
            for piece in _news(log, replace(request, limit=left)):
                left -= piece.rows
                yield piece
                if not left:
                    return
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _first_items(request: DumpRequest) -> Iterator[tuple[PartitionLog, LogItem]]:
    """Each log with its first segment that can hold what is asked."""
    paths = [entry.path for path in request.paths for entry in input_entries(path)]
    for log in chosen_logs(paths, request.topics, request.partitions):
        first = next(iter(log_items(log, request)), None)
        if first is not None:
            yield log, first


def _news(followed: _Followed, request: DumpRequest) -> Iterator[Piece]:
    """What has come since the last look; goes on to the segment that follows."""
    while True:
        follower = _follower(followed)
        yield from _of_segment(followed, request, is_growing=follower is None)
        if follower is None:
            return
        followed.item, followed.told_position, followed.seen = follower, -1, None


def _follower(followed: _Followed) -> LogItem | None:
    """The next segment, if the log has been rolled."""
    base_offset = followed.item.read.base_offset
    now = with_segments_of_now(followed.log, followed.log.path)
    later = [s for s in now.segments if (s.base_offset or 0) > (base_offset or 0)]
    if base_offset is None or not later:
        return None
    segments = tuple(later[:1])
    return next(iter(log_items(replace(now, segments=segments), DumpRequest(paths=()))))


def _of_segment(followed: _Followed, request: DumpRequest, *, is_growing: bool) -> Iterator[Piece]:
    read = followed.item.read
    try:
        file = opened(read.path)
    except FileNotFoundError:
        return  # deleted by retention: what follows is told
    with file:
        now = file.size, modified_ms(file.path)
        if followed.seen is None and request.output_format == "text":
            yield heading(followed.item)
        if followed.seen == now and is_growing:
            return
        followed.seen = now
        options = SegmentOptions.of_read(read, timestamps=request.timestamps)
        if followed.told_position >= 0:
            options = replace(
                options, first_offset=followed.next_offset, start_position=followed.told_position
            )
        dump = log_dump(
            followed.item,
            request,
            FileWindow(file),
            options,
            told_position=followed.told_position,
            is_growing=is_growing,
        )
        yield from dump.pieces()
        followed.told_position, followed.next_offset = dump.told_position, dump.told_offset + 1
