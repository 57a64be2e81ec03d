"""What `kafkalog groups --resume` shows: where consumers of each group continue."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from kafkalog.command_line.terminal import has_chosen_columns, print_text, write_table
from kafkalog.words import counted, given_duration_ms

if TYPE_CHECKING:
    from kafkalog.questions.groups.lag import ConsumerLag
    from kafkalog.questions.positions.group_resume import CommitToResume, OffsetReset, ResumeRequest
    from kafkalog.views.engine import LocalViews

_POLICIES = ("earliest", "latest", "none")
_BY_DURATION = "by_duration:"
_ISO_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1_000)
_WORDS, _AT_COMMIT = "what_happens", "at_commit"
_MOST_SENTENCES = 20


class OffsetResetValue(click.ParamType["OffsetReset"]):
    """auto.offset.reset of a consumer: earliest, latest, none, or by_duration: and a duration as
    Java writes it, such as PT1H30M, or as kafkalog does, such as 90m."""

    name = "reset"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> OffsetReset:
        from kafkalog.questions.positions.group_resume import OffsetReset

        if isinstance(value, OffsetReset):
            return value
        if value in _POLICIES:
            return OffsetReset(value)
        length_ms = _duration_ms(value.removeprefix(_BY_DURATION))
        if not value.startswith(_BY_DURATION) or length_ms is None:
            allowed = f"{', '.join(_POLICIES)}, or {_BY_DURATION}DURATION such as PT1H or 1h"
            self.fail(f"{value!r} is none of {allowed}", param, ctx)
        return OffsetReset(_BY_DURATION, length_ms)


def _duration_ms(text: str) -> int | None:
    found = _ISO_DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return given_duration_ms(text)
    parts = zip(found.groups(), _UNITS_MS, strict=True)
    return sum(int(number or 0) * unit for number, unit in parts)


def write_resume(
    views: LocalViews,
    lag: ConsumerLag,
    commits: Sequence[CommitToResume],
    request: ResumeRequest,
    table_format: str,
) -> None:
    """Write a row per group, partition and replica that could lead; as text those of other replicas
    only where consumers continue elsewhere."""
    from kafkalog.questions.positions.group_resume import COLUMNS, group_resume

    rows = group_resume(views, commits, request)
    if table_format != "text":
        write_table(COLUMNS, [[row[name] for name in COLUMNS] for row in rows], table_format)
        return
    shown = [*_shown_rows(rows)]
    names = [name for name in COLUMNS if has_chosen_columns() or _has_values(shown, name)]
    is_cut = not has_chosen_columns()
    names = [name for name in names if not (is_cut and name == _WORDS)]
    none = lag.by_what_is_here("no group has a commit or an assigned partition")
    values = [[row[name] for name in names] for row in shown]
    write_table(names, values, table_format, without_rows=none)
    elsewhere = [row for row in shown if row["reason"] != _AT_COMMIT]
    for row in elsewhere[:_MOST_SENTENCES]:
        where = f"{row['group']} in {row['topic']}-{row['partition']}"
        leader = "" if row["leader"] is None else f", led by broker {row['leader']}"
        print_text(f"{where}{leader}: {row[_WORDS]}")
    if len(elsewhere) > _MOST_SENTENCES:
        more = counted(len(elsewhere) - _MOST_SENTENCES, "row")
        print_text(f"{more} more with such a reason: --format json has a sentence for each")
    if len(shown) < len(rows):
        left = len(rows) - len(shown)
        print_text(f"with {counted(left, 'other replica')} as the leader they continue there too")


def _has_values(rows: Sequence[dict[str, Any]], name: str) -> bool:
    """Return whether a column says anything: none of its values is the same as without a row."""
    return any(row[name] is not None for row in rows)


def _shown_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first row of each commit, and those of other leaders with another answer."""
    first: dict[tuple[Any, ...], dict[str, Any]] = {}
    shown = []
    for row in rows:
        place = row["group"], row["topic"], row["partition"]
        known = first.setdefault(place, row)
        answers = ("resumes_at", "reason", "records_again", "records_skipped")
        if known is row or any(known[name] != row[name] for name in answers):
            shown.append(row)
    return shown
