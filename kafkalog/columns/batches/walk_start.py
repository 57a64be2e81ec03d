"""Whether the walk through a segment may begin where an index says."""

from __future__ import annotations

from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import Window, WindowBytes
from kafkalog.format.batch_header import BatchHeader
from kafkalog.format.offsets import Bounds, offset_bounds
from kafkalog.format.resync import Finder


def may_begin_at(window: Window, options: SegmentOptions) -> BatchHeader | None:
    """The header of the batch at `start_position`, if a walk that begins there finds what one from
    the start of the file would: a sound batch that begins below the first asked offset, and behind
    it one that follows, so that no offset is left in doubt. Rule: docs/options.md F500."""
    position = options.start_position
    finder = Finder(WindowBytes(window))
    bounds = offset_bounds(options.base_offset, options.next_base_offset)
    first = finder.sound(position, bounds) if 0 < position < window.size else None
    if first is None or first.base_offset >= options.first_offset:
        return None
    if first.size > options.max_batch_bytes:
        return None
    follower = position + first.size
    behind = Bounds(first.last_offset + 1, bounds.limit)
    follows = follower == window.size or finder.sound(follower, behind) is not None
    return first if follows else None
