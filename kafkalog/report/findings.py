"""The most important of a report in sentences, the worst first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkalog.coordination.groups.lag_status import LagStatus
from kafkalog.report.contents import (
    BatchesSection,
    DamageSection,
    GroupsSection,
    Report,
    ReportMoment,
    Row,
    TransactionsSection,
)
from kafkalog.report.markup import ROOM_FOR_PATHS, place_of, visible
from kafkalog.report.plot import time_label
from kafkalog.words import counted, size_text, time_text

_MOST = 3
_LONG_AGO_MS = 3_600_000
_WELL = frozenset((LagStatus.OK.value, LagStatus.UNKNOWN.value))


def spoken(report: Report) -> tuple[list[str], bool]:
    """Return what the report says in lines, and whether there are findings."""
    found = report_findings(report)
    also = (f"also: {each}" for each in remarks(report))
    return [verdict(report), judged_at(report), *(each.text for each in found), *also], bool(found)


class Finding(NamedTuple):
    """A sentence about what somebody should look at, and where the page shows it."""

    text: str
    place: str


def report_findings(report: Report) -> list[Finding]:
    """Return what somebody should look at; nothing if there is nothing."""
    found = [Finding(text, "damage") for text in _damage(report.damage)]
    found += [Finding(text, "transactions") for text in _transactions(report.transactions)]
    if report.groups is not None:
        found += _groups(report.groups)
    if report.start is not None and report.start.has_findings:
        found.append(Finding(f"at the next start: {report.start.words}", "start"))
    for row in report.retention.blocked[:_MOST]:
        topic = visible(row.topic or "?")
        words = f"a timestamp in the future keeps retention from segments of {topic}"
        found.append(Finding(words, "retention"))
    for row in report.retention.padded[:_MOST]:
        words = (
            "zeros at the end of time indexes make a broker take "
            f"{counted(row.segments, 'segment')} of {visible(row.topic or '?')} to be of 1970"
        )
        found.append(Finding(words, "retention"))
    return found


def verdict(report: Report) -> str:
    """Return what was read, in a sentence."""
    totals = report.storage.totals
    records = sum(row.records for row in report.batches.by_codec)
    later = later_words(report.batches, report.at)
    return (
        f"{counted(totals.segments, 'segment')} of {counted(totals.partitions, 'partition')} "
        f"of {counted(totals.topics, 'topic')}, {size_text(totals.bytes)}, "
        f"{counted(records, 'record')}{later and f'; with {later}'}"
    )


def later_words(batches: BatchesSection, at: ReportMoment) -> str:
    """Return what of the batches is later than a past moment; nothing where nothing is. F942"""
    later = batches.later
    if at.is_now or not later.batches:
        return ""
    return (
        f"{counted(later.batches, 'batch')} of {counted(later.records, 'record')}, "
        f"{size_text(later.bytes)}, of after {time_label(at.at_ms)} UTC"
    )


def judged_at(report: Report) -> str:
    """Return as of which moment groups, transactions and retention are judged, in a sentence, and
    what to do if the logs end long before it. Rule: docs/report.md F942."""
    at_ms, latest_ms = report.at.at_ms, report.batches.latest_ms
    words = f"groups, transactions and retention are judged as of {time_label(at_ms)} UTC"
    if not report.at.is_now or report.batches.grid is None or at_ms - latest_ms < _LONG_AGO_MS:
        return words
    latest = time_text(latest_ms)
    return (
        f"{words}; 99 % of the batches are not later than {latest}: give --as-of for a copy of "
        "that time"
    )


def _damage(damage: DamageSection) -> Iterator[str]:
    if damage.totals.missing:
        yield visible(damage.totals.missing)
    damaged = [row for row in damage.logs if row.errors]
    for row in damaged[:_MOST]:
        yield (
            f"{counted(row.errors, 'damaged range')} in {visible(row.topic or '?')}-{row.partition}"
            f", {size_text(row.faulty_bytes)} of {size_text(row.bytes)}"
        )
    left = damage.totals.damaged_partitions - min(len(damaged), _MOST)
    if left:
        yield f"damage in {counted(left, 'partition')} more"
    for each in damage.others[:_MOST]:
        yield visible(f"{each.kind}: {each.file}: {each.detail}", ROOM_FOR_PATHS)
    more = damage.all_others - min(len(damage.others), _MOST)
    if more:
        yield f"{more:,} more replicas with other records or files that cannot be read"


def _transactions(transactions: TransactionsSection) -> Iterator[str]:
    if transactions.missing:
        yield f"coordinators of transactions: {transactions.missing}"
    hanging = sum(row.transactions for row in transactions.outcomes if row.outcome == "hanging")
    if hanging:
        yield f"{counted(hanging, 'transaction')} hanging: no coordinator will end them"
    for row in transactions.holders[:_MOST]:
        holder = row.transactional_id
        by = visible(holder) if holder is not None else f"producer {row.producer_id}"
        yield (
            f"{visible(row.topic or '?')}-{row.partition} is held back by "
            f"{counted(row.offsets_held_back, 'offset')}: a transaction of {by} is open"
            f"{_since(row)}"
        )
    left = transactions.held_back - min(len(transactions.holders), _MOST)
    if left:
        yield f"open transactions hold back {counted(left, 'partition')} more"


def _since(row: Row) -> str:
    """Return since when a transaction is open: its coordinator's clock goes before its
    producer's."""
    if row.started_ms is not None:
        return f" since {time_label(row.started_ms)}"
    if row.first_timestamp_ms is not None:
        return f"; its first record has the timestamp {time_label(row.first_timestamp_ms)}"
    return ""


def _groups(groups: GroupsSection) -> Iterator[Finding]:
    if groups.missing:
        yield Finding(f"commits of groups: {groups.missing}", "groups")
    bad = [row for row in groups.statuses if row.status not in _WELL]
    for row in bad[:_MOST]:
        since = "" if row.behind_since_ms is None else f" since {time_label(row.behind_since_ms)}"
        words = (
            f"group {visible(row.group_id)} is {counted(row.readable_records or 0, 'record')} "
            f"behind{since}; its last commit was at {time_label(row.last_commit_ms)}"
        )
        yield Finding(words, place_of("group", row.group_id))
    left = groups.totals.warned - min(len(bad), _MOST)
    if left:
        yield Finding(f"{counted(left, 'group')} more with a warning or an error", "groups")


def _waiting(groups: GroupsSection) -> Iterator[str]:
    """Yield groups that no status speaks of, and that are not at the end either."""
    if groups.totals.waiting:
        listed = [row for row in groups.statuses if row.status in _WELL]
        most = max(listed, key=lambda row: row.readable_records or 0, default=None)
        yield (
            f"{counted(groups.totals.waiting, 'group')} more with records left to read, without a "
            "warning"
        ) + (f": most has {visible(most.group_id)}, {most.readable_records:,}" if most else "")


def remarks(report: Report) -> list[str]:
    """Return what is worth knowing and no finding: partitions that are not there, groups that have
    yet to read, where most bytes are, keys that most records have."""
    found = [] if report.groups is None else [*_waiting(report.groups)]
    total = report.storage.totals.bytes
    if report.storage.totals.topics > 1 and total:
        first = report.storage.topics[0]
        found.append(
            f"{visible(first.topic or '?')} is the largest of "
            f"{report.storage.totals.topics:,} topics, with {100 * first.bytes / total:.0f} % of "
            "all bytes"
        )
    for row in report.keys.topics:
        most = max((each["count"] for each in row.top_keys), default=0)
        if row.shown_topic is not None and row.distinct_keys > 1 and most > row.keyed / 2:
            share = 100 * min(most, row.keyed) / row.keyed
            found.append(f"one key has {share:.0f} % of the records of {visible(row.shown_topic)}")
    return [*report.absent, *found[: _MOST + 2]]
