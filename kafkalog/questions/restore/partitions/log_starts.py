"""Where a log began at the moment: clients delete records from its beginning. Rules:
docs/restore.md F1204 and F1205.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from kafkalog.columns.batches import batch_table as column
from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.leader_epochs import EpochStart, by_batches
from kafkalog.inspection.logs.carried_epochs import carried_epochs
from kafkalog.inspection.logs.replica_facts import leader_epochs, sound_rows
from kafkalog.storage.files.files import modified_ms
from kafkalog.storage.names import LOG_STARTS
from kafkalog.storage.partition_log import LEADER_EPOCHS, PARTITION_METADATA, PartitionLog

# Archives keep times in whole seconds, rounded down.
_SECOND_MS = 1000
# A batch is appended so long after the time that its producer gave it.
_APPENDED_MS = 2 * _SECOND_MS


@dataclass(frozen=True, slots=True)
class LogStart:
    """Where a log began at the moment. `copied` is where it begins in the copies, if records before
    that were deleted by a client: `deleted_ms` is the time of that, None where nothing says it."""

    offset: int
    copied: int | None = None
    deleted_ms: int | None = None


def log_start_at(logs: Sequence[PartitionLog], number: int, start: int, as_of_ms: int) -> LogStart:
    """Return where a log began; `start` is where the copy `number` begins by its checkpoint. Raises
    OSError."""
    copies = [_CopiedStart(log, as_of_ms) for log in logs]
    copied = max(start, copies[number].by_epochs)
    first = copies[number].first
    if first is None or copied <= first:
        return LogStart(copied)
    signs = [offset for copy in copies for offset, ms in copy.signs if ms <= as_of_ms]
    known = max([first, *(offset for offset in signs if offset <= copied)])
    if known == copied:
        return LogStart(copied)
    times = [copy.deleted_ms for copy in copies if copy.is_begun_at(copied)]
    deleted = [ms for ms in times if ms is not None]
    if not deleted:
        return LogStart(copied, copied)
    return LogStart(known, copied, min(deleted))


class _CopiedStart:
    """What one copy says of the beginning of its log. Times of files count if the copy has kept
    them: `partition.metadata` is written when the partition is made, before the moment, and the
    leader epochs not before the last of them begins."""

    def __init__(self, log: PartitionLog, as_of_ms: int) -> None:
        self._log = log
        self._as_of_ms = as_of_ms
        self.first = (log.segments[0].base_offset or 0) if log.segments else None

    @cached_property
    def _epochs(self) -> Sequence[EpochStart]:
        return leader_epochs(self._log)

    @cached_property
    def _begun_ms(self) -> int | None:
        """The time of the first batch of the last epoch, None where none can be read."""
        return _first_ms(self._log, self._epochs[-1].start_offset) if self._epochs else None

    @cached_property
    def _epochs_ms(self) -> int | None:
        made_ms = _time_of(os.path.join(self._log.path, PARTITION_METADATA))
        found_ms = _time_of(os.path.join(self._log.path, LEADER_EPOCHS))
        if made_ms is None or found_ms is None or self._begun_ms is None:
            return None
        is_kept = made_ms <= self._as_of_ms and self._begun_ms <= found_ms + _APPENDED_MS
        return found_ms if is_kept else None

    @cached_property
    def _checkpoint_ms(self) -> int | None:
        if self._epochs_ms is None or not self._log.is_live:
            return None
        return _time_of(os.path.join(self._log.log_dir.path, LOG_STARTS))

    @property
    def by_epochs(self) -> int:
        """Where the log begins by the file of its leader epochs, which a broker writes at once when
        records are deleted, the checkpoint a minute later; 0 where this is not known."""
        if self._epochs_ms is None:
            return 0
        is_newer = self._checkpoint_ms is None or self._epochs_ms > self._checkpoint_ms
        return self._epochs[0].start_offset if is_newer else 0

    def is_begun_at(self, offset: int) -> bool:
        """Return whether the leader epochs begin at an offset."""
        return bool(self._epochs) and self._epochs[0].start_offset == offset

    @property
    def signs(self) -> Iterator[tuple[int, int]]:
        """Yield offsets at which the log began, and the times at which it did already."""
        if self._epochs_ms is not None:
            yield self._epochs[0].start_offset, self._epochs_ms
        if self._checkpoint_ms is not None and self._log.log_start:
            yield self._log.log_start, self._checkpoint_ms

    @property
    def deleted_ms(self) -> int | None:
        """When the leader epochs were last written, if that was because the log lost its beginning:
        the last of them had begun before. None where this is not known."""
        if self._epochs_ms is None or self._begun_ms is None:
            return None
        is_alone = len(self._epochs) == 1
        is_later = self._begun_ms + _APPENDED_MS <= self._epochs_ms
        return self._epochs_ms if is_alone or is_later else None


def _time_of(path: str) -> int | None:
    """Return the time at which a file was written last at the latest, None where there is none."""
    try:
        ms = modified_ms(path)
    except FileNotFoundError:
        return None
    return ms if ms % _SECOND_MS else ms + _SECOND_MS - 1


def _first_ms(log: PartitionLog, offset: int) -> int | None:
    """Return the time of the first batch from an offset on, None where it is not readable."""
    for segment in reversed(log.segments):
        if (segment.base_offset or 0) > offset:
            continue
        try:
            for table in sound_rows(segment):
                rows = table[
                    (table[:, column.FAULT] == 0) & (table[:, column.LAST_OFFSET] >= offset)
                ]
                if len(rows):
                    return int(rows[0, column.MAX_TIMESTAMP])
        except CorruptDataError:
            return None
        return None
    return None


def epochs_with_beginning(log: PartitionLog) -> list[EpochStart]:
    """Return the leader epochs of a log with those of the records that a client has deleted."""
    return by_batches(leader_epochs(log), carried_epochs(log))
