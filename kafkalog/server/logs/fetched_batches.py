"""Which batches of a segment a fetch gets: where they lie, or what old ones become."""

from __future__ import annotations

from kafkalog.format.offsets import OffsetSpan
from kafkalog.server.logs.batch_runs import BatchRuns, Run
from kafkalog.server.logs.converted_batches import converted_batches
from kafkalog.server.logs.file_ranges import FileRange, Range
from kafkalog.storage.files.files import InputFile

# Old batches are converted up to this size for one fetch: other clients wait meanwhile.
_MOST_CONVERTED_BYTES = 1024 * 1024


def batches_in(runs: BatchRuns, span: OffsetSpan, max_bytes: int) -> list[tuple[Range, OffsetSpan]]:
    """Return the batches that end in a span, from its first one on, and the offsets of each range.
    A batch may begin before the span."""
    taken: list[tuple[Range, OffsetSpan]] = []
    left = max_bytes
    for run in runs.from_offset(span.start):
        if run.first_offset >= span.end or (taken and left <= 0):
            break
        if run.is_old:
            left = min(left, _MOST_CONVERTED_BYTES)
            for batch, offsets in converted_batches(run, span):
                if taken and batch.size > left:
                    return taken
                taken.append((batch, offsets))
                left -= batch.size
            continue
        is_whole = run.first_offset >= span.start and run.last_offset < span.end
        if is_whole and run.end - run.position <= left:
            part = FileRange(run.path, run.position, run.end)
            offsets = OffsetSpan(run.first_offset, run.last_offset + 1)
        elif is_whole and taken:
            # The next fetch goes on at the start of a run.
            break
        else:
            cut = _cut(run, span, left, is_first=not taken)
            if cut is None:
                continue
            part, offsets = cut
        taken.append((part, offsets))
        left -= part.size
        if part.end < run.end:
            break
    return taken


def _cut(
    run: Run, span: OffsetSpan, max_bytes: int, *, is_first: bool
) -> tuple[FileRange, OffsetSpan] | None:
    """Return the batches of a run that end in a span, as many as fit, one at least if it is the
    first of a response; None if there is none."""
    start = end = -1
    first = last = 0
    with InputFile(run.path) as file:
        for frame in run.frames(file, span):
            if start < 0:
                start, first = frame.position, frame.header.base_offset
            if frame.end - start > max_bytes and not (is_first and end < 0):
                break
            end, last = frame.end, frame.header.last_offset
    if end < 0:
        return None
    return FileRange(run.path, start, end), OffsetSpan(min(first, last), last + 1)
