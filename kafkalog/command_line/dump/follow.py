"""`kafkalog dump --follow`: dump logs as they grow, roll, and are truncated, deleted or recreated.

Rules: docs/command-line.md F586 and F636.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.command_line.dump.plan import LogItem, log_items
from kafkalog.command_line.dump.request import DumpRequest
from kafkalog.command_line.dump.run import (
    Progress,
    csv_header,
    ended,
    for_people,
    heading,
    log_dump,
    opened_output,
    tell_beside,
)
from kafkalog.command_line.inputs import logs_of_topics
from kafkalog.command_line.terminal import print_note
from kafkalog.errors import FileCutError, LogDirError, OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.inspection.dump.dump_log import LogDump, Piece
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.storage.files.files import InputFile, modified_ms
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.log_dir.log_dir import with_segments_of_now
from kafkalog.storage.partition_log import PartitionLog, SegmentFile, those_of, topic_id
from kafkalog.storage.reading.renamed_files import opened

_SECONDS_BETWEEN_LOOKS = 0.2
# Every directory under the paths is listed then.
_SECONDS_BETWEEN_SEARCHES = 1.0
# So many places are remembered to go back to.
_MOST_MARKS = 1000
# Of a batch or a message its offset, its length and its checksum.
_HEADER_BYTES = 21


@dataclass(frozen=True)
class _Mark:
    """What was shown when a look had ended: up to the batch at `position`, whose first bytes are
    `header`, of the segment of `base_offset`; `next_offset` comes next."""

    base_offset: int
    position: int
    next_offset: int
    header: bytes


@dataclass
class _Followed:
    """A log that is followed: the segment that is being dumped, and how far."""

    log: PartitionLog
    item: LogItem
    topic_id: str | None
    resume_position: int = -1
    next_offset: int = 0
    seen: tuple[int, int] | None = None  # size and time of the file at the last look
    is_gone: bool = False
    marks: deque[_Mark] = field(default_factory=lambda: deque(maxlen=_MOST_MARKS))

    def begin(self, item: LogItem, position: int = -1, next_offset: int = 0) -> None:
        """Continue with a segment, after the batch at `position`."""
        self.item, self.resume_position, self.next_offset = item, position, next_offset
        self.seen = None


def run_follow(request: DumpRequest, *, fail_on_findings: bool) -> ExitCode:
    """Dump the logs and what is appended, until Ctrl-C or the limit. Raises OptionError for URIs:
    brokers write to local disks, and polling a store five times a second would be useless.
    """
    remote = [path for path in request.paths if is_remote(path)]
    if remote:
        raise OptionError("--follow", remote[0], "local paths, where brokers write")
    progress = Progress()
    logs = logs_of_topics(request.paths, request.topics, request.partitions)
    files = [segment.path for log in logs for segment in log.segments]
    with opened_output(request, files, grows=True) as output:
        try:
            output.write(csv_header(request))
            for piece in _pieces(request, logs):
                output.write(for_people(piece, request))
                output.flush()
                tell_beside(piece.findings, request)
                progress.findings += len(piece.findings)
        except KeyboardInterrupt:
            output.flush()
    return ended(progress, fail_on_findings=fail_on_findings)


def _pieces(request: DumpRequest, logs: Sequence[PartitionLog]) -> Iterator[Piece]:
    left = LARGEST_OFFSET if request.limit is None else request.limit
    followed = {log.log.path: log for log in _begun(logs, request)}
    searched_at = time.monotonic()
    while True:
        for path, log in list(followed.items()):
            for piece in _news(log, request, left):
                left -= piece.rows
                yield piece
                if not left:
                    return
            if log.is_gone:
                print_note(f"{path} was deleted")
                del followed[path]
        time.sleep(_SECONDS_BETWEEN_LOOKS)
        if time.monotonic() - searched_at >= _SECONDS_BETWEEN_SEARCHES:
            followed |= {log.log.path: log for log in _begun(_new_logs(request, followed), request)}
            searched_at = time.monotonic()


def _begun(logs: Iterable[PartitionLog], request: DumpRequest) -> Iterator[_Followed]:
    """Yield each log with its first segment that can hold requested offsets."""
    for log in logs:
        first = next(iter(log_items(log, request)), None)
        if first is not None:
            yield _Followed(log, first, topic_id(log))


def _new_logs(request: DumpRequest, known: Container[str]) -> Iterator[PartitionLog]:
    """Yield new partitions under the paths, except those that a broker is deleting."""
    try:
        found = find_logs(request.paths, strict=False)
    except LogDirError:
        return  # deleted, or being moved from one log directory to another
    for log in those_of(found, request.topics, request.partitions):
        if log.path not in known and (log.is_live or log.is_named):
            yield log


def _news(followed: _Followed, request: DumpRequest, left: int) -> Iterator[Piece]:
    """Yield what was appended since the last look, up to the limit; continue to later segments."""
    while left:
        now = with_segments_of_now(followed.log)
        _go_back(followed, now, request)
        next_item = _next_item(followed, now, request)
        followed.is_gone = not now.segments
        is_growing = next_item is None and not followed.is_gone
        limited = replace(request, limit=left)
        for piece in _of_segment(followed, limited, is_growing=is_growing):
            left -= piece.rows
            yield piece
        if next_item is None:
            return
        followed.begin(next_item)


def _next_item(followed: _Followed, now: PartitionLog, request: DumpRequest) -> LogItem | None:
    """Return the next segment, if the log has rolled."""
    base_offset = followed.item.read.base_offset
    later = [s for s in now.segments if (s.base_offset or 0) > (base_offset or 0)]
    return None if base_offset is None else _item(now, later, request)


def _item(
    log: PartitionLog, segments: Sequence[SegmentFile], request: DumpRequest
) -> LogItem | None:
    """Return the first of the segments that can hold requested offsets."""
    return next(iter(log_items(replace(log, segments=tuple(segments)), request)), None)


def _go_back(followed: _Followed, now: PartitionLog, request: DumpRequest) -> None:
    """Go back to the last mark that still holds if the log has changed: brokers truncate logs that
    diverge from their leader's, and topics are recreated under their old names."""
    base_offset, marks = followed.item.read.base_offset, followed.marks
    segments = {s.base_offset: s for s in now.segments if s.base_offset is not None}
    if base_offset is None or not segments:
        return
    is_shown = bool(marks) and marks[-1].base_offset == base_offset
    if base_offset < max(segments):
        if is_shown and base_offset in segments and not _holds(marks[-1], segments):
            # The cleaner has rewritten a rolled segment: only offsets are still valid.
            item = _item(now, [segments[base_offset]], request)
            followed.begin(item or followed.item, next_offset=marks.pop().next_offset)
        return
    if base_offset in segments and not (is_shown and not _holds(marks[-1], segments)):
        return
    while marks and not _holds(marks[-1], segments):
        marks.pop()
    new_id = topic_id(now)
    if new_id != followed.topic_id:
        marks.clear()
        print_note(f"{now.path} was recreated")
    else:
        print_note(f"{now.path} was truncated")
    followed.topic_id = new_id
    mark = marks[-1] if marks else None
    if mark is None or mark.base_offset not in segments:
        followed.begin(_item(now, now.segments, request) or followed.item)
    else:
        item = _item(now, [segments[mark.base_offset]], request)
        followed.begin(item or followed.item, mark.position, mark.next_offset)


def _holds(mark: _Mark, segments: Mapping[int, SegmentFile]) -> bool:
    """Return whether the batch at a mark is still there; retention may have deleted its segment."""
    segment = segments.get(mark.base_offset)
    if segment is None:
        return mark.base_offset < min(segments)
    try:
        with opened(segment.path) as file:
            return file.read(mark.position, _HEADER_BYTES) == mark.header
    except FileNotFoundError:
        return True  # deleted just now


def _of_segment(followed: _Followed, request: DumpRequest, *, is_growing: bool) -> Iterator[Piece]:
    read = followed.item.read
    try:
        file = opened(read.path)
    except FileNotFoundError:
        if followed.seen is None:
            print_note(f"{read.path} was deleted before it was shown")
        return
    with file:
        now = file.size, modified_ms(file.path)
        if followed.seen is None and request.output_format == "text":
            yield heading(followed.item)
        if followed.seen == now and is_growing:
            return
        followed.seen = now
        options = SegmentOptions.of_read(read, timestamps=request.timestamps)
        if followed.next_offset > options.first_offset:
            options = replace(options, first_offset=followed.next_offset)
        if followed.resume_position >= 0:
            options = replace(options, start_position=followed.resume_position)
        dump = log_dump(
            followed.item,
            request,
            FileWindow(file),
            options,
            resume_position=followed.resume_position,
            is_growing=is_growing,
        )
        with suppress(FileCutError):  # the next look goes back
            yield from dump.pieces()
        if dump.resume_position > followed.resume_position and read.base_offset is not None:
            followed.marks.append(_mark(file, dump, read.base_offset))
        followed.resume_position, followed.next_offset = dump.resume_position, dump.last_offset + 1


def _mark(file: InputFile, dump: LogDump, base_offset: int) -> _Mark:
    """Remember the last whole batch of the dump."""
    try:
        header = file.read(dump.resume_position, _HEADER_BYTES)
    except FileCutError:
        header = b""  # which no file has: the next look goes back
    return _Mark(base_offset, dump.resume_position, dump.last_offset + 1, header)
