"""Where consumers continue that do not continue at their commit, because its leader epoch ended
before it: what they read again. Rules: docs/format.md F794 and F943.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import Numbers, of_values
from kafkalog.inspection.lag.lag_columns import with_accounts
from kafkalog.inspection.logs.replica_facts import leader_epochs
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.recovery.truncation import ReplicaLog, resumed_offset
from kafkalog.words import counted

_ASKED = ("committed_offset", "leader_epoch", "log_start_offset", "high_watermark")
RESUMES_AT, RECORDS_AGAIN = RESUME_COLUMNS = ("resumes_at", "records_again")


def with_resumes(
    rows: pa.Table, log: PartitionLog | None, *, read_committed: bool, now_ms: int
) -> pa.Table:
    """Return rows about one partition with RESUME_COLUMNS, null where a consumer continues at its
    commit; rows have the account of `with_accounts` as of now, `committed_offset` and, where the
    commit has one, its `leader_epoch`. Without a log, as at a past time, whose epochs are not
    known, all are null. Raises OSError.
    """
    resumed = [None] * len(rows) if log is None else _resumed(rows, log)
    numbers = [number for number, offset in enumerate(resumed) if offset is not None]
    again: list[int | None] = [None] * len(rows)
    if numbers:
        offsets = of_values([resumed[number] for number in numbers], pa.int64())
        asked = pa.table({"committed_offset": offsets})
        found = with_accounts(asked, log, read_committed=read_committed, now_ms=now_ms)
        before = rows["readable_records"].take(of_values(numbers, pa.int64()))
        records = pc.subtract(found["readable_records"], before).to_pylist()
        for number, count in zip(numbers, records, strict=True):
            again[number] = count
    rows = rows.append_column(RESUMES_AT, of_values(resumed, pa.int64()))
    return rows.append_column(RECORDS_AGAIN, of_values(again, pa.int64()))


def _resumed(rows: pa.Table, log: PartitionLog) -> list[int | None]:
    """Return the offset at which each consumer continues, None for the committed one."""
    found: list[int | None] = [None] * len(rows)
    committed, own_epoch, starts, ends = (Numbers.of(rows[name]) for name in _ASKED)
    # A log that was deleted meanwhile has no bounds.
    is_asked = committed.is_set & own_epoch.is_set & starts.is_set & ends.is_set
    epochs = leader_epochs(log) if is_asked.any() else ()
    if not epochs:
        return found
    # The log's, and so the same in all rows.
    start, end = (int(each.values[is_asked][0]) for each in (starts, ends))
    leader = ReplicaLog(start, end, epochs)
    for epoch in np.unique(own_epoch.values[is_asked]).tolist():
        own = np.flatnonzero(is_asked & (own_epoch.values == epoch))
        offsets = committed.values[own]
        highest = int(offsets.max())
        # Where a consumer continues at an offset, it does at all that are lower.
        if resumed_offset(leader, highest, epoch) == highest:
            continue
        for number, offset in zip(own.tolist(), offsets.tolist(), strict=True):
            resumed = resumed_offset(leader, offset, epoch)
            found[number] = None if resumed == offset else resumed
    return found


def again_words(places: int) -> str:
    """Return a sentence about so many commits at which Java's consumers do not continue."""
    commits = "1 commit is" if places == 1 else f"{places:,} commits are"
    return (
        f"{commits} beyond the end of the leader epoch: Java's consumers continue at that end "
        "(resumes_at) and get what is after it again (records_again); librdkafka's that are given "
        "their partitions by assign continue at the commit"
    )


def ahead_words(places: int) -> str:
    """Return a sentence about so many partitions in which a group is ahead of the log."""
    return (
        f"in {counted(places, 'partition')} the group is ahead of the log that is here, and LAG is "
        "below 0: the copy of the log was taken before that of the group, or the log was truncated"
    )
