"""What does a version of Kafka refuse of a cluster: before an upgrade, or a downgrade?

The cluster's features, records and configs by its metadata, and what coordinators make of their
partitions, where the logs are there. Rules: docs/format.md F1000 to F1018.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kafkalog.coordination.metadata.release_refusals import Effect, refusals
from kafkalog.coordination.metadata.releases import known_release
from kafkalog.inspection.groups.coordinator_loading import CoordinatorLoad
from kafkalog.inspection.metadata.metadata_log import snapshot_entries
from kafkalog.inspection.metadata.replay import MetadataReplay
from kafkalog.inspection.metadata.seen_records import seen_records
from kafkalog.questions.groups.coordinators import CoordinatorSettings, coordinators, load_words
from kafkalog.views.engine import Views
from kafkalog.words import counted

COLUMNS = ("kind", "effect", "subject", "reason", "remedy")
_COORDINATOR = "coordinator"
_PASSED_OVER = "passed_over"

Row = dict[str, Any]


def version_rows(replay: MetadataReplay, views: Views, kafka_version: str) -> list[Row]:
    """Return what a version refuses, with COLUMNS: what ends the process first. Raises OptionError
    for a version that is not known."""
    release = known_release(kafka_version)
    loads = coordinators(views, CoordinatorSettings(kafka_version))
    return [*_refused(replay, release), *_coordinators(loads, release)]


def _refused(replay: MetadataReplay, release: str) -> Iterator[Row]:
    snapshot = replay.snapshot
    start = replay.log.start_offset if snapshot is None else snapshot.end_offset
    log = (each for each in replay.log.entries(start) if each.offset < replay.next_offset)
    seen = seen_records(log, () if snapshot is None else snapshot_entries(snapshot.path))
    for each in refusals(replay.image, release, seen):
        yield {
            "kind": each.kind.value,
            "effect": each.effect.value,
            "subject": each.subject,
            "reason": each.reason,
            "remedy": each.remedy,
        }


def _coordinators(loads: Sequence[CoordinatorLoad], release: str) -> Iterator[Row]:
    for load in loads:
        for words in load_words(load, release):
            consequence = _PASSED_OVER if load.consequence is None else load.consequence.value
            subject = f"{load.topic}-{load.partition}"
            values = (_COORDINATOR, consequence, subject, words, None)
            yield dict(zip(COLUMNS, values, strict=True))


def is_refused(rows: Sequence[Row]) -> bool:
    """Return whether the version does not start, or a coordinator does not load."""
    return any(map(_is_refused, rows))


def _is_refused(row: Row) -> bool:
    return row["effect"] not in (Effect.IGNORED.value, _PASSED_OVER)


def version_words(rows: Sequence[Row], kafka_version: str) -> str:
    """Return a line about the rows."""
    ends = sum(row["effect"] == Effect.ENDS.value for row in rows)
    if ends:
        reasons = counted(ends, "reason")
        return f"Kafka {kafka_version} does NOT start with this metadata, for {reasons}"
    parts = [f"Kafka {kafka_version} starts, as far as the metadata says"]
    waiting = sum(row["kind"] == _COORDINATOR and _is_refused(row) for row in rows)
    if waiting:
        parts.append(f"{counted(waiting, 'partition')} whose coordinator does NOT load")
    ignored = len(rows) - waiting
    if ignored:
        parts.append(f"{counted(ignored, 'remark')}")
    return ": ".join([parts[0], ", ".join(parts[1:]) or "nothing is refused"])
