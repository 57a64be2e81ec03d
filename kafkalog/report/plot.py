"""Places of figures on the page, and what several sections say in the same words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kafkalog.report.contents import Row
from kafkalog.report.figures import Figure, Series
from kafkalog.report.markup import Markup, element, label
from kafkalog.words import size_text, time_text

OTHERS = "all others"
_UNITS = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


class Section(NamedTuple):
    """A part of the page, and the figures in it by the ids of their places."""

    markup: Markup
    figures: dict[str, Figure]


def place(identity: str, caption: str, figure: Figure) -> Markup:
    """Return where a figure is drawn; as high as it will be, so that nothing moves when it is."""
    height = f"height:{figure['layout']['height']}px"
    drawn = element("div", "", id=identity, class_="drawing", style=height)
    return element("figure", element("figcaption", caption), drawn)


def beside(*plots: Markup) -> Markup:
    """Places beside each other where there is room."""
    return element("div", *plots, class_="beside")


def byte_unit(most: float) -> tuple[str, int]:
    """Return the unit for an axis that goes so far, and how many bytes that is."""
    return next(((name, size) for name, size in _UNITS if most >= size), ("bytes", 1))


def time_label(time_ms: int | None) -> str:
    """Return a time to the second, UTC; `-` for none."""
    if time_ms is None:
        return "-"
    text = time_text(time_ms)
    return text[:19].replace("T", " ") if "T" in text else text


def topic_order(rows: Iterable[Row], value: Callable[[Row], float]) -> list[str | None]:
    """Return the shown topics of rows, those of the most first, all others (None) last."""
    sums: dict[str | None, float] = {}
    for row in rows:
        sums[row.shown_topic] = sums.get(row.shown_topic, 0) + value(row)
    return sorted(sums, key=lambda topic: (topic is None, -sums[topic], topic or ""))


def topic_label(topic: str | None) -> str:
    """Return a shown topic in a plot."""
    return OTHERS if topic is None else label(topic)


def series_over_stretches(
    rows: Sequence[Row], stretches: int, value: Callable[[Row], int], topics: int
) -> list[tuple[str | None, list[int]]]:
    """For each of the first `topics` topics, and for all others together, the sums of `value` in
    each stretch of time."""
    order = topic_order(rows, value)
    named = [topic for topic in order if topic is not None][:topics]
    found: dict[str | None, list[int]] = {topic: [0] * stretches for topic in named}
    for row in rows:
        if 0 <= row.stretch < stretches:
            topic = row.shown_topic if row.shown_topic in found else None
            found.setdefault(topic, [0] * stretches)[row.stretch] += value(row)
    return [(topic, found[topic]) for topic in (*named, None) if topic in found]


def bytes_series(name: str, values: Sequence[int], unit: int, texts: Sequence[str]) -> Series:
    """Return bytes as a figure has them, in a unit."""
    words = [
        f"{text}<br>{name}: {size_text(value)}" for text, value in zip(texts, values, strict=True)
    ]
    return Series(name, [value / unit for value in values], words, name == OTHERS)
