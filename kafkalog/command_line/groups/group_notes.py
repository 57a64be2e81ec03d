"""Notes of `kafkalog groups` on stderr: what its tables cannot show."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

from kafkalog.command_line.terminal import print_note
from kafkalog.coordination.groups.group_records import GroupKey, GroupPartition
from kafkalog.inspection.groups.commit_reach import expired_words, reach_words
from kafkalog.inspection.groups.complete_from import first_timestamp_ms
from kafkalog.inspection.lag.resumed_commits import (
    RECORDS_AGAIN,
    RESUMES_AT,
    again_words,
    ahead_words,
)
from kafkalog.inspection.logs.missing_records import missing_words
from kafkalog.inspection.logs.past_copies import copy_words
from kafkalog.questions.groups.group_parts import IN_ZOOKEEPER
from kafkalog.questions.groups.lag import ConsumerLag
from kafkalog.questions.groups.lag_row import LagRow
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.words import counted, time_text

# Parts of a lag that this command does not read although consumers do not skip them.
_UNREAD_PARTS = {
    "damaged": "damage hides {offsets} of {partition} from {groups}: `kafkalog check` shows where",
    "in_tiered_storage": "{offsets} of {partition} that {groups} have not yet read are in "
    "tiered storage, which this command does not read",
}
_MOST_SHOWN = 5
_CREATE_TIME = 0
# Sources of the log end at a past time other than a broker's clock: F312.
_BY_PRODUCERS = ("create_time", "consumed")


def note_reach(lag: ConsumerLag, as_of: int | None, now_ms: int) -> None:
    """Note from when on all commits are known, at a past time, and what hides some."""
    for reach in lag.reaches:
        if not reach.is_whole or as_of is not None:
            print_note(reach_words([reach], as_of))
    for line in copy_words(lag.rows.past_copies):
        print_note(line)
    of_shares = [each for each in lag.missing if each.topic == SHARE_GROUP_STATE]
    if of_shares:
        print_note(
            f"share groups: {missing_words(of_shares)}: where share groups are is not known, or "
            "older than shown"
        )
    if as_of is not None and as_of > now_ms:
        print_note(
            f"{time_text(as_of)} is in the future: the table shows the state now, and ages as of "
            "then"
        )


def note_nothing_known(lag: ConsumerLag, logs: Sequence[PartitionLog], as_of: int | None) -> None:
    """Note why there is no group."""
    first_ms = known_from_ms(logs)
    has_all = all(reach.is_whole for reach in lag.reaches)
    left = "" if has_all else "what is here of "
    if first_ms is None:
        print_note(f"no consumer group is known: {left}{CONSUMER_OFFSETS} has no record")
    elif as_of is not None and as_of < first_ms:
        has_all = has_all and not any(reach.complete_from_ms for reach in lag.reaches)
        what = "there was no group yet at" if has_all else "nothing is known of"
        print_note(
            f"{what} {time_text(as_of)}: the first record of {left}{CONSUMER_OFFSETS} is of "
            f"{time_text(first_ms)}"
        )
    else:
        found = "no commit and no group in force"
        print_note(f"no consumer group is known: {left}{CONSUMER_OFFSETS} has {found}")


def known_from_ms(logs: Sequence[PartitionLog]) -> int | None:
    """Return the time of the first record of `__consumer_offsets`, None if it has none."""
    offsets_logs = [log for log in logs if log.topic == CONSUMER_OFFSETS and log.is_live]
    times = (first_timestamp_ms(log) for log in offsets_logs)
    return min((time for time in times if time is not None), default=None)


def note_unread(rows: Sequence[LagRow]) -> None:
    """Note offsets before the end of a log that may or may not be records."""
    for part, words in _UNREAD_PARTS.items():
        groups: dict[GroupPartition, set[GroupKey]] = defaultdict(set)
        offsets: dict[GroupPartition, int] = defaultdict(int)
        for row in rows:
            if row.is_counted and row[part]:
                groups[row.place].add(row.group)
                offsets[row.place] = max(offsets[row.place], row[part])
        lines = (
            words.format(
                offsets=counted(offsets[topic, partition], "offset"),
                partition=f"{topic}-{partition}",
                groups=counted(len(groups[topic, partition]), "group"),
            )
            for topic, partition in sorted(offsets)
        )
        _note_some(lines, "partition")


def note_unknown(
    rows: Sequence[LagRow], deleted_topics: Callable[[], Collection[str]], as_of: int | None
) -> None:
    """Note commits whose lag is unknown, and why. `deleted_topics` is called only if there are
    any."""
    committed = [row for row in rows if row["committed_offset"] is not None]
    unknown = [row for row in committed if row["lag"] is None]
    deleted = deleted_topics() if unknown else ()
    by_reason: dict[str, list[str]] = defaultdict(list)
    for row in unknown:
        if row["log_start_offset"] is not None:
            reason = f"the log begins later than {time_text(as_of)}"
        elif row["topic"] in deleted:
            reason = "the topic has been deleted since"
        else:
            reason = "there is no log of it: give the log directories of all brokers"
        place = f"{row.group.group_id} in {_named(row)}"
        by_reason[reason].append(f"lag unknown for {place}: {reason}")
    for lines in by_reason.values():
        _note_some(lines, "commit")


def note_uncounted(rows: Sequence[LagRow]) -> None:
    """Note commits that do not count, and expired ones that count."""
    committed = [row for row in rows if row["committed_offset"] is not None]
    known = [row for row in committed if row["lag"] is not None]
    stale = [row["commit_status"] for row in known if not row.is_counted]
    expired = sum(row["commit_status"] == "expired" for row in known)
    if stale:
        why = ", ".join(f"{count:,} {status}" for status, count in sorted(Counter(stale).items()))
        print_note(f"not counted as lagging: {counted(len(stale), 'commit')}, {why}")
    if expired:
        print_note(expired_words(expired))


def note_resumed(rows: Sequence[LagRow]) -> None:
    """Note commits at which Java's consumers do not continue."""
    resumed = [row for row in rows if row.is_counted and row[RESUMES_AT] is not None]
    if resumed:
        print_note(again_words(len(resumed)))
    _note_some(
        (
            f"{row.group.group_id} continues {_named(row)} at {row[RESUMES_AT]}, not "
            f"at {row['committed_offset']}: {_again(row[RECORDS_AGAIN])}"
            for row in resumed
        ),
        "commit",
    )


def note_ahead(rows: Sequence[LagRow]) -> None:
    """Note where groups are ahead of the logs."""
    ahead = [row for row in rows if row["ahead_of_log"]]
    if ahead:
        print_note(ahead_words(len(ahead)))
    _note_some(
        (
            f"{row.group.group_id} in {_named(row)}: {counted(row['ahead_of_log'], 'offset')} "
            f"ahead: {_reached(row)}, and the log ends at {row['high_watermark']}"
            for row in ahead
        ),
        "partition",
    )


def _reached(row: LagRow) -> str:
    """Return how far a group is ahead of the log. F780"""
    begin = row["committed_offset"]
    if row["group_type"] != "share":
        return f"its commit is {begin}"
    complete = row["high_watermark"] - begin - row["lag"]
    return f"it needs no delivery of {counted(complete, 'offset')} from {begin} on"


def _named(row: LagRow) -> str:
    return f"{row['topic']}-{row['partition']}"


def _again(records: int | None) -> str:
    if records is None:
        return "how many records come again is not known"
    verb = "come again" if records >= 0 else "are skipped"
    return f"{counted(abs(records), 'record')} {verb}"


def note_clocks(rows: Sequence[LagRow], as_of: int | None) -> None:
    """Note which times in the rows depend on the clocks of producers."""
    left = [row for row in rows if row.is_lagging and row["next_timestamp_ms"] is not None]
    ahead = sorted({f"{_named(row)}" for row in left if row.is_ahead_of_time})
    by_producers = sum(row["timestamp_type"] == _CREATE_TIME for row in left)
    if by_producers:
        print_note(
            f"times are timestamps of producers (message.timestamp.type=CreateTime) in "
            f"{by_producers:,} of {counted(len(left), 'lagging partition')}"
        )
    if ahead:
        more = ", …" if len(ahead) > _MOST_SHOWN else ""
        print_note(
            f"the next records of {', '.join(ahead[:_MOST_SHOWN])}{more} have timestamps in the "
            "future, from wrong clocks of producers or none: since when is unknown there"
        )
    sampled = sum(row["high_watermark_from"] in _BY_PRODUCERS for row in rows)
    if sampled and as_of is not None:
        print_note(
            f"the log end at {time_text(as_of)} is inferred from timestamps of producers in "
            f"{counted(sampled, 'row')}: see high_watermark_from in docs/lag.md"
        )


def _note_some(lines: Iterable[str], noun: str) -> None:
    """Write the first lines, and how many more there are."""
    found = list(lines)
    for line in found[:_MOST_SHOWN]:
        print_note(line)
    if len(found) > _MOST_SHOWN:
        print_note(f"the same for {counted(len(found) - _MOST_SHOWN, noun)} more")


def note_zookeeper(logs: Sequence[PartitionLog]) -> None:
    """Note where more groups may be if brokers have no cluster id, as before 0.10.1: most consumers
    of that time commit to ZooKeeper."""
    if any(log.log_dir.cluster_id is None for log in logs):
        print_note(IN_ZOOKEEPER)


def note_rows(
    rows: Sequence[LagRow],
    deleted_topics: Callable[[], set[str]],
    as_of: int | None,
    *,
    clocks: bool,
) -> None:
    """Note what is not known of the lag of groups; with `clocks` also what follows from those of
    producers."""
    note_unread(rows)
    note_unknown(rows, deleted_topics, as_of)
    note_uncounted(rows)
    note_resumed(rows)
    note_ahead(rows)
    if clocks:
        note_clocks(rows, as_of)
