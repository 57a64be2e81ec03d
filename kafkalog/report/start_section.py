"""What a broker would do at its next start."""

from __future__ import annotations

from kafkalog.report.contents import Row, StartSection
from kafkalog.report.markup import Markup, element, folded, joined, name, paragraph, section, table
from kafkalog.report.plot import Section

_TITLE = "The next start"
_HEADS = ("Topic", "Partition", "What", "Log end after it", "Records lost", "File or reason")


def start_section(start: StartSection | None) -> Section:
    """Return whether nodes start, with the lines that mend it, and what partitions lose."""
    if start is None:
        return Section(section("start", _TITLE, paragraph("There is no log.")), {})
    parts = [paragraph(f"{start.words[:1].upper()}{start.words[1:]}.")]
    if start.lines:
        parts.append(element("pre", "\n".join(start.lines)))
    if start.partitions:
        rows = table(_HEADS, map(_cells, start.partitions))
        every, shown = start.all_partitions, len(start.partitions)
        parts.append(folded("Partitions with findings", rows, shown, every))
    parts.append(
        paragraph(
            "By the files alone, for the newest release that opens them: ",
            joined([element("code", "kafkalog recover")]),
            " judges another version, with a server.properties and a user.",
        )
    )
    return Section(section("start", _TITLE, *parts), {})


def _cells(row: Row) -> tuple[str | int | Markup | None, ...]:
    return (
        name(row.topic),
        row.partition,
        _what(row),
        row.log_end_offset,
        row.lost_records,
        row.start_error
        or row.set_aside_reason
        or row.leader_reason
        or row.cut_kind
        or _of_coordinator(row)
        or "-",
    )


def _what(row: Row) -> str:
    if not row.broker_starts:
        return "keeps the broker from starting"
    if row.is_set_aside:
        return "is set aside"
    if row.begins_empty:
        return "begins empty"
    if row.has_leader is False:
        return "stays without a leader"
    if row.coordinator_error:
        return "its coordinator does not load"
    if row.deleted_soon and not row.deleted_soon["is_expected"]:
        return "is deleted soon"
    if row.lost_bytes:
        return "is truncated"
    return "has lost records" if row.missing_offsets else "keeps damage"


def _of_coordinator(row: Row) -> str | None:
    return None if not row.coordinator_error else row.coordinator_error["reason"]
