"""What an export did, for people: a row for each topic, and a verdict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafkalog.views.planning.ingest_positions import IngestRange, IngestRun
from kafkalog.words import counted


class TopicRow(NamedTuple):
    """What a run wrote of a topic."""

    topic: str
    partitions: int
    rows: int
    offsets: int
    findings: int


def topic_rows(runs: Iterable[IngestRun]) -> list[TopicRow]:
    """Return what the runs wrote of each topic, the largest first."""
    of_topic: dict[str, list[IngestRange]] = defaultdict(list)
    for run in runs:
        for each in run.ranges:
            of_topic[each.topic].append(each)
    rows = [
        TopicRow(
            topic,
            partitions=len(ranges),
            rows=sum(each.rows or 0 for each in ranges),
            offsets=sum(each.until_offset - each.from_offset for each in ranges),
            findings=sum(each.finding is not None for each in ranges),
        )
        for topic, ranges in of_topic.items()
    ]
    return sorted(rows, key=lambda row: (-row.rows, row.topic))


def verdict(runs: Sequence[IngestRun]) -> list[str]:
    """Say how much was new, what of it could not be decoded, and what keeps partitions from being
    complete."""
    ranges = [each for run in runs for each in run.ranges]
    written = [each for each in ranges if not each.is_empty]
    offsets = sum(each.until_offset - each.from_offset for each in written)
    partitions = counted(len(written), "partition")
    new = f"read {counted(offsets, 'offset')} of {partitions}" if offsets else "nothing is new"
    findings = [
        f"{each.finding.upper()}: {each.topic}-{each.partition}: {each.detail}"
        for each in ranges
        if each.finding is not None
    ]
    undecoded = sum((Counter(run.undecoded) for run in runs), Counter())
    errors = [
        f"{counted(count, name)} could not be decoded: column {name}_error has the reason"
        for name, count in undecoded.items()
    ]
    return [new, *errors, *findings]
