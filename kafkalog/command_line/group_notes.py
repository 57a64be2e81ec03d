"""What `kafkalog groups` says on stderr beside its tables: what these do not tell."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

from kafkalog.columns.commit_reach import commit_reaches, reach_words
from kafkalog.command_line.group_sources import CompleteLog, known_from_ms
from kafkalog.command_line.lag_rows import LagRow
from kafkalog.command_line.terminal import tell
from kafkalog.coordination.group_records import GroupKey, TopicPartition
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.words import counted, time_text

# Parts of a lag that are neither read here nor passed over by consumers.
_UNREAD_PARTS = {
    "damaged": "damage hides {offsets} of {partition} from {groups}: `kafkalog check` tells where",
    "in_tiered_storage": "{offsets} of {partition} that {groups} have yet to read are in tiered "
    "storage, which is not read here",
}
_MOST_SHOWN = 5


def tell_reach(complete: Sequence[CompleteLog], as_of: int | None) -> None:
    """From when on all commits are known, where a past moment is asked for; and what hides some."""
    for reach in commit_reaches(complete):
        if reach.damaged_ranges or reach.missing or as_of is not None:
            tell(reach_words([reach], as_of))
    if as_of is not None and as_of > time.time_ns() // 1_000_000:
        tell(
            f"{time_text(as_of)} is in the future: told is what is there now, with ages as of then"
        )


def tell_nothing_known(logs: Sequence[PartitionLog], as_of: int | None) -> None:
    """Why no group is there."""
    first_ms = known_from_ms(logs)
    if first_ms is None:
        tell(f"no consumer group is known: {CONSUMER_OFFSETS} has no record")
    elif as_of is not None and as_of < first_ms:
        tell(
            f"nothing is known of {time_text(as_of)}: the first record of {CONSUMER_OFFSETS} is of "
            f"{time_text(first_ms)}"
        )
    else:
        tell(f"no consumer group is known: {CONSUMER_OFFSETS} has no commit and no group in force")


def tell_unread(rows: Sequence[LagRow]) -> None:
    """Which offsets before the end of a log nobody can tell to be records or not."""
    for part, words in _UNREAD_PARTS.items():
        groups: dict[TopicPartition, set[GroupKey]] = defaultdict(set)
        offsets: dict[TopicPartition, int] = defaultdict(int)
        for row in rows:
            if row.is_counted and row.account[part]:
                key = row.topic, row.partition
                groups[key].add(row.group)
                offsets[key] = max(offsets[key], row.account[part])
        lines = (
            words.format(
                offsets=counted(offsets[topic, partition], "offset"),
                partition=f"{topic}-{partition}",
                groups=counted(len(groups[topic, partition]), "group"),
            )
            for topic, partition in sorted(offsets)
        )
        _tell_some(lines, "partition")


def tell_uncounted(rows: Sequence[LagRow]) -> None:
    """What the lag of the rows leaves out, or counts although it expired."""
    committed = [row for row in rows if row.committed_offset is not None]
    unknown = sum(row.account["lag"] is None for row in committed)
    stale = sum(not row.is_counted for row in committed) - unknown
    expired = sum(row.status == "expired" for row in committed)
    if unknown:
        tell(
            f"lag not known of {counted(unknown, 'commit')}: the logs of their partitions, or what "
            "they were then, are not there; give the log directories of all brokers"
        )
    if stale:
        tell(f"{counted(stale, 'stale commit')} not counted as behind: --verbose says why")
    if expired:
        tell(
            f"{counted(expired, 'commit')} expired since, and counted all the same: of a copy made "
            "earlier give --as-of the time of the copy"
        )


def _tell_some(lines: Iterable[str], noun: str) -> None:
    """The first of the lines, and how many more there are."""
    told = list(lines)
    for line in told[:_MOST_SHOWN]:
        tell(line)
    if len(told) > _MOST_SHOWN:
        tell(f"the same of {counted(len(told) - _MOST_SHOWN, noun)} more")
