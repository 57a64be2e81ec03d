"""What is to be reached, and the rows of the report that say whether it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.contest import contest as c
from benchmarks.measuring.rounds import Contender, Ratio, ratio

COLUMNS = (
    "input",
    "what",
    "MB/s",
    "M records/s",
    "time ÷ floor's",
    "compared",
    "target",
    "reached",
)
SMALL_RECORD_BYTES = 512  # below, the target for small records holds
LARGE_RECORD_TARGET = 1.4
SMALL_RECORD_TARGET = 2.0
AIOKAFKA_TARGET = 10
NARROW_TARGET = 3
HEADERS_TARGET = 20
MEMORY_TARGET = 300 * 1024 * 1024

_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Comparison:
    """A row's ratio with something other than the floor, and what it should be at least."""

    text: str
    slower: str
    faster: str
    target: float | None = None


_NARROW_UNCHECKED = (
    Comparison(
        "× faster than full, both unchecked", c.FULL_UNCHECKED, c.NARROW_UNCHECKED, NARROW_TARGET
    ),
    Comparison("× than full with checksums", c.FULL, c.NARROW_UNCHECKED),
)
# Of several the first is what a target is for.
_COMPARISONS = {
    c.FULL_FILE: (Comparison("× the time from memory", c.FULL_FILE, c.FULL),),
    c.FULL_UNCHECKED: (Comparison("× faster than with checksums", c.FULL, c.FULL_UNCHECKED),),
    c.NARROW: (Comparison("× faster than full", c.FULL, c.NARROW, NARROW_TARGET),),
    c.NARROW_UNCHECKED: _NARROW_UNCHECKED,
    c.HEADERS: (Comparison("× faster than full", c.FULL, c.HEADERS, HEADERS_TARGET),),
    # Targets are for reading from memory; the cost of reading from a file is shown beside it.
    c.HEADERS_FILE: (
        Comparison("× faster than full, both from the file", c.FULL_FILE, c.HEADERS_FILE),
    ),
    c.AIOKAFKA_UNCHECKED: (
        Comparison(
            "× slower than kafkalog, both unchecked", c.AIOKAFKA_UNCHECKED, c.FULL_UNCHECKED
        ),
    ),
    c.KAFKA_PYTHON: (Comparison("× slower than kafkalog", c.KAFKA_PYTHON, c.FULL),),
}


def rows(contest: c.Contest) -> Iterator[tuple[str, ...]]:
    """The report's rows on one input."""
    for name, contender in contest.contenders.items():
        yield _row(contest, name, contender)
    for name, why in contest.not_installed.items():
        yield (contest.input.label, name, why, *([""] * 5))


def _row(contest: c.Contest, name: str, contender: Contender) -> tuple[str, ...]:
    contenders = contest.contenders
    to_floor = ratio(contender, contenders[c.FLOOR])
    text, target, reached = "", "", ""
    if name == c.FULL:
        most = _floor_target(contest)
        target, reached = f"≤ {most} × floor", _yes(to_floor.median <= most)
    elif comparisons := _comparisons(contest, name):
        found = [ratio(contenders[with_.slower], contenders[with_.faster]) for with_ in comparisons]
        texts = zip(found, comparisons, strict=True)
        text = "; ".join(f"{one}{comparison.text}" for one, comparison in texts)
        if least := comparisons[0].target:
            target = f"≥ {least} ×"
            reached = _yes(found[0].median >= least)
    return (
        contest.input.label,
        name,
        f"{contest.data_bytes / contender.median_seconds / 1e6:,.0f}",
        f"{contest.segment.records / contender.median_seconds / 1e6:,.2f}",
        _to_floor(to_floor, is_floor=name == c.FLOOR),
        text,
        target,
        reached,
    )


def _comparisons(contest: c.Contest, name: str) -> tuple[Comparison, ...]:
    if name == c.AIOKAFKA:
        target = AIOKAFKA_TARGET if contest.input.codec == "none" else None
        return (Comparison("× slower than kafkalog", c.AIOKAFKA, c.FULL, target),)
    return _COMPARISONS.get(name, ())


def _floor_target(contest: c.Contest) -> float:
    is_small = contest.input.record_size < SMALL_RECORD_BYTES
    return SMALL_RECORD_TARGET if is_small else LARGE_RECORD_TARGET


def _to_floor(found: Ratio, *, is_floor: bool) -> str:
    return "1" if is_floor else str(found)


def memory_row(label: str, size: int, growth: int | None, why: str = "") -> tuple[str, ...]:
    """The report's row on peak memory; `growth` is None where it was not measured."""
    what = f"peak memory, a file of {size / _MEBIBYTE:,.0f} MiB"
    if growth is None:
        return (label, what, why, *([""] * 5))
    found = f"{growth / _MEBIBYTE:,.0f} MiB"
    target = f"< {MEMORY_TARGET // _MEBIBYTE} MiB"
    return (label, what, "", "", "", found, target, _yes(growth < MEMORY_TARGET))


def _yes(reached: bool) -> str:
    return "yes" if reached else "NO"
