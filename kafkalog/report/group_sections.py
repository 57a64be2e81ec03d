"""Lag of groups over time, transactions, and who holds last stable offsets."""

from __future__ import annotations

from kafkalog.coordination.groups.lag_status import LagStatus
from kafkalog.inspection.lag.resumed_commits import again_words
from kafkalog.report.contents import GroupsSection, Row, Rows, TransactionsSection
from kafkalog.report.figures import Figure, Marks, Series, horizontal_bars, line_over_time
from kafkalog.report.markup import Markup, anchor, element, folded, name, paragraph, section, table
from kafkalog.report.plot import Section, beside, place, time_label, topic_label, topic_order
from kafkalog.words import counted

_OUTCOMES = ("committed", "aborted", "open", "hanging")
_REASONS = {
    "recent": "open, and no longer than it may be",
    "known": "open, and its coordinator knows it",
    "unknown": "open; the input does not show what its coordinator knows",
    "no_transactional_id": "hanging: its coordinator has no such producer",
    "not_in_transaction": "hanging: its coordinator knows nothing of it here",
}
_TITLE = "Consumer groups"


def group_section(groups: GroupsSection | None) -> Section:
    """Return what groups had left to read at each time, with their rebalances."""
    if groups is None:
        words = "No group has committed an offset in these log directories."
        return Section(section("groups", _TITLE, paragraph(words)), {})
    figures: dict[str, Figure] = {}
    parts: list[str] = [
        _status_table(groups.statuses)
        if groups.statuses
        else paragraph("No group is known by what is here of the offsets topic.")
    ]
    plots: list[Markup] = []
    if groups.totals.groups > len(groups.statuses):
        parts.append(paragraph(f"{groups.totals.groups - len(groups.statuses):,} groups more."))
    by_group: dict[str, list[Row]] = {}
    for row in groups.series:
        by_group.setdefault(row.group_id, []).append(row)
    for number, status in enumerate(groups.statuses):
        rows = by_group.get(status.group_id)
        if not rows:
            continue
        identity = f"lag-{number}"
        figure = _figure(rows, [row for row in groups.rebalances if _is_of(row, status)])
        if figure is None:
            continue
        figures[identity] = figure
        place_of = place(identity, "", figure)
        head = element("h3", "Left to read by ", name(status.group_id))
        plots.append(element("div", head, place_of))
    parts += [beside(*plots), _partition_table(groups), _member_table(groups)]
    parts.append(
        paragraph(*(f"{line[:1].upper()}{line[1:]}. " for line in groups.reach.splitlines()))
    )
    return Section(section("groups", _TITLE, *parts), figures)


def _is_of(row: Row, status: Row) -> bool:
    return bool(row.group_id == status.group_id)


def _status_table(statuses: Rows) -> Markup:
    heads = (
        *("Group", "Status", "State", "Members", "Partitions", "Left to read", "Behind since"),
        *("Last commit", "Why"),
    )
    return table(
        heads,
        (
            (
                *(anchor("group", row.group_id), _status(row.status), row.state, row.members),
                *(row.partitions, row.readable_records),
                *(time_label(row.behind_since_ms), time_label(row.last_commit_ms), _why(row)),
            )
            for row in statuses
        ),
    )


def _status(status: str) -> Markup:
    return element("span", status, class_=f"status {status}")


def _partition_table(groups: GroupsSection) -> Markup:
    is_resumed = any(row.resumes_at is not None for row in groups.partitions)
    again = ("Resumes at", "Records again") if is_resumed else ()
    heads = (
        *("Group", "Partition", "Status", "Left to read", "Committed", *again, "Behind since"),
        *("Last commit", "Why"),
    )
    rows = (
        (
            *(name(row.group_id), name(f"{row.topic}-{row.partition}"), _status(row.status)),
            *(row.readable_records, row.committed_offset),
            *((row.resumes_at, row.records_again) if is_resumed else ()),
            time_label(row.next_timestamp_ms if row.readable_records else None),
            time_label(row.commit_timestamp_ms),
            row.reason,
        )
        for row in groups.partitions
    )
    found, every = table(heads, rows), groups.all_partitions
    lag = folded("Lag of each partition", found, len(groups.partitions), every)
    resumed = sum(row.resumes_at is not None for row in groups.partitions)
    return element("div", lag, paragraph(f"{again_words(resumed)}.")) if resumed else lag


def _member_table(groups: GroupsSection) -> Markup:
    heads = ("Group", "Member", "Client", "Host", "Partitions")
    rows = (
        (
            *(name(row.group_id), name(row.member_id), name(row.client_id), name(row.client_host)),
            row.partitions,
        )
        for row in groups.members
    )
    return folded("Members", table(heads, rows), len(groups.members), groups.all_members)


def _why(row: Row) -> Markup | None:
    """Return the reason of the partition that decides: its numbers are not the group's."""
    if row.reason is None or (row.status == LagStatus.OK.value and not row.readable_records):
        return None
    return element("span", name(f"{row.topic}-{row.partition}"), f": {row.reason}")


def _figure(rows: Rows, generations: Rows) -> Figure | None:
    values = [row.readable_records for row in rows]
    known = [value for value in values if value is not None]
    if not known:
        return None
    texts = [
        f"{time_label(row.at_ms)}<br>"
        + ("not known" if count is None else f"{counted(count, 'record')} left to read")
        for row, count in zip(rows, values, strict=True)
    ]
    marks = Marks(
        "rebalance", [row.at_ms for row in generations], [_generation(row) for row in generations]
    )
    line = Series("records left to read", values, texts)
    return line_over_time([row.at_ms for row in rows], line, marks, "records", max(known))


def _generation(row: Row) -> str:
    words = [time_label(row.at_ms), f"generation {row.generation}"]
    if row.members is not None:
        words.append(counted(row.members, "member"))
    if row.state:
        words.append(row.state)
    return "<br>".join(words)


def transaction_section(transactions: TransactionsSection) -> Section:
    """Return how transactions ended, by topic, and which of them hold others back."""
    title, rows = "Transactions", transactions.outcomes
    missing = (
        [
            paragraph(
                f"Records of their coordinators are missing ({transactions.missing}), so "
                "transactions that these may be about are not called hanging."
            )
        ]
        if transactions.missing
        else []
    )
    missing += [paragraph(f"{note[0].upper()}{note[1:]}.") for note in transactions.notes]
    if not rows:
        words = "No transaction is known" if transactions.notes else "There are no transactions"
        empty = paragraph(f"{words} in these log directories.")
        return Section(section("transactions", title, empty, *missing), {})
    order = topic_order(rows, lambda row: float(row.transactions))
    labels = [topic_label(topic) for topic in order]
    counts = {(row.shown_topic, row.outcome): row.transactions for row in rows}
    series = []
    for outcome in _OUTCOMES:
        values = [counts.get((topic, outcome), 0) for topic in order]
        texts = [
            f"{topic}<br>{outcome}: {counted(value, 'transaction')}"
            for topic, value in zip(labels, values, strict=True)
        ]
        if any(values):
            series.append(Series(outcome, values, texts))
    figure = horizontal_bars(labels, series, "transactions")
    parts = [
        place("transaction-topics", "Transactions by topic, counted in each partition", figure)
    ]
    parts += [*_holders(transactions), *missing]
    return Section(section("transactions", title, *parts), {"transaction-topics": figure})


def _holders(transactions: TransactionsSection) -> list[Markup]:
    if not transactions.held_back:
        return [paragraph("No open transaction keeps a last stable offset back.")]
    heads = ("Partition", "Held back", "Stable up to", "Held by", "Since", "First record", "State")
    rows = (
        (
            name(f"{row.topic}-{row.partition}"),
            *(row.offsets_held_back, row.last_stable_offset, _holder(row)),
            *(time_label(row.started_ms), time_label(row.first_timestamp_ms)),
            _REASONS.get(row.reason, row.outcome or "open"),
        )
        for row in transactions.holders
    )
    parts = [
        element("h3", "Who holds the last stable offset"),
        table(heads, rows),
        paragraph(
            "read_committed consumers wait in these partitions. Since when a transaction is open "
            "goes by its coordinator's clock, its first record's time by the producer's."
        ),
    ]
    left = transactions.held_back - len(transactions.holders)
    if left:
        parts.append(paragraph(f"{counted(left, 'partition')} more."))
    return parts


def _holder(row: Row) -> str:
    if row.transactional_id is None:
        return f"producer {row.producer_id}"
    return element("span", name(row.transactional_id), f" (producer {row.producer_id})")
