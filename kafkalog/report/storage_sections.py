"""What lies on disk, since when, how it is compressed, and how fast it came."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from kafkalog.report.contents import BatchesSection, ReportMoment, Row, Rows, StorageSection
from kafkalog.report.figures import (
    Figure,
    Series,
    areas_over_time,
    bars,
    bars_over_time,
    horizontal_bars,
)
from kafkalog.report.findings import later_words
from kafkalog.report.markup import Markup, anchor, label, name, paragraph, section, size, table
from kafkalog.report.plot import (
    OTHERS,
    Section,
    beside,
    byte_unit,
    bytes_series,
    place,
    series_over_stretches,
    time_label,
    topic_label,
    topic_order,
)
from kafkalog.report.time_grid import TimeGrid, stretch_words
from kafkalog.words import counted, size_text

# This many topics have their own colours; more would look alike.
_COLOURED = 6


def storage_section(storage: StorageSection, batches: BatchesSection, at: ReportMoment) -> Section:
    """Return bytes by topic, and when what is there was written."""
    totals, topics = storage.totals, storage.topics
    rest = totals.bytes - sum(row.bytes for row in topics)
    others = totals.topics - len(topics)
    labels = [label(row.topic) for row in topics] + ([OTHERS] if others else [])
    values = [row.bytes for row in topics] + ([rest] if others else [])
    unit, size = byte_unit(max(values, default=0))
    sizes = bytes_series("on disk", values, size, labels)._replace(name="")
    figures = {"storage-topics": horizontal_bars(labels, [sizes], unit)} if values else {}
    plots = [place(key, "Bytes of log files by topic", figure) for key, figure in figures.items()]
    parts: list[Markup] = []
    if batches.grid is not None:
        grown = _growth(batches.by_time, batches.grid, at)
        figures["storage-time"] = grown
        plots.append(place("storage-time", "What is on disk now, by when it was written", grown))
        if left_out := _outside(batches.by_time, batches.grid):
            parts.append(paragraph(left_out))
    parts.append(_topic_table(topics, batches, at))
    words = "All records in the files count, also those below the log start."
    parts.append(paragraph(words))
    parts += _later(batches, at)
    if others:
        parts.append(
            paragraph(f"{counted(others, 'topic')} more, with {size_text(rest)} together.")
        )
    unserved = storage.unserved
    if unserved.segments:
        parts.append(
            paragraph(
                f"Not counted: {counted(unserved.segments, 'log file')} with "
                f"{size_text(unserved.bytes)} that no broker serves any more, removed and not yet "
                "deleted, or left over."
            )
        )
    return Section(section("storage", "Storage", beside(*plots), *parts), figures)


def _topic_table(topics: Rows, batches: BatchesSection, at: ReportMoment) -> Markup:
    records, control = _records(batches.by_codec), _records(batches.control)
    heads = (
        *("Topic", "Partitions", "Copies", "Segments", "Bytes", "Records", "Control records"),
        *("First", "Latest"),
    )
    return table(
        heads,
        (
            (
                anchor("topic", row.topic),
                *(
                    row.partitions,
                    row.copies,
                    row.segments,
                    size(row.bytes),
                    *(records[row.topic], control[row.topic]),
                ),
                *(_time_label(row.first_timestamp_ms, at), _time_label(row.max_timestamp_ms, at)),
            )
            for row in topics
        ),
    )


def _time_label(time_ms: int | None, at: ReportMoment) -> str:
    """Return the time of a record as the page has times: none that is later than a past moment."""
    is_later = time_ms is not None and at.as_of_ms is not None and time_ms > at.as_of_ms
    return "later" if is_later else time_label(time_ms)


def _records(rows: Rows) -> Counter[str | None]:
    """Return records by topic."""
    found: Counter[str | None] = Counter()
    for row in rows:
        found[row.shown_topic] += row.records
    return found


def _ends(grid: TimeGrid) -> list[int]:
    return [grid.begin_ms + grid.every_ms * (number + 1) for number in range(grid.stretches)]


def _growth(rows: Rows, grid: TimeGrid, at: ReportMoment) -> Figure:
    found = series_over_stretches(rows, grid.stretches, lambda row: int(row.bytes), _COLOURED)
    grown = [(topic, list(accumulate(values))) for topic, values in found]
    unit, size = byte_unit(sum(values[-1] for _, values in grown))
    # The last stretch of a report about the past ends with its moment.
    ends = (end if at.as_of_ms is None else min(end, at.as_of_ms) for end in _ends(grid))
    times = [grid.begin_ms, *ends]
    texts = [time_label(time) for time in times]
    series = [
        bytes_series(topic_label(topic), [0, *values], size, texts) for topic, values in grown
    ]
    return areas_over_time(times, series, unit)


def _outside(rows: Rows, grid: TimeGrid) -> str:
    """Return what the plots over time leave out, in words."""
    outside = [
        (sum(row.batches for row in rows if row.stretch == stretch), words)
        for stretch, words in (
            *((-1, "earlier times or none"), (grid.stretches, "later times")),
            (grid.stretches + 1, "times after the moment of the report"),
        )
    ]
    words = " and ".join(
        f"{counted(count, 'batch')} of {words}" for count, words in outside if count
    )
    return f"Not in the plots over time: {words}." if words else ""


def _later(batches: BatchesSection, at: ReportMoment) -> list[Markup]:
    """Return what the figures beside it have that a past moment did not have, in words. F942"""
    found = later_words(batches, at)
    if not found:
        return []
    return [paragraph(f"These figures are of the files as they are: they have {found}.")]


def rate_section(batches: BatchesSection, storage: StorageSection) -> Section:
    """Return records by stretch of time."""
    grid = batches.grid
    if grid is None:
        empty = paragraph("No batch has a timestamp up to the time of the report.")
        return Section(section("rate", "Produce rate", empty), {})
    found = series_over_stretches(
        batches.by_time, grid.stretches, lambda row: int(row.records), _COLOURED
    )
    begins = [end - grid.every_ms for end in _ends(grid)]
    per = stretch_words(grid.every_ms)
    series = [
        Series(
            topic_label(topic),
            values,
            [
                f"{time_label(begin)}<br>{topic_label(topic)}: {counted(value, 'record')}"
                for begin, value in zip(begins, values, strict=True)
            ],
            topic is None,
        )
        for topic, values in found
    ]
    figure = bars_over_time(begins, grid.every_ms, series, f"records per {per}")
    words = [f"By the largest timestamp of each batch, control records left out, per {per}."]
    if storage.totals.copies > storage.totals.partitions:
        words.append("Of each partition the longest copy counts.")
    parts = (place("rate-time", f"Records per {per}", figure), paragraph(" ".join(words)))
    return Section(section("rate", "Produce rate", *parts), {"rate-time": figure})


def compression_section(batches: BatchesSection, at: ReportMoment) -> Section:
    """Return codecs, ratios and sizes of batches."""
    rows = batches.by_codec
    if not rows:
        empty = paragraph("There is no batch.")
        return Section(section("compression", "Compression and batches", empty), {})
    order = topic_order(rows, lambda row: float(row.uncompressed_bytes))
    stored, saved = ([_sum(rows, topic, kind) for topic in order] for kind in (0, 1))
    labels = [topic_label(topic) for topic in order]
    most = max(map(sum, zip(stored, saved, strict=True)), default=0)
    unit, size = byte_unit(most)
    figures = {
        "compression-topics": horizontal_bars(
            labels,
            [
                bytes_series("in the file", stored, size, labels),
                bytes_series("saved by compression", saved, size, labels),
            ],
            unit,
        ),
        "batch-sizes": _size_figure(batches.by_size),
    }
    plots = (
        place("compression-topics", "Bytes uncompressed, by topic", figures["compression-topics"]),
        place("batch-sizes", "Batches by size in the file", figures["batch-sizes"]),
    )
    parts = [beside(*plots), _codec_table(rows, order), *_later(batches, at)]
    unknown = sum(row.bytes - row.measured_bytes for row in rows)
    if unknown:
        # Of damaged batches, without compression too.
        parts.append(paragraph(f"Ratios leave out {size_text(unknown)} that cannot be decoded."))
    return Section(section("compression", "Compression and batches", *parts), figures)


def _sum(rows: Rows, topic: str | None, kind: int) -> int:
    """Return the stored bytes of a topic, or those that compression saves, if any."""
    found = [row for row in rows if row.shown_topic == topic]
    stored: int = sum(row.measured_bytes for row in found)
    saved = sum(row.uncompressed_bytes for row in found) - stored
    return max(saved, 0) if kind else stored


def _codec_table(rows: Rows, order: list[str | None]) -> Markup:
    def cells(topic: str | None) -> tuple[str | int | None, ...]:
        found = sorted((row for row in rows if row.shown_topic == topic), key=_by_batches)
        batches, stored, measured, uncompressed, records = (
            sum(row[name_of] for row in found)
            for name_of in ("batches", "bytes", "measured_bytes", "uncompressed_bytes", "records")
        )
        return (
            *(OTHERS if topic is None else name(topic), batches, size(stored)),
            f"{uncompressed / measured:.2f}" if measured else None,
            *(size(stored // batches), f"{records / batches:,.1f}"),
            ", ".join(f"{row.compression} {row.batches:,}" for row in found),
        )

    heads = ("Topic", "Batches", "Bytes", "Ratio", "Bytes per batch", "Records per batch", "Codecs")
    return table(heads, map(cells, order))


def _by_batches(row: Row) -> int:
    return -int(row.batches)


def _size_figure(rows: Rows) -> Figure:
    sizes = sorted({row.size_from for row in rows})
    steps = [1 << power for power in range(sizes[0].bit_length() - 1, sizes[-1].bit_length())]
    codecs = sorted({row.compression for row in rows})
    counts = {(row.compression, row.size_from): row.batches for row in rows}
    series = []
    for codec in codecs:
        values = [counts.get((codec, step), 0) for step in steps]
        texts = [
            f"{codec}, {size_text(step)} to {size_text(2 * step)}: {counted(value, 'batch')}"
            for step, value in zip(steps, values, strict=True)
        ]
        series.append(Series(codec, values, texts))
    places = [size_text(step).replace(".0 ", " ") for step in steps]
    return bars(places, series, "batches", "from this size to twice it")
