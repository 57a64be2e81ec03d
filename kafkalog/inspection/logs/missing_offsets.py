"""Which offsets of a log have no record: what the cleaner has removed, or is hidden by damage.

Rules: docs/format.md F328 and F1425.
"""

from __future__ import annotations

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.inspection.logs.log_headers import LogHeaders
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.relisted_logs import read_relisted


class MissingOffsets:
    """Takes the batches of a log in their order, and finds the last missing offset: `end` is the
    next one, 0 if none is missing. `log_end` is where the batches so far end, and at first where
    the log is to begin; `hidden_until` is the offset below which compressed messages of the old
    formats count as lacking some, for they do not say how many they are."""

    def __init__(self, hidden_until: int, log_start: int = 0) -> None:
        self._hidden_until = hidden_until
        self.log_end = log_start
        self.end = 0

    def take(self, batches: LongArray) -> BoolArray:
        """Return which of the next batches are sound and have all their records."""
        is_whole: BoolArray = (batches[:, column.FAULT] == 0) & ~self._is_short(batches)
        if not len(batches):
            return is_whole
        expected = batches[:, column.EXPECTED_OFFSET].copy()
        expected[0] = self.log_end
        first, last = first_offsets(batches), batches[:, column.LAST_OFFSET]
        lost_before = first[is_whole & (first > expected)]
        lost_inside = np.maximum(last, expected)[~is_whole] + 1
        self.end = max(self.end, *lost_before[-1:].tolist(), *lost_inside[-1:].tolist(), 0)
        ends = last[batches[:, column.FAULT] == 0]
        self.log_end = int(ends[-1]) + 1 if len(ends) else self.log_end
        return is_whole

    def take_sound(self, batches: LongArray) -> None:
        """Take the next batches without damaged ones, which hide offsets only if others follow."""
        sound = batches[batches[:, column.FAULT] == 0]
        sound[1:, column.EXPECTED_OFFSET] = sound[:-1, column.LAST_OFFSET] + 1
        self.take(sound)

    def _is_short(self, batches: LongArray) -> BoolArray:
        """Return which batches have lost a record."""
        last, counts = batches[:, column.LAST_OFFSET], batches[:, column.RECORDS_COUNT]
        span = last - first_offsets(batches) + 1
        is_hidden = counts < 0
        lost: BoolArray = (is_hidden & (last < self._hidden_until)) | (
            ~is_hidden & (counts != span)
        )
        return lost


def cleaned_up_to(log: PartitionLog) -> int:
    """Return the offset below which the cleaner may have removed records, 0 for none: that of the
    checkpoint. Where the log directory has none, all headers are read: if an offset is missing, it
    is where the last segment begins, which the cleaner leaves alone, or after the last missing one.
    Rule: F1425. Raises OSError."""
    key = log.topic_partition
    if log.log_dir.has_cleaner_checkpoint or not log.segments:
        return 0 if key is None else log.log_dir.cleaner_checkpoints.get(key, 0)
    return read_relisted(log, _by_missing_offsets) or 0


def was_cleaned(log: PartitionLog) -> bool:
    """Return whether the cleaner has been in a log, by its checkpoint or, in a log directory
    without one, by missing offsets. F1425"""
    if log.log_dir.has_cleaner_checkpoint:
        return log.is_compacted
    return cleaned_up_to(log) > 0


def _by_missing_offsets(log: PartitionLog) -> int:
    found = MissingOffsets(LARGEST_OFFSET, log_bounds(log, EndRule.LOG_END).start_offset)
    for headers in LogHeaders(log).tables(range(len(log.segments))):
        found.take_sound(headers.table)
    if not found.end or not log.segments:
        return 0
    return max(found.end, log.segments[-1].base_offset or 0)
