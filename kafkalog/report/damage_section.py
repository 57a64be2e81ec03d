"""Where damage lies: a strip for each partition, in which nothing is too small to be seen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from kafkalog.report.contents import DamageSection, Row
from kafkalog.report.markup import (
    ROOM_FOR_PATHS,
    Markup,
    element,
    joined,
    name,
    paragraph,
    section,
    visible,
)
from kafkalog.report.plot import Section
from kafkalog.words import counted, size_text


class Colouring(NamedTuple):
    """How kinds of findings look: a class of the style sheet, and what it means."""

    name: str
    words: str
    kinds: frozenset[str]


_SOUND = Colouring("sound", "sound", frozenset())
# What a cell has of several, the first shows. Kinds: docs/format.md F60 to F75.
COLOURINGS = (
    Colouring(
        "no-batch",
        "bytes that are not a batch",
        frozenset(("truncated", "zeros", "garbage", "length", "magic")),
    ),
    Colouring(
        "hidden", "unreadable: not given by the disk or the store", frozenset(("unreadable",))
    ),
    Colouring("changed", "checksum wrong", frozenset(("checksum", "inner_checksum"))),
    Colouring(
        "unreadable",
        "checksum right, records unreadable",
        frozenset(("too_large", "codec", "compression", "record_count", "records")),
    ),
    Colouring(
        "offsets",
        "offsets wrong",
        frozenset(("record_offsets", "offset_range", "offset_order", "transaction")),
    ),
    Colouring(
        "gap",
        "gap: offsets missing between segments, or at the end",
        frozenset(("segment_hole", "missing_end")),
    ),
    Colouring("remark", "sound, with a remark", frozenset(("leader_epoch", "reserved_attributes"))),
    Colouring("trailing", "unfinished or allocated end", frozenset(("trailing",))),
)
_UNKNOWN = COLOURINGS[3]
_NOT_CHECKED = "Indexes and other files beside logs are not checked here: kafkalog check does it."


def damage_section(damage: DamageSection) -> Section:
    """Return the legend, the strips, and the first ranges of each in words."""
    used = {_colouring(mark["kind"]) for row in damage.logs for mark in row.marks or ()}
    legend = element(
        "ul",
        *(
            element("li", element("i", "", class_=f"swatch {each.name}"), each.words)
            for each in (_SOUND, *COLOURINGS)
            if each in used or each is _SOUND
        ),
        class_="legend",
    )
    damaged, sound = (
        [_strip(row, damage) for row in damage.logs if bool(row.ranges) is has_findings]
        for has_findings in (True, False)
    )
    parts: list[str] = [
        *(paragraph(_summary(damage)), legend, *damaged),
        element("div", *sound, class_="sound-logs"),
    ]
    left = damage.totals.partitions - len(damage.logs)
    if left:
        others = damage.totals.damaged_partitions - sum(row.errors > 0 for row in damage.logs)
        words = f"{others:,}" if others else "none"
        parts.append(paragraph(f"{counted(left, 'partition')} more, {words} of them damaged."))
    if damage.others:
        parts += [paragraph("Beside these segments:"), _others(damage)]
    return Section(section("damage", "Damage map", *parts), {})


def _summary(damage: DamageSection) -> str:
    totals = damage.totals
    lead = f"{visible(totals.missing)}. " if totals.missing else ""
    if not totals.errors:
        return (
            f"{lead}No damage in the segments of {counted(totals.partitions, 'partition')}, "
            f"{size_text(totals.bytes)}: every checksum is right. A strip is a partition, its "
            f"segments from left to right. {_NOT_CHECKED}"
        )
    return (
        f"{lead}{counted(totals.errors, 'damaged range')} in "
        f"{counted(totals.damaged_partitions, 'partition')} of {totals.partitions:,}, "
        f"{size_text(totals.faulty_bytes)} of {size_text(totals.bytes)}. A strip is a partition, "
        "its segments from left to right. A mark is where the range is, and is never "
        f"thinner than can be seen: its size is given below. {_NOT_CHECKED}"
    )


def _strip(row: Row, damage: DamageSection) -> Markup:
    head = element(
        "div",
        name(f"{row.topic}-{row.partition}"),
        element(
            "span",
            f"{size_text(row.bytes)}, {counted(row.segments, 'segment')}, "
            + (f"broker {row.broker_id}, " if row.broker_id is not None else "")
            + (counted(row.ranges, "finding") if row.ranges else "sound"),
        ),
        class_="strip-head",
    )
    bar = element(
        "div", *_cells(row, damage.cells), class_="strip", role="img", aria_label=_spoken(row)
    )
    found = [each for each in damage.ranges if _log(each) == _log(row)]
    return element("div", head, bar, _ranges(row, found), class_="log")


def _others(damage: DamageSection) -> Markup:
    items = [
        element(
            "li",
            element("b", each.kind),
            f" at position {each.position:,}" if each.position is not None else "",
            ": ",
            name(each.file),
            f": {visible(each.detail, ROOM_FOR_PATHS)}",
        )
        for each in damage.others
    ]
    left = damage.all_others - len(items)
    if left:
        items.append(element("li", f"and {left:,} more: see kafkalog check"))
    return element("ul", *items, class_="ranges")


def _log(row: Row) -> tuple[object, ...]:
    return row.cluster_id, row.broker_id, row.input_path, row.topic, row.partition


def _cells(row: Row, cells: int) -> Iterator[Markup]:
    """Neighbours that look alike are one piece."""
    if not row.bytes and not row.marks:
        yield element("i", "", class_="empty", style="flex-grow:1")
        return
    found: dict[int, Colouring] = {}
    for mark in row.marks or ():
        colouring = _colouring(mark["kind"])
        old = found.get(mark["cell"], colouring)
        found[mark["cell"]] = min(old, colouring, key=COLOURINGS.index)
    looks = [found.get(cell, _SOUND) for cell in range(cells)]
    for look, alike in groupby(looks):
        count = sum(1 for _ in alike)
        yield element("i", "", class_=look.name, style=f"flex-grow:{count}", title=look.words)


def _colouring(kind: str) -> Colouring:
    return next((each for each in COLOURINGS if kind in each.kinds), _UNKNOWN)


def _spoken(row: Row) -> str:
    kinds = sorted({mark["kind"] for mark in row.marks or ()})
    return f"{counted(row.ranges, 'finding')}: {', '.join(kinds)}" if kinds else "sound"


def _ranges(row: Row, found: list[Row]) -> Markup:
    if not found:
        return joined(())
    items = [
        element(
            "li",
            element("b", each.kind.replace("_", " ")),
            f" {counted(each.length, 'byte')}" if each.length else "",
            f" at position {each.position:,} of ",
            name(each.file.rpartition("/")[2]),
            f": {each.detail}" if each.detail else "",
        )
        for each in found
    ]
    if row.ranges > len(found):
        items.append(element("li", f"and {row.ranges - len(found):,} more: see view faults"))
    return element("ul", *items, class_="ranges")
