"""What retention frees, and when."""

from __future__ import annotations

from kafkalog.report.contents import WHEN, RetentionSection, Row, Rows
from kafkalog.report.figures import Figure, horizontal_bars
from kafkalog.report.markup import Markup, element, name, paragraph, section, size, table
from kafkalog.report.plot import (
    OTHERS,
    Section,
    byte_unit,
    bytes_series,
    place,
    time_label,
    topic_label,
    topic_order,
)
from kafkalog.words import counted, duration_text, size_text

_WORDS = {
    "now": "now",
    "day": "within a day",
    "week": "within a week",
    "month": "within 30 days",
    "later": "later",
    "stays": "stays",
    "unknown": "not known",
}
_BLOCKED = (
    "Timestamps in the future keep segments of these topics, and all after them, until they and "
    "the retention time have passed:"
)
_UNKNOWN = (
    "log directories do not have the limits of these topics; ",
    *(element("code", "--server-properties"), " and ", element("code", "--topic-config")),
    " give them.",
)
_PARTLY = (
    "Where settings are missing, those that are known say when: retention.bytes can delete more. "
    "Where nothing gives cleanup.policy, it is assumed: delete, Kafka's default, and compact where "
    "the cleaner has been."
)
_PADDED = (
    "Zeros at the end of time indexes make a broker take these segments to be of 1970; remove "
    "their .index and .timeindex before it starts, and it recreates them:"
)
_TITLE = "Retention: what goes when"


def retention_section(retention: RetentionSection) -> Section:
    """Return bytes by when they go, and the limits that say so."""
    rows = retention.times
    known = [row for row in rows if row.when != "unknown"]
    parts: list[str] = []
    figures: dict[str, Figure] = {}
    if not rows:
        parts.append(paragraph("There is no segment."))
    elif not any(row.bytes for row in known):
        parts.append(paragraph("What goes when is not known: ", *_UNKNOWN))
    else:
        figures["retention-topics"] = _figure(rows)
        caption = "Bytes by when retention deletes them"
        parts += [place("retention-topics", caption, figures["retention-topics"]), _table(known)]
        if any(row.missing for row in known):
            parts.append(paragraph(_PARTLY))
        if len(known) < len(rows):
            parts.append(paragraph("Of what is not known: ", *_UNKNOWN))
    if retention.blocked:
        parts += [paragraph(_BLOCKED), element("ul", *map(_blocked, retention.blocked))]
    if retention.padded:
        lines = (
            element("li", name(row.topic), f": {counted(row.segments, 'segment')}")
            for row in retention.padded
        )
        parts += [paragraph(_PADDED), element("ul", *lines)]
    return Section(section("retention", _TITLE, *parts), figures)


def _blocked(row: Row) -> Markup:
    return element("li", name(row.topic), f": {time_label(row.timestamp_ms)}")


def _figure(rows: Rows) -> Figure:
    order = topic_order(rows, lambda row: float(row.bytes))
    labels = [topic_label(topic) for topic in order]
    sizes = {(row.shown_topic, row.when): row.bytes for row in rows}
    most = max(sum(sizes.get((topic, when), 0) for when in WHEN) for topic in order)
    unit, size = byte_unit(most)
    series = []
    for when in WHEN:
        values = [sizes.get((topic, when), 0) for topic in order]
        if any(values):
            found = bytes_series(_WORDS[when], values, size, labels)
            series.append(found._replace(is_rest=when == "unknown"))
    return horizontal_bars(labels, series, unit)


def _table(rows: Rows) -> Markup:
    heads = ("Topic", "Goes", "Segments", "Bytes", "The first of them", "Policy", "Limits")
    order = {when: number for number, when in enumerate(WHEN)}
    in_order = sorted(
        rows, key=lambda row: (row.shown_topic is None, row.shown_topic or "", order[row.when])
    )
    return table(
        heads,
        (
            (
                OTHERS if row.shown_topic is None else name(row.shown_topic),
                *(_WORDS[row.when], row.segments, size(row.bytes), time_label(row.next_ms)),
                *(row.cleanup_policy or "-", _limits(row)),
            )
            for row in in_order
        ),
    )


def _limits(row: Row) -> str:
    found = []
    if row.retention_ms is not None:
        found.append("no time" if row.retention_ms < 0 else duration_text(row.retention_ms))
    if row.retention_bytes is not None and row.retention_bytes >= 0:
        found.append(size_text(row.retention_bytes))
    if row.missing:
        found.append(f"not known: {', '.join(row.missing)}")
    return ", ".join(found) or "-"
