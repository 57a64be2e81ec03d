"""How far a copy of logs reaches in time, for those who ask about times before now.

Rule: docs/command-line.md F1352.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalog.inspection.partitions.retention_plan import batch_totals
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.words import time_text

_HOUR_MS = 3_600_000


def newest_time_ms(logs: Iterable[PartitionLog], now_ms: int) -> int | None:
    """Return the largest timestamp in the last segment with bytes of each log, by the headers of
    its batches; None without one. Segments with times after now are left out: their clocks were
    wrong."""
    newest = -1
    for log in logs:
        written = [segment for segment in log.segments if segment.size]
        if written:
            latest_ms = batch_totals(log, written[-1]).latest_ms
            newest = max(newest, latest_ms if latest_ms <= now_ms else -1)
    return None if newest < 0 else newest


def nothing_words(newest_ms: int) -> str:
    """Return that a period has nothing, and where the end of the copy is."""
    return (
        f"nothing in this period: the newest record is of {time_text(newest_ms)}; the hour before "
        f"it: --from-time {time_text(newest_ms - _HOUR_MS)}"
    )


def old_copy_words(times_ms: Iterable[int | None], topic: str, now_ms: int) -> str | None:
    """Return that ages count to now, if the newest record of a topic is older than an hour; None
    otherwise. `times_ms` are those of records that were read; a later time than now is left out."""
    newest_ms = max((each for each in times_ms if each and each <= now_ms), default=None)
    if newest_ms is None or now_ms - newest_ms <= _HOUR_MS:
        return None
    return (
        f"times count to now, and the newest record of {topic} is of {time_text(newest_ms)}: for "
        f"the end of a copy of then, give --as-of {time_text(newest_ms)}"
    )
