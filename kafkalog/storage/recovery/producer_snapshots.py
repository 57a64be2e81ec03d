"""The producer snapshots of a partition while a broker loads it: which are read, taken, removed.

Rules: docs/format.md F119 and F120.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.side_files.producer_snapshot import ProducerEntry, read_producer_snapshot
from kafkalog.storage.files.files import read_bytes
from kafkalog.storage.recovery.framing import LATEST_FORMAT, Frame, Readable
from kafkalog.storage.recovery.loaded_segment import LoadedSegment
from kafkalog.storage.recovery.producer_state import (
    BrokerStartError,
    ProducerState,
    refuse_unreadable,
)
from kafkalog.storage.recovery.segment_recovery import add_to_producers

DAY_MS = 24 * 60 * 60 * 1000


@dataclass(slots=True)
class SnapshotFiles:
    """The snapshots that there are: by offset, the file's path or the entries of one that the
    broker has taken itself."""

    contents: dict[int, str | list[ProducerEntry]]
    removed: set[int] = field(default_factory=set)
    taken: set[int] = field(default_factory=set)

    def remove(self, offset: int) -> None:
        """Forget a snapshot, if it is there."""
        if self.contents.pop(offset, None) is not None:
            self.removed.add(offset)
            self.taken.discard(offset)

    def take(self, offset: int, entries: list[ProducerEntry]) -> None:
        """A snapshot is written, over another of the same offset if need be."""
        self.contents[offset] = entries
        self.removed.discard(offset)
        self.taken.add(offset)

    def read(self, offset: int) -> list[ProducerEntry]:
        """Return the entries. Raises CorruptDataError."""
        content = self.contents[offset]
        return read_producer_snapshot(read_bytes(content)) if isinstance(content, str) else content

    def remove_strays(self, base_offsets: Sequence[int]) -> None:
        """Remove those that belong to no segment, but for one after them all: that is what a
        clean shutdown leaves."""
        strays = sorted(self.contents.keys() - set(base_offsets))
        if strays and strays[-1] >= max(base_offsets, default=NO_VALUE):
            strays.pop()
        for offset in strays:
            self.remove(offset)


class ProducerStateLoader:
    """Builds the producers of a partition from its snapshots and batches."""

    def __init__(self, files: SnapshotFiles, *, now_ms: int, expiration_ms: int) -> None:
        self._files = files
        self._now_ms = now_ms
        self._expiration_ms = expiration_ms
        self.state = ProducerState()
        self.end_offset = 0
        self._snapshot_offset = 0

    def rebuild(
        self,
        segments: Sequence[LoadedSegment],
        log_start: int,
        end_offset: int,
        *,
        is_clean_shutdown: bool,
    ) -> None:
        """The state at `end_offset`, from the newest sound snapshot on. Takes others on the way."""
        bases = [segment.base_offset for segment in segments]
        to_take = {*bases[-2:], end_offset}
        if not self._files.contents and is_clean_shutdown:
            for offset in sorted(to_take):
                self.end_offset = offset
                self.take_snapshot()
            return
        was_empty = not self.state.producers and self.end_offset >= end_offset
        self._reload(log_start, end_offset)
        if end_offset > self.end_offset and not was_empty:
            last = _floor(segments, end_offset)
            for segment in _between(segments, self.end_offset, end_offset):
                start = max(segment.base_offset, self.end_offset, log_start)
                self.end_offset = start
                if segment.base_offset in to_take:
                    self.take_snapshot()
                end = segment.position_of(end_offset) if segment is last else None
                with segment.opened() as file:
                    for frame in segment.frames_from(start, end):
                        if frame.header.magic >= LATEST_FORMAT:
                            self._add(segment, file, frame)
        self.end_offset = end_offset
        self.take_snapshot()

    def _add(self, segment: LoadedSegment, file: Readable, frame: Frame) -> None:
        # Only recovery stops at a control batch that cannot be read; here a broker does not go on.
        try:
            add_to_producers(file, frame, self.state)
        except CorruptDataError as error:
            raise BrokerStartError(
                f"{segment.path}: position {frame.position}: {error.detail}"
            ) from error

    def take_snapshot(self) -> None:
        """Take one at the end offset, if that is new."""
        if self.end_offset > self._snapshot_offset:
            self._files.take(self.end_offset, list(self.state.producers.values()))
            self._snapshot_offset = self.end_offset

    def _reload(self, log_start: int, end_offset: int) -> None:
        for offset in list(self._files.contents):
            if offset > end_offset or offset <= log_start:
                self._files.remove(offset)
        if end_offset == self.end_offset:
            self.end_offset = max(self.end_offset, log_start)
            self._snapshot_offset = max(self._files.contents, default=log_start)
            return
        self.state = ProducerState()
        self.end_offset = self._snapshot_offset = log_start
        for offset in sorted(self._files.contents, reverse=True):
            try:
                entries = self._files.read(offset)
            except CorruptDataError as error:
                refuse_unreadable(error)
                self._files.remove(offset)
                continue
            self.state = ProducerState(entry for entry in entries if not self._is_expired(entry))
            self.end_offset = self._snapshot_offset = offset
            return

    def _is_expired(self, entry: ProducerEntry) -> bool:
        is_idle = self._now_ms - entry.timestamp_ms >= self._expiration_ms
        return is_idle and entry.transaction_first_offset == NO_VALUE


def _between(segments: Sequence[LoadedSegment], start: int, end: int) -> Iterable[LoadedSegment]:
    """Return the segments that can hold offsets [start, end)."""
    first = _floor(segments, start)
    least = start if first is None else first.base_offset
    return [segment for segment in segments if least <= segment.base_offset < end]


def _floor(segments: Sequence[LoadedSegment], offset: int) -> LoadedSegment | None:
    """Return the segment that begins at or before `offset`."""
    before = [segment for segment in segments if segment.base_offset <= offset]
    return before[-1] if before else None
