"""What the lag jobs print about their results."""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.inspection.groups.commit_reach import CommitReach, expired_words
from kafkalog.inspection.lag.lag_table import LagTotals
from kafkalog.inspection.lag.resumed_commits import again_words
from kafkalog.words import age_text, counted


def lag_words(totals: LagTotals, groups: int) -> str:
    """Return how many groups lag, by how much, what is lost, and what is not known."""
    head = f"{counted(groups, 'group')}, {counted(totals.partitions, 'partition')}"
    behind = f"{totals.behind:,} behind, {counted(totals.records, 'record')} to read"
    if totals.time_lag_ms is not None:
        age = age_text(totals.time_lag_ms)
        behind += f", the oldest {age} old" if totals.time_lag_ms >= 0 else f", the oldest {age}"
    stale = f"{counted(totals.stale, 'stale commit')} not counted"
    lost = f"offsets lost to deletion in {counted(totals.below_log_start, 'partition')}"
    lines = [f"{head}: {behind}; {stale}; {lost}, hidden by damage in {totals.damaged:,}"]
    if totals.expired:
        lines.append(expired_words(totals.expired))
    if totals.resumed:
        lines.append(again_words(totals.resumed))
    if totals.unknown:
        lines.append(
            f"lag unknown for {counted(totals.unknown, 'partition')}: no log in the input, or it "
            "starts after --as-of"
        )
    if totals.by_clocks:
        lines.append(
            f"for {counted(totals.by_clocks, 'partition')} the end offset at that time is inferred "
            "from producer timestamps: see high_watermark_from in docs/lag.md"
        )
    return "\n".join(lines)


def lag_findings(
    totals: LagTotals, reaches: Sequence[CommitReach], max_lag: int | None
) -> list[str]:
    """Return the findings that --fail-on-findings fails on."""
    found = []
    if max_lag is not None and (totals.most_records or 0) > max_lag:
        found.append(f"{totals.most_records:,} records to read in one partition")
    if totals.below_log_start:
        found.append("offsets lost to deletion")
    if totals.damaged or any(reach.damaged_ranges for reach in reaches):
        found.append("damage")
    return found
