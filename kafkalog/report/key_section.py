"""How evenly keys are used, and tombstones."""

from __future__ import annotations

from kafkalog.report.contents import TRACKED_KEYS, KeysSection, Row
from kafkalog.report.figures import Figure, Series, horizontal_bars
from kafkalog.report.markup import Markup, element, name, paragraph, section, table, visible
from kafkalog.report.plot import OTHERS, Section, place, topic_label
from kafkalog.words import counted

_LISTED_KEYS = 3
_HIDDEN = (
    "Keys are shown as hashes with a discarded secret, because keys can be secrets: the "
    "same hash is the same key on this page only. ",
    element("code", "--show-keys"),
    " shows the keys.",
)


def key_section(keys: KeysSection) -> Section:
    """Return shares of the most frequent keys by topic, and tombstones."""
    in_order = sorted(keys.topics, key=lambda row: row.shown_topic is None)
    keyed = [row for row in in_order if row.keyed]
    if not keyed:
        empty = paragraph("No record of an ordinary topic has a key, so there are no tombstones.")
        return Section(section("keys", "Keys and tombstones", empty), {})
    figures = {"key-shares": _shares(keyed)}
    parts = [place("key-shares", "Records with a key, by key", figures["key-shares"])]
    parts.append(_table(keyed))
    if any(row.distinct_keys > TRACKED_KEYS for row in keyed):
        parts.append(
            paragraph(
                "Numbers of keys are estimates, and so are counts of single keys where a topic has "
                f"more than {TRACKED_KEYS:,} keys."
            )
        )
    if not keys.are_shown:
        parts.append(paragraph(*_HIDDEN))
    parts.append(_tombstones(keyed))
    return Section(section("keys", "Keys and tombstones", *parts), figures)


def _parts(row: Row) -> tuple[int, int, int]:
    """Return records with the most frequent key, with the next ones, and with all others."""
    counts = [min(each["count"], row.keyed) for each in row.top_keys]
    first, next_ones = sum(counts[:1]), sum(counts[1:])
    next_ones = min(next_ones, row.keyed - first)
    return first, next_ones, row.keyed - first - next_ones


def _shares(rows: list[Row]) -> Figure:
    labels = [topic_label(row.shown_topic) for row in rows]
    names = ("most frequent key", "next 9 keys", OTHERS)
    series = []
    for number, part in enumerate(names):
        counts = [_parts(row)[number] for row in rows]
        shares = [100 * count / row.keyed for count, row in zip(counts, rows, strict=True)]
        texts = [
            f"{topic}<br>{part}: {counted(count, 'record')}, {share:.1f} %"
            for topic, count, share in zip(labels, counts, shares, strict=True)
        ]
        series.append(Series(part, shares, texts, part == OTHERS))
    return horizontal_bars(labels, series, "% of records with a key", 100)


def _table(rows: list[Row]) -> Markup:
    def frequent(row: Row) -> str:
        words = (
            element("span", element("code", visible(each["item"])), f" {each['count']:,}")
            for each in row.top_keys[:_LISTED_KEYS]
        )
        return element("span", *words, class_="keys")

    heads = ("Topic", "Records", "With key", "Keys", "Tombstones", "Most frequent")
    return table(
        heads,
        (
            (
                OTHERS if row.shown_topic is None else name(row.shown_topic),
                *(row.records, row.keyed, row.distinct_keys, row.tombstones, frequent(row)),
            )
            for row in rows
        ),
    )


def _tombstones(rows: list[Row]) -> Markup:
    tombstones, keyed = sum(row.tombstones for row in rows), sum(row.keyed for row in rows)
    if not tombstones:
        return paragraph("There are no tombstones.")
    share = 100 * tombstones / keyed
    return paragraph(
        f"{counted(tombstones, 'tombstone')}, {share:.1f} % of the records with a key."
    )
