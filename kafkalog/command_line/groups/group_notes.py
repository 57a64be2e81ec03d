"""What `kafkalog groups` says on stderr beside its tables: what these do not tell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

from kafkalog.command_line.groups.group_sources import IN_ZOOKEEPER, CompleteLog, known_from_ms
from kafkalog.command_line.groups.lag_rows import LagRow
from kafkalog.command_line.terminal import tell
from kafkalog.coordination.groups.group_records import GroupKey, TopicPartition
from kafkalog.inspection.groups.commit_reach import commit_reaches, expired_words, reach_words
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
_CREATE_TIME = 0
# What tells where a log ended then, where no broker's clock does: F312.
_BY_PRODUCERS = ("create_time", "consumed")


def tell_reach(complete: Sequence[CompleteLog], as_of: int | None, now_ms: int) -> None:
    """From when on all commits are known, where a past moment is asked for; and what hides some."""
    for reach in commit_reaches(complete):
        if reach.damaged_ranges or reach.missing or as_of is not None:
            tell(reach_words([reach], as_of))
    if as_of is not None and as_of > now_ms:
        tell(
            f"{time_text(as_of)} is in the future: told is what is there now, with ages as of then"
        )


def tell_nothing_known(
    logs: Sequence[PartitionLog], complete: Sequence[CompleteLog], as_of: int | None
) -> None:
    """Say why no group is there; `complete` is from when on the logs have all commits."""
    first_ms = known_from_ms(logs)
    if first_ms is None:
        tell(f"no consumer group is known: {CONSUMER_OFFSETS} has no record")
    elif as_of is not None and as_of < first_ms:
        has_all = not any(
            reach.damaged_ranges or reach.missing or reach.complete_from_ms is not None
            for reach in commit_reaches(complete)
        )
        what = "there was no group yet at" if has_all else "nothing is known of"
        tell(
            f"{what} {time_text(as_of)}: the first record of {CONSUMER_OFFSETS} is of "
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


def tell_unknown(
    rows: Sequence[LagRow], deleted_topics: Callable[[], Collection[str]], as_of: int | None
) -> None:
    """Of which commits no lag is known, and why. `deleted_topics` are asked for only where there
    are such."""
    committed = [row for row in rows if row.committed_offset is not None]
    unknown = [row for row in committed if row.account["lag"] is None]
    gone = deleted_topics() if unknown else ()
    by_reason: dict[str, list[str]] = defaultdict(list)
    for row in unknown:
        if row.account["log_start_offset"] is not None:
            reason = f"the log begins later than {time_text(as_of)}"
        elif row.topic in gone:
            reason = "the topic was deleted since"
        else:
            reason = "no log of it is there: give the log directories of all brokers"
        place = f"{row.group.group_id} in {row.topic}-{row.partition}"
        by_reason[reason].append(f"lag not known of {place}: {reason}")
    for lines in by_reason.values():
        _tell_some(lines, "commit")


def tell_uncounted(rows: Sequence[LagRow]) -> None:
    """Which commits are left out as stale, and which expired but count."""
    committed = [row for row in rows if row.committed_offset is not None]
    known = [row for row in committed if row.account["lag"] is not None]
    stale = [row.status for row in known if not row.is_counted]
    expired = sum(row.status == "expired" for row in known)
    if stale:
        why = ", ".join(f"{count:,} {status}" for status, count in sorted(Counter(stale).items()))
        tell(f"{counted(len(stale), 'stale commit')} not counted as behind: {why}")
    if expired:
        tell(expired_words(expired))


def tell_clocks(rows: Sequence[LagRow], as_of: int | None) -> None:
    """Which times in the rows are only as right as the clocks of producers."""
    left = [row for row in rows if row.is_behind and row.behind_since_ms is not None]
    ahead = sorted({f"{row.topic}-{row.partition}" for row in left if row.is_ahead_of_time})
    by_producers = sum(row.account["timestamp_type"] == _CREATE_TIME for row in left)
    if by_producers:
        tell(
            f"since when and how long is by timestamps of producers in {by_producers:,} of "
            f"{counted(len(left), 'partition')} behind (message.timestamp.type=CreateTime)"
        )
    if ahead:
        more = ", …" if len(ahead) > _MOST_SHOWN else ""
        tell(
            f"the next records of {', '.join(ahead[:_MOST_SHOWN])}{more} have timestamps in the "
            "future: wrong clocks of producers, or no clock's time; since when is not known there"
        )
    sampled = sum(row.account["high_watermark_from"] in _BY_PRODUCERS for row in rows)
    if sampled and as_of is not None:
        tell(
            f"where the log ended at {time_text(as_of)} is by timestamps of producers in "
            f"{counted(sampled, 'row')}: see high_watermark_from in docs/lag.md"
        )


def _tell_some(lines: Iterable[str], noun: str) -> None:
    """The first of the lines, and how many more there are."""
    told = list(lines)
    for line in told[:_MOST_SHOWN]:
        tell(line)
    if len(told) > _MOST_SHOWN:
        tell(f"the same of {counted(len(told) - _MOST_SHOWN, noun)} more")


def tell_of_zookeeper(logs: Sequence[PartitionLog]) -> None:
    """Say where more groups may be, if brokers have no cluster id, as before 0.10.1: most consumers
    of their time commit to ZooKeeper."""
    if any(log.log_dir.cluster_id is None for log in logs):
        tell(IN_ZOOKEEPER)
